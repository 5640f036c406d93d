def commands_stay(call: leave_by_command, facts):
    """Nothing outside the project folder is changed.
    This holds for every spelling of a path, and for the files that a command is redirected to."""
    changes_all = call.program in {"rm", "rmdir", "unlink", "shred", "truncate", "mv", "touch", "mkdir", "tee", "chmod", "chown"}
    if changes_all or call.program == "cp" and call.paths[-1] in call.outside or any(path in call.outside for path in call.written):
        return deny("it changes files outside of the project")
    return permit()


def files_stay(call: make_folder | write_path | write_other_path | write_elsewhere | move_from | move_other_from | move_from_elsewhere | move_to | move_to_other | move_elsewhere, facts):
    """Nothing outside the project folder is changed."""
    if call.tool in {"write_elsewhere", "move_from_elsewhere", "move_elsewhere"}:
        return deny(f"{call.path} is outside of the project")
    return permit()


def own_rights(call: use_other_rights | leave_by_command | change_files | change_files_otherwise | delete | git | git_otherwise | run_listed | run_otherwise | use_network, facts):
    """Commands run with the rights of the agent, never as another user."""
    return deny("it would run as another user") if call.tool == "use_other_rights" else permit()


def git_files(call: make_folder | write_path | write_other_path | move_to | move_to_other | move_from | move_other_from | change_files | change_files_otherwise | delete | git | git_otherwise | look_at_others | run_listed | run_otherwise, facts):
    """Git runs with the settings of the project: an option before its command, or one that names a program, is refused, and the agent edits no file of `.git`."""
    named = [get(call, "path", "")]
    for path in call.written if call.tool == "look_at_others" else get(call, "paths", named):
        if any(part == ".git" for part in lower(path).split("/")):
            return deny(f"{path} belongs to git")
    return permit()
