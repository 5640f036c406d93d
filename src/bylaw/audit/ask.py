"""What no look-up could have shown, told with who can say it: the user, or the host that the agent runs in."""

_HOST = "context."
_USER = "depends on what only the user can say"


def is_hosts(fact: str) -> bool:
    """Whether the host supplies it, as it does the time of a call."""
    return fact.startswith(_HOST)


def host_says(fact: str) -> str:
    """Why a fact of the host is not known, and what to do."""
    if fact == f"{_HOST}now":
        return (
            "the time of the call is not known: the log carries no time and the pack no `now:`; "
            "log a `timestamp` with each message, or set `now:` in pack.yaml"
        )
    return f"{fact} is the host's to supply, and a recorded log does not carry it"


def why(because: str, facts: list[str]) -> str:
    """A policy's reason, without the user in it where all that it asks for is the host's."""
    if facts and all(map(is_hosts, facts)):
        return because.replace(_USER, "depends on what the host supplies", 1)
    return because
