def nothing_published(call: run_listed | run_otherwise, facts):
    """Commands that test, build, check or format the project run without the user's yes only as the owner lists them under `runs`; they may run any code of the project and download what it needs.
    Any other command that may run code, change packages or rewrite files needs the user's yes, and is refused if it names publishing or deploying."""
    if call.tool == "run_listed":
        return permit()
    for word in call.words:
        if lower(word) in {"release", "upload", "twine"} or "publish" in lower(word) or "deploy" in lower(word):
            return deny("the agent publishes and deploys nothing that the owner does not list")
    return permit()
