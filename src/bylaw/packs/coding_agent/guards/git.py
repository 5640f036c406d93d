def unforced(call: force_push | git_otherwise, facts):
    """A branch on a server is never overwritten or deleted: no push is forced."""
    if call.tool == "force_push" or call.words[0] == "push" and any(word.startswith("+") or word.startswith(":") for word in call.words):
        return deny("it may overwrite or delete a branch on the server")
    return permit()


def known_remote(call: git_otherwise, facts):
    """Branches are pushed only to remotes that the project has."""
    if call.words[0] != "push":
        return permit()
    if any("://" in word for word in call.words):
        return deny("name a remote of the project, not an address")
    for word in call.words[1:]:
        if not word.startswith("-"):
            if ":" in word or "@" in word or "/" in word or word.startswith("."):
                return deny("name a remote of the project, not an address")
            return permit()
    return permit()


def git_settings(call: git_otherwise, facts):
    """Git runs with the settings of the project: an option before its command, or one that names a program, is refused, and the agent edits no file of `.git`."""
    if call.words[0].startswith("-") or any(word.startswith("--up") or word.startswith("--ex") or word.startswith("--rece") for word in call.words):
        return deny("git's command comes first, without options before it")
    return permit()
