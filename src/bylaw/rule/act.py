"""Acts: what rules run over. One message of the agent or one call, with its turn so far and what came before the turn.

An act is told as of the moment it is made: no later event changes it. Only whether a message is followed by a call of
the same turn is not known at once; that is settled by the call, or by the end of the turn.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from bylaw.trace.event import Call, Event, Message, Result


class Act(Struct, frozen=True):
    """One message or one call of the agent."""

    step: int
    tool: str | None
    """The tool called; None for a message."""
    arguments: dict[str, Any]
    text: str
    """The message's text; empty for a call."""
    sayings: tuple[Message, ...]
    """What the user said since the agent's last turn."""
    results: tuple[Result, ...]
    """What tools returned since the agent's last turn."""
    calls_in_turn: int
    """Of the turn so far, this act included; likewise the next two."""
    writes_in_turn: int
    text_in_turn: bool
    effect: str
    """The called tool's effect; empty for a message."""
    fault: str = ""
    """Why a call's arguments are not to be trusted."""
    captured: bool = True
    """False for a message whose text was not recorded."""
    without_call: bool = False
    """Whether the turn makes no call at all: the message waits for the user."""
    asked: str = ""
    """The agent's last message before this turn: what the user may have answered."""

    def returns(self) -> list[str]:
        """The results as texts."""
        return [result.text for result in self.results]

    def record(self) -> dict[str, Any]:
        """The act as code in the guard language sees it."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name not in _APART}
        said = "\n".join(message.text for message in self.sayings)
        return {**fields, "said": said, "returned": "\n".join(self.returns())}


_APART = frozenset(("results", "sayings", "fault", "captured", "without_call"))
"""What code in the guard language sees otherwise, or not at all."""


class Turn:
    """The agent's turn so far, and what was said and returned before it."""

    __slots__ = (
        "answered", "asked", "calls", "found", "has_acted", "heard", "is_calling", "number", "results", "sayings",
        "serial", "spoken", "text", "waiting", "writes",
    )  # fmt: skip

    def __init__(self) -> None:
        self.number: int | None = None
        """None while it is not the agent's turn."""
        self.serial = 0
        """How many turns there were before it."""
        self.heard: tuple[Message, ...] = ()
        self.answered: tuple[Result, ...] = ()
        """What was said and returned since the last turn."""
        self.found: dict[str, bool | None] = {}
        """What searches in it found, kept by whoever searched: it is the same for all acts of the turn."""
        self.sayings: tuple[Message, ...] = ()
        self.results: tuple[Result, ...] = ()
        self.spoken = self.asked = ""
        """The agent's last message so far, and the last before this turn."""
        self.calls = self.writes = 0
        self.text = self.is_calling = self.has_acted = False
        """`is_calling` also where a call was refused before it ran: that is no call made, but no waiting either."""
        self.waiting: tuple[Act, ...] = ()
        """Messages of which it is not settled yet whether a call follows them in their turn."""

    def fork(self) -> "Turn":
        """Another turn like this one so far."""
        other = Turn.__new__(Turn)
        other.number, other.serial, other.heard, other.waiting = self.number, self.serial, self.heard, self.waiting
        other.sayings, other.results, other.calls, other.writes = self.sayings, self.results, self.calls, self.writes
        other.text, other.is_calling, other.has_acted = self.text, self.is_calling, self.has_acted
        other.answered, other.found = self.answered, self.found
        other.spoken, other.asked = self.spoken, self.asked
        return other

    def end(self) -> None:
        """The turn is over; what comes now is heard before the next one.

        Where nothing was done in it, since its calls were refused, what was heard before it is heard by the next.
        """
        kept = (self.sayings, self.results) if not self.has_acted else ((), ())
        self.number, (self.heard, self.answered) = None, kept
        self.serial += 1

    def hear(self, event: Event) -> None:
        """Something that is not the agent's doing."""
        if type(event) is Result:
            self.answered = (*self.answered, event)
        elif type(event) is Message:
            self.heard = (*self.heard, event)

    def begin(self, number: int) -> None:
        """The agent's next turn."""
        self.number = number
        self.sayings, self.results, self.found = self.heard, self.answered, {}
        self.asked = self.spoken
        self.calls = self.writes = 0
        self.text = self.is_calling = self.has_acted = False

    def say(self, step: int, message: Message) -> Act:
        """The act of a message in this turn."""
        self.has_acted = True
        if says_something(message):
            self.text, self.spoken = True, message.text
        return Act(
            step, None, {}, message.text, self.sayings, self.results,
            self.calls, self.writes, self.text, "", "", message.captured, asked=self.asked,
        )  # fmt: skip

    def call(self, step: int, call: Call, effect: str) -> Act:
        """The act of a call in this turn."""
        self.is_calling = self.has_acted = True
        self.calls += 1
        self.writes += effect == "write"
        return Act(
            step, call.tool, call.arguments, "", self.sayings, self.results,
            self.calls, self.writes, self.text, effect, call.fault, asked=self.asked,
        )  # fmt: skip


class TurnSpan(Struct, frozen=True, gc=False):
    """Where one turn of the agent stands in a trajectory."""

    start: int
    end: int
    """The first step after it."""


def turns(events: Sequence[Event]) -> Iterator[TurnSpan]:
    """The agent's turns in order. A turn ends where something is heard or another turn begins."""
    start, number = 0, None
    for step, event in enumerate(events):
        mine = None if isinstance(event, Result) or event.by != "agent" else event.turn
        if mine != number:
            if number is not None:
                yield TurnSpan(start, step)
            start, number = step, mine
    if number is not None:
        yield TurnSpan(start, len(events))


def says_something(message: Message) -> bool:
    """Whether a message is more than blanks; one that was not recorded may be."""
    return not message.captured or (bool(message.text) and not message.text.isspace())
