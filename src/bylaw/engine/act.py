"""Acts: what rules run over. One message of the agent or one call, with what was said and returned since the last."""

from collections.abc import Iterable, Iterator, Mapping
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
    said: str
    """What the user said since the agent's last turn."""
    results: tuple[Result, ...]
    """What tools returned since the agent's last turn."""
    calls_in_turn: int
    writes_in_turn: int
    text_in_turn: bool
    effect: str
    """The called tool's effect; empty for a message."""

    @property
    def returned(self) -> str:
        """The results as one text."""
        return "\n".join(
            r.content if isinstance(r.content, str) else bytes(r.content).decode("utf-8", "replace")
            for r in self.results
        )

    def record(self) -> dict[str, Any]:
        """The act as code in the guard language sees it."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name != "results"}
        return {**fields, "returned": self.returned}


class Turn:
    """One turn of the agent: its messages and calls, and what was said and returned before it."""

    __slots__ = ("_results", "_said", "_tools", "members", "searched", "shape")

    def __init__(
        self,
        members: list[tuple[int, Message | Call]],
        said: list[str],
        results: list[Result],
        tools: Mapping[str, Tool],
    ) -> None:
        self.members = members
        """Step and event of each act."""
        self._said = said
        self._results = results
        self._tools = tools
        calls = writes = 0
        text = False
        for _, event in members:
            if isinstance(event, Call):
                calls += 1
                writes += _effect(event, tools) == "write"
            elif not text:
                text = bool(event.text.strip())
        self.shape = (calls, writes, text)
        """Calls and writes in the turn, and whether it says something."""
        self.searched: dict[tuple[int, int], bool] = {}
        """What was found in its texts, kept by whoever searched them."""

    def act(self, place: int) -> Act:
        """The act at a place of the turn."""
        step, event = self.members[place]
        said, results = "\n".join(self._said), tuple(self._results)
        if isinstance(event, Call):
            effect = _effect(event, self._tools)
            return Act(step, event.tool, event.arguments, "", said, results, *self.shape, effect)
        return Act(step, None, {}, event.text, said, results, *self.shape, "")


def acts(events: Iterable[Event], tools: Mapping[str, Tool]) -> Iterator[Act]:
    """The agent's acts in order."""
    for turn in turns(events, tools):
        for place in range(len(turn.members)):
            yield turn.act(place)


def turns(events: Iterable[Event], tools: Mapping[str, Tool]) -> Iterator[Turn]:
    """The agent's turns in order. A turn ends where a result comes or another turn begins."""
    turn: list[tuple[int, Message | Call]] = []
    said: list[str] = []
    results: list[Result] = []
    number = -1
    for step, event in enumerate(events):
        if turn and (isinstance(event, Result) or event.by != "agent" or event.turn != number):
            yield Turn(turn, said, results, tools)
            turn, said, results = [], [], []
        if isinstance(event, Result):
            results.append(event)
        elif event.by == "agent":
            turn.append((step, event))
            number = event.turn
        elif isinstance(event, Message):
            said.append(event.text)
    if turn:
        yield Turn(turn, said, results, tools)


def _effect(call: Call, tools: Mapping[str, Tool]) -> str:
    tool = tools.get(call.tool)
    return "unknown" if tool is None else tool.effect
