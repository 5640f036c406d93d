"""Hold an LLM agent's tool calls to a written policy.

pack = load_pack("clinic")
session = Session(pack)                 # one conversation, event by event
session.observe(Message("user", "..."))
session.judge(call)                     # on what was seen; final
session.observe(call)
session.settle()                        # with what is true

from bylaw.audit import Request, audit
audit(Request(files, "clinic"), out)    # recorded conversations, whole files
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bylaw.engine.judgement import Judgement
    from bylaw.engine.pack import Pack, load_pack
    from bylaw.engine.session import Session
    from bylaw.engine.settlement import CallVerdict
    from bylaw.errors import BylawError
    from bylaw.trace import Call, Message, Result, Trajectory, read

__version__ = "0.1.0"

__all__ = [
    "BylawError",
    "Call",
    "CallVerdict",
    "Judgement",
    "Message",
    "Pack",
    "Result",
    "Session",
    "Trajectory",
    "load_pack",
    "read",
]

_HOMES = {
    "BylawError": "bylaw.errors",
    "Call": "bylaw.trace",
    "CallVerdict": "bylaw.engine.settlement",
    "Judgement": "bylaw.engine.judgement",
    "Message": "bylaw.trace",
    "Pack": "bylaw.engine.pack",
    "Result": "bylaw.trace",
    "Session": "bylaw.engine.session",
    "Trajectory": "bylaw.trace",
    "load_pack": "bylaw.engine.pack",
    "read": "bylaw.trace",
}


def __getattr__(name: str) -> Any:
    # Importing `bylaw` costs next to nothing; a name costs what it needs when it is first asked for.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module `bylaw` has no `{name}`")
