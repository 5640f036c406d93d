def nothing_published(call: build | run_otherwise, facts):
    """Programs that build, test, check and format the project may run.
    Nothing is published or deployed."""
    if call.tool == "build" and not call.program in {"python", "python3", "node", "ruby", "php", "bun"}:
        return permit()
    for word in call.words:
        for name in lower(word).split("/"):
            for part in name.split("."):
                if any(each in {"publish", "unpublish", "deploy", "release", "upload", "twine"} for each in part.split(":")) or any(each in {"publish", "deploy", "upload"} for each in part.split("-")):
                    return deny("the agent publishes and deploys nothing")
    return permit()
