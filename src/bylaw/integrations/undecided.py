"""What becomes of a call when deciding on it failed: never allowed in silence, and a write never at all."""

from collections.abc import Mapping
from typing import Any

from bylaw.errors import BylawError
from bylaw.shield import Decision, Ground
from bylaw.shield.call_decisions import Host
from bylaw.shield.decision import Answer
from bylaw.shield.feedback import feedback
from bylaw.text.own_log import own_log

log = own_log()


def tell(error: Exception, what: str) -> None:
    """Say in the program's own log what went wrong: in a line where somebody can mend it, else with its traceback."""
    log.error("%s: %s", what, error, exc_info=None if isinstance(error, BylawError) else error)


def undecided(shield: Host, tool: str, arguments: Mapping[str, Any] | str, error: Exception) -> Decision:
    """The decision where there is none: what the pack says of a call that could not be judged, a read or another."""
    tell(error, f"no decision on {tool}")
    answer: Answer = shield.decider().on_error(tool)
    posture = shield.postures.of(tool)
    # What kind of error it is to Python stands in the program's own log.
    ground = Ground("", "call", answer, posture, str(error) or "it could not be decided on")
    allowed = answer == "allow" or posture != "enforce"
    text = "" if posture == "shadow" else feedback(shield.pack, tool, answer, [ground], runs=allowed)
    given = {} if isinstance(arguments, str) else dict(arguments)
    return Decision("", tool, given, answer, allowed, posture, (ground,), to_agent=text)
