"""True events of a generated conversation: plain records that the generator writes and the checker reads."""

import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from msgspec import Struct

Speaker = Literal["user", "agent", "other"]
"""`other` is another program or agent with the role `user`."""
Meaning = Literal["yes", "no", "thanks", "other"]
Outcome = Literal["ran", "may have run", "did not run"]


class CallKey(Struct, frozen=True):
    """One exact call: a tool and its arguments, without those that a pack declares irrelevant."""

    tool: str
    arguments: str

    @property
    def values(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.arguments)
        return found


class Said(Struct, frozen=True):
    by: Speaker
    text: str
    at: float
    principal: str = ""
    meaning: Meaning = "other"
    requests: tuple[CallKey, ...] = ()
    """Calls that the user asks for in the message."""
    withdraws: bool = False
    """Whether the user withdraws all earlier requests."""
    shows: tuple[CallKey, ...] = ()
    """Calls that the message shows to the user in full, without words that change them."""
    fees: tuple[str, ...] = ()
    """The fee shown with each call, in a pack that shows fees."""
    as_card: bool = False
    """Whether the message shows these calls as cards."""

    def puts(self, call: CallKey, fee: str) -> bool:
        return any(shown == call and (self.fees[at] if self.fees else "") == fee for at, shown in enumerate(self.shows))


class Issued(Struct, frozen=True):
    card: str
    call: CallKey
    at: float
    fee: str = ""
    """The fee on the card, in a pack that shows fees."""


class Pressed(Struct, frozen=True):
    """The user answered a card with a button. `seen` is the number of true events before the press."""

    card: str
    call: CallKey
    yes: bool
    at: float
    seen: int
    principal: str = ""


class Ran(Struct, frozen=True):
    """An allowed call with its outcome."""

    call: CallKey
    outcome: Outcome
    principal: str = ""


class HandedOver(Struct, frozen=True):
    principal: str


class Allowed(Struct, frozen=True):
    call: CallKey
    at: float
    theorems: tuple[str, ...]
    principal: str = ""
    has_times: bool = True
    """Whether the host reported the times of messages to the shield."""
    facts: str = ""
    """The facts that the agent had seen, if a reviewer was asked about them."""
    fresh_for: float = 0.0
    """How long a look-up for the call stays valid, in seconds. 0 means no limit."""
    agent: str = ""
    """The inner agent that makes the call, or an empty string for the main agent."""
    chat: str = ""
    """The chat for the call."""
    resumes: int = -1
    """The position of the first decision, if a paused call continues."""
    shows_fee: bool = False
    """Whether the user must be shown the fee of the account with the call."""


class ModelAnswered(Struct, frozen=True):
    """The model was asked whether the user agreed to a call."""

    call: CallKey
    yes: bool | None


class PersonAsked(Struct, frozen=True):
    """A call waits for a reviewer, who sees these facts."""

    approval: str
    call: CallKey
    at: float
    facts: str
    principal: str = ""
    chat: str = ""


class PersonAnswered(Struct, frozen=True):
    """A reviewer approved or rejected a waiting call."""

    approval: str
    yes: bool
    at: float


class Stopped(Struct, frozen=True):
    """A reviewer stopped a tool, or every write if `tool` is empty, until a time."""

    stop: str
    tool: str
    until: float


class Lifted(Struct, frozen=True):
    """A reviewer lifted a stop."""

    stop: str


class Shown(Struct, frozen=True):
    """The agent saw a record: the result of a look-up that began after the first `since` true events."""

    order: str
    """The order or account."""
    left: Decimal
    """The rest of the order, or the fee of the account."""
    since: int
    at: float = 0.0
    by: str = ""
    """The inner agent that saw the record, or an empty string for the main agent."""


class Note(Struct, frozen=True):
    """A remark for readers of the transcript. The checker ignores it."""

    text: str


True_ = (
    Said | Issued | Pressed | Ran | HandedOver | Allowed | ModelAnswered | PersonAsked | PersonAnswered
    | Stopped | Lifted | Shown | Note
)  # fmt: skip


def key(tool: str, arguments: Mapping[str, Any], irrelevant: frozenset[str] = frozenset()) -> CallKey:
    """Return the exact call. Numbers are compared by value, and text letter by letter."""
    kept = {name: _plain(value) for name, value in arguments.items() if name not in irrelevant}
    return CallKey(tool, json.dumps(kept, sort_keys=True))


def _plain(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"number {Decimal(str(value)).normalize():f}"
    return value


def spelled_alike(one: Any, other: Any) -> bool:
    """Whether a tool may treat two values as the same, ignoring letter case, separators and trailing zeros."""
    return _bare(one) == _bare(other)


def _bare(value: Any) -> str:
    text = "".join(each for each in str(value).removeprefix("number ").lower() if each.isalnum() or each == ".")
    try:
        return f"{Decimal(text).normalize():f}"
    except InvalidOperation:
        return text.replace(".", "")


def may_be_one(one: CallKey, other: CallKey) -> bool:
    """Whether a tool may treat two calls as the same."""
    mine, theirs = one.values, other.values
    same_names = mine.keys() == theirs.keys()
    return one.tool == other.tool and same_names and all(spelled_alike(mine[name], theirs[name]) for name in mine)
