"""Acts: what rules run over. One message of the agent or one call, with its turn so far and what came before the turn.

An act is told as of the moment it is made: no later event changes it. Only whether a message is followed by a call of
the same turn is not known at once; that is settled by the call, or by the end of the turn.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from bylaw.trace.event import Event, Message, Result


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
