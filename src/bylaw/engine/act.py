"""Acts: what rules run over. One message of the agent or one call, with what was said and returned since the last."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from bylaw.policy.tool import Tool
from bylaw.trace.event import Call, Event, Message, Result


class Act(Struct, frozen=True):
    """One message or one call of the agent. The acts of one turn share its state."""

    step: int
    tool: str | None
    """The tool called; None for a message."""
    arguments: dict[str, Any]
    text: str
    """The message's text; empty for a call."""
    sayings: tuple[str, ...]
    """What the user said since the agent's last turn, message by message."""
    results: tuple[Result, ...]
    """What tools returned since the agent's last turn."""
    calls_in_turn: int
    writes_in_turn: int
    text_in_turn: bool
    effect: str
    """The called tool's effect; empty for a message."""
    fault: str = ""
    """Why a call's arguments are not to be trusted."""

    def returns(self) -> list[str]:
        """The results as texts."""
        contents = [result.content for result in self.results]
        return [text if isinstance(text, str) else bytes(text).decode("utf-8", "replace") for text in contents]

    def record(self) -> dict[str, Any]:
        """The act as code in the guard language sees it."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name not in _APART}
        return {**fields, "said": "\n".join(self.sayings), "returned": "\n".join(self.returns())}


_APART = frozenset(("results", "sayings", "fault"))
"""What code in the guard language sees otherwise, or not at all."""


class Turn:
    """One turn of the agent: its messages and calls, and what was said and returned before it."""

    __slots__ = ("_before", "_events", "_tools", "end", "searched", "start")

    def __init__(self, events: Sequence[Event], before: int, start: int, end: int, tools: Mapping[str, Tool]) -> None:
        self._events = events
        self._before = before
        """Where the last turn ended."""
        self.start = start
        self.end = end
        """The first step after it."""
        self._tools = tools
        self.searched: dict[tuple[int, int], bool] = {}
        """What was found in its texts, kept by whoever searched them."""

    def shape(self) -> tuple[int, int, bool]:
        """Calls and writes in the turn, and whether it says something."""
        calls = writes = 0
        text = False
        for event in self._events[self.start : self.end]:
            if isinstance(event, Call):
                calls += 1
                writes += _effect(event, self._tools) == "write"
            elif isinstance(event, Message):
                text = text or says_something(event)
        return calls, writes, text

    def act(self, step: int) -> Act:
        """The act at a step of the turn."""
        event = self._events[step]
        gap = self._events[self._before : self.start]
        said = tuple([each.text for each in gap if isinstance(each, Message)])
        results = tuple([each for each in gap if isinstance(each, Result)])
        if isinstance(event, Call):
            effect = _effect(event, self._tools)
            return Act(step, event.tool, event.arguments, "", said, results, *self.shape(), effect, event.fault)
        text = event.text if isinstance(event, Message) else ""
        return Act(step, None, {}, text, said, results, *self.shape(), "")


def acts(events: Sequence[Event], tools: Mapping[str, Tool]) -> Iterator[Act]:
    """The agent's acts in order."""
    for turn in turns(events, tools):
        for step in range(turn.start, turn.end):
            yield turn.act(step)


def turns(events: Sequence[Event], tools: Mapping[str, Tool]) -> Iterator[Turn]:
    """The agent's turns in order. A turn ends where a result comes or another turn begins."""
    before = start = 0
    number: int | None = None
    """The number of the turn that is open."""
    for step, event in enumerate(events):
        if isinstance(event, Result) or event.by != "agent":
            if number is not None:
                yield Turn(events, before, start, step, tools)
                before, number = step, None
        elif event.turn != number:
            if number is not None:
                yield Turn(events, before, start, step, tools)
                before = step
            start, number = step, event.turn
    if number is not None:
        yield Turn(events, before, start, len(events), tools)


def says_something(message: Message) -> bool:
    """Whether a message is more than blanks."""
    return bool(message.text) and not message.text.isspace()


def _effect(call: Call, tools: Mapping[str, Tool]) -> str:
    tool = tools.get(call.tool)
    return "unknown" if tool is None else tool.effect
