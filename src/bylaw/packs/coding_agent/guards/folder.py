def commands_stay(call: leave_by_command, facts):
    """Nothing outside the project folder is changed.
    This holds for every spelling of a path, and for the files that a command is redirected to."""
    if call.program in {"cd", "pushd"}:
        return deny("later commands would run outside of the project")
    changes = ["rm", "rmdir", "unlink", "shred", "truncate", "mv", "cp", "touch", "mkdir", "tee", "chmod", "chown", "ln", "sed", "dd", "patch", "tar", "unzip", "zip", "gzip", "gunzip"]
    if call.program in changes or len(call.written) > 0:
        return deny("it may change files outside of the project; name each file by its path in the project")
    return permit()


def files_stay(call: write_path | edit_path | write_elsewhere | move_from | move_from_elsewhere | move_to | move_elsewhere, facts):
    """Nothing outside the project folder is changed."""
    if call.tool in {"write_elsewhere", "move_from_elsewhere", "move_elsewhere"}:
        return deny(f"{call.path} is outside of the project")
    return permit()


def own_rights(call: use_other_rights | leave_by_command | change_files | change_files_otherwise | delete | git | git_otherwise | run_listed | run_otherwise | use_network, facts):
    """Commands run with the rights of the agent, never as another user."""
    return deny("it would run as another user") if call.tool == "use_other_rights" else permit()


def git_files(call: write_path | edit_path | move_to | move_from | change_files | change_files_otherwise | delete | git | git_otherwise | run_listed | run_otherwise, facts):
    """Git runs with the settings of the project: no option before its command changes them, and the agent edits no file of `.git`."""
    named = [get(call, "path", "")]
    for path in get(call, "paths", named):
        if any(part == ".git" for part in lower(path).split("/")):
            return deny(f"{path} belongs to git")
    return permit()
