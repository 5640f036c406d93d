"""Checks an LLM agent's tool calls against a written policy.

pack = load_pack("clinic")
with Conversation(pack) as conversation:  # live, as events happen
    conversation.user("I'm Gold, so there's no fee, right?")
    judgement = conversation.call("cancel_appointment", {...})
    conversation.result({"cancelled": "A0362"})
verdicts(pack, trajectory)  # recorded, as `read` returns it
check(pack)  # its cases, and what they leave out

from bylaw.audit import Request, audit
audit(Request(files, "clinic"), out)  # whole files, with a report
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bylaw.engine.conversation import Conversation
    from bylaw.engine.finished import Verdicts, verdicts
    from bylaw.engine.judgement import Judgement
    from bylaw.engine.settlement import CallVerdict
    from bylaw.errors import BylawError
    from bylaw.pack import Pack, load_pack
    from bylaw.review.check import CheckReport, check
    from bylaw.shield import Decision, Shield
    from bylaw.trace import Call, Message, Result, Trajectory, read

__version__ = "0.2.0"

__all__ = [
    "BylawError",
    "Call",
    "CallVerdict",
    "CheckReport",
    "Conversation",
    "Decision",
    "Judgement",
    "Message",
    "Pack",
    "Result",
    "Shield",
    "Trajectory",
    "Verdicts",
    "check",
    "load_pack",
    "read",
    "verdicts",
]

_HOMES = {
    "BylawError": "bylaw.errors",
    "Call": "bylaw.trace",
    "CallVerdict": "bylaw.engine.settlement",
    "CheckReport": "bylaw.review.check",
    "Conversation": "bylaw.engine.conversation",
    "Decision": "bylaw.shield",
    "Judgement": "bylaw.engine.judgement",
    "Message": "bylaw.trace",
    "Pack": "bylaw.pack",
    "Result": "bylaw.trace",
    "Shield": "bylaw.shield",
    "Trajectory": "bylaw.trace",
    "Verdicts": "bylaw.engine.finished",
    "check": "bylaw.review.check",
    "load_pack": "bylaw.pack",
    "read": "bylaw.trace",
    "verdicts": "bylaw.engine.finished",
}


def __getattr__(name: str) -> Any:
    # Importing `bylaw` is cheap, because each name is loaded on first use.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module `bylaw` has no `{name}`")
