"""What becomes of a call when deciding on it failed: never allowed in silence, and a write never at all."""

import logging
from collections.abc import Mapping
from typing import Any

from bylaw.shield import Decision, Ground, Shield
from bylaw.shield.decision import Answer
from bylaw.shield.feedback import feedback

log = logging.getLogger("bylaw")


def undecided(shield: Shield, tool: str, arguments: Mapping[str, Any] | str, error: Exception) -> Decision:
    """The decision where there is none: a look-up that no policy binds goes ahead, anything else as the pack says."""
    log.error("no decision on %s: %s", tool, error, exc_info=error)
    declared = shield.pack.schema.tools.get(tool)
    is_free = declared is not None and declared.effect != "write" and tool not in shield.pack.by_tool
    answer: Answer = "allow" if is_free else shield.postures.on_error
    posture = shield.postures.of(tool)
    ground = Ground("", "call", answer, posture, f"{type(error).__name__}: {error}")
    allowed = is_free or posture != "enforce"
    text = "" if posture == "shadow" else feedback(shield.pack, tool, answer, [ground], runs=allowed)
    given = {} if isinstance(arguments, str) else dict(arguments)
    return Decision("", tool, given, answer, allowed, posture, (ground,), to_agent=text)
