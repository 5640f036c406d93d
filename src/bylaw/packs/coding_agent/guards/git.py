def unforced(call: force_push | git, facts):
    """A branch on a server is never overwritten or deleted: no push is forced."""
    if call.tool == "force_push" or call.words[0] == "push" and any(word.startswith("+") or word.startswith(":") for word in call.words):
        return deny("it may overwrite or delete a branch on the server")
    return permit()


def known_remote(call: git, facts):
    """Branches are pushed only to remotes that the project has."""
    if call.words[0] == "push" and any("://" in word or "@" in word or "/." in word or word.startswith("/") or word.startswith(".") for word in call.words):
        return deny("name a remote of the project, not an address")
    return permit()


def git_settings(call: git, facts):
    """Git runs with the settings of the project: no option before its command changes them, and the agent edits no file of `.git`."""
    if call.words[0].startswith("-") or any(word.startswith("--upload-pack") or word.startswith("--exec") or word.startswith("--receive-pack") for word in call.words):
        return deny("git's command comes first, without options before it")
    return permit()
