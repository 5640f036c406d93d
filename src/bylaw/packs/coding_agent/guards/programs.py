def nothing_published(call: build, facts):
    """Programs that build, test, check and format the project may run.
    Nothing is published or deployed."""
    for word in call.words[:3]:
        if any(part in {"publish", "deploy", "release", "upload", "twine"} for part in word.split(":")):
            return deny("the agent publishes and deploys nothing")
    return permit()
