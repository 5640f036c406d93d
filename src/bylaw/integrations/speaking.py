"""Who is speaking, conversation by conversation: what a host vouches for may differ from one run to the next.

The principal is whoever `signed_in_as` names. Where another one goes on in the same thread, a conversation of their own
begins, linked by its name: what the first has agreed to, given as a reason or had approved is not theirs.
"""

from collections.abc import Callable, Mapping
from typing import Any

from bylaw.engine.context import PRINCIPAL
from bylaw.errors import UsageError
from bylaw.shield import LiveSession, Shield

Vouched = Mapping[str, Any] | None
Context = Vouched | Callable[[Any], Vouched]
"""What the host vouches for: the same for all conversations, or a function of what the framework knows of the run."""


def vouched(context: Context, run: Any) -> Vouched:
    """What the host vouches for in one run."""
    return context(run) if callable(context) else context


def is_same(one: Vouched, other: Vouched) -> bool:
    """Whether two contexts are of one principal; where nobody says who it is, the whole of them is compared."""
    if other is None:
        return True
    ours, theirs = dict(one or {}), dict(other)
    if PRINCIPAL in ours or PRINCIPAL in theirs:
        return ours.get(PRINCIPAL) == theirs.get(PRINCIPAL)
    return ours == theirs


def session_of(shield: Shield, name: str, context: Vouched, lacks: str = "") -> LiveSession:
    """The conversation of this name, whoever it belongs to."""
    session = shield.session(name, context=context, lacks=lacks)
    try:
        session.trajectory()
    except UsageError:
        # It was opened with another context, which stays its own.
        session = shield.session(name, lacks=lacks)
        session.trajectory()
    return session
