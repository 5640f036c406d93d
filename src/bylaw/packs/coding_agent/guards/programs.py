def nothing_published(call: run_listed | run_otherwise, facts):
    """The agent runs a command that tests, builds, checks or formats the project only if the owner lists it under `runs`.
    Any other command that may run code, change packages or rewrite files needs the user's yes, and is refused if it names publishing or deploying."""
    if call.tool == "run_listed":
        return permit()
    for word in call.words:
        if lower(word) in {"release", "upload", "twine"} or "publish" in lower(word) or "deploy" in lower(word):
            return deny("the agent publishes and deploys nothing that the owner does not list")
    return permit()
