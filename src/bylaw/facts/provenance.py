"""Where an argument's value came from: the reverse of asking what an agent has seen.

Nothing is indexed beforehand. A question costs a text search over the events before the call, and a
result is decoded only where the value stands in it and it matters whether as a field or in free text.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, cast

from msgspec import Struct

from bylaw.facts.folded_text import fold
from bylaw.facts.identifier import identifiers, is_prose
from bylaw.facts.result_field import result_text
from bylaw.facts.spelling import Spelling, spell
from bylaw.trace.event import Event, Message, Result

OriginKind = Literal["user", "host", "record", "text", "nowhere"]

_LEAVES = 20_000


class ValueOrigin(Struct, frozen=True):
    """The best-founded place a value came from: the user's words, the host, a record, free text, or none."""

    kind: OriginKind
    step: int | None = None
    """The message or result that showed it first; None for the host and for nowhere."""
    tool: str = ""
    """The tool whose result showed it."""


NOWHERE = ValueOrigin("nowhere")


class Provenance:
    """Answers, for one conversation, where values came from. `events` may grow while it is in use."""

    def __init__(
        self, events: Sequence[Event], *, instructions: str = "", context: Mapping[str, Any] | None = None
    ) -> None:
        self._events = events
        self._host = _fold_long(" \n ".join([instructions, *(str(value) for value in (context or {}).values())]))
        self._texts: dict[int, str] = {}
        self._folded: dict[int, str] = {}
        self._users: list[int] = []
        self._results: list[int] = []
        self._indexed = 0

    def origin(self, value: Any, *, before: int) -> ValueOrigin:
        """Where `value` came from, as of the events before step `before`."""
        spelling = spell(value)
        if spelling is None:
            return NOWHERE
        self._index()
        for step in self._users:
            if step >= before:
                break
            if spelling.said_in(self._words(step)):
                return ValueOrigin("user", step)
        if _says(self._host, value):
            return ValueOrigin("host")
        return self._shown(spelling, before)

    def text(self, step: int) -> str:
        """What the result at `step` holds, as text."""
        text = self._texts.get(step)
        if text is None:
            event = self._events[step]
            assert isinstance(event, Result)
            text = self._texts[step] = result_text(event)
        return text

    def _index(self) -> None:
        for step in range(self._indexed, len(self._events)):
            event = self._events[step]
            if isinstance(event, Result):
                if event.captured:
                    self._results.append(step)
            elif isinstance(event, Message) and event.by == "user":
                self._users.append(step)
        self._indexed = len(self._events)

    def _words(self, step: int) -> str:
        words = self._folded.get(step)
        if words is None:
            event = self._events[step]
            assert isinstance(event, Message)
            words = self._folded[step] = fold(event.text)
        return words

    def _shown(self, spelling: Spelling, before: int) -> ValueOrigin:
        loose: ValueOrigin | None = None
        for step in self._results:
            if step >= before:
                break
            text = self.text(step)
            if not spelling.stands_in(text):
                continue
            if spelling.is_field_of(text):
                return ValueOrigin("record", step, self._tool(step))
            loose = loose or ValueOrigin("text", step, self._tool(step))
        return loose or NOWHERE

    def _tool(self, step: int) -> str:
        result = self._events[step]
        assert isinstance(result, Result)
        call = None if result.call is None else self._events[result.call]
        return result.tool or str(getattr(call, "tool", ""))


def leaf_values(arguments: Any) -> Iterator[tuple[str, str | int | float]]:
    """The traceable values inside a call's arguments, each with its path, e.g. `flights[].date`.

    Of running text only the identifiers in it (addresses, links, codes) are traced: the rest is composed.
    """
    pending: list[tuple[str, Any]] = [("", arguments)]
    left = _LEAVES
    while pending and left:
        path, value = pending.pop()
        left -= 1
        if isinstance(value, dict):
            items = cast("dict[Any, Any]", value).items()
            pending.extend((f"{path}.{name}" if path else str(name), part) for name, part in items)
        elif isinstance(value, list):
            pending.extend((f"{path}[]", part) for part in cast("list[Any]", value))
        elif isinstance(value, str) and is_prose(value):
            yield from ((path, token) for token in identifiers(value))
        elif isinstance(value, (str, int, float)) and not isinstance(value, bool) and value != "":
            yield path, value


# Conversations of one log mostly share their instructions: folded once, asked once.
_fold_long = lru_cache(maxsize=16)(fold)


@lru_cache(maxsize=8192, typed=True)
def _says(host: str, value: str | float) -> bool:
    spelling = spell(value) if host else None
    return spelling is not None and spelling.said_in(host)
