"""Rewrites the results of a recorded run: replaces, extends or moves the injected text."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import yaml
from msgspec.structs import replace

from bylaw.facts.result_places import parse_result
from bylaw.policy.tool import Tool
from bylaw.trace.event import Call, Event, Result, Trajectory

Write = Callable[[str, str], str]
"""Takes a text in a result and its field, and returns the new text."""
_GAP = r"(?:\s|\\n)*"
"""The space between two words. A text within a printed Python value has its line breaks escaped."""
_LONG = 20
"""The minimum length of a prose field, in characters."""


class Rewriting:
    """Makes rewritten copies of one run."""

    def __init__(self, run: Trajectory) -> None:
        self._run = run
        injections: dict[str, Any] = run.details.get("injections") or {}
        texts = [str(text).split() for text in injections.values() if str(text).strip()]
        self._patterns = [re.compile(_GAP.join(re.escape(word) for word in words)) for words in texts]

    def injected_before(self, step: int) -> list[int]:
        """Return the steps before a step whose results show the injected text."""
        found = [(place, event) for place, event in enumerate(self._run.events[:step]) if isinstance(event, Result)]
        return [place for place, event in found if _changed(event, self._out) != event.text]

    def replaced(self, text: str, *, whole: bool = False) -> Trajectory:
        """Return the run with the injected text replaced. With `whole`, replace the whole field."""

        def write(leaf: str, _: str) -> str:
            for pattern in self._patterns:
                if pattern.search(leaf):
                    leaf = text if whole else pattern.sub(lambda _: text, leaf)
            return leaf

        return self._with(dict.fromkeys(range(len(self._run.events)), write))

    def added(self, step: int, text: str, tools: Mapping[str, Tool]) -> Trajectory:
        """Return the run with text added to the result at a step, after text that strangers may have written."""
        done: list[str] = []

        def write(leaf: str, field: str) -> str:
            if done or not _is_open(leaf, field, event, tools):
                return leaf
            done.append(leaf)
            return f"{leaf}\n{text}"

        event = self._run.events[step]
        return self._with({step: write})

    def texts_before(self, step: int, tools: Mapping[str, Tool]) -> list[int]:
        """Return the earlier look-ups, by step, whose results contain text that strangers may have written."""
        found: list[int] = []
        for place, event in enumerate(self._run.events[:step]):
            if isinstance(event, Result):
                cut = _changed(event, lambda leaf, field, at=event: "" if _is_open(leaf, field, at, tools) else leaf)
                if cut != event.text:
                    found.append(place)
        return found

    def repeated(self, step: int, text: str) -> list[tuple[str, dict[str, Any], str]]:
        """Repeat the call of a result with the injected text replaced."""
        result = self.replaced(text).events[step]
        assert isinstance(result, Result)
        call = None if result.call is None else self._run.events[result.call]
        return [(call.tool, call.arguments, result.text)] if isinstance(call, Call) else []

    def turn_start(self, step: int) -> int:
        """Return the first step of the turn that contains this step."""
        call = self._run.events[step]
        assert isinstance(call, Call)
        same = (place for place, event in enumerate(self._run.events) if getattr(event, "turn", None) == call.turn)
        return min(same, default=step)

    def inserted(self, start: int, calls: Iterable[tuple[str, dict[str, Any], str]]) -> tuple[Trajectory, int]:
        """Insert calls and results before a step, each in its own turn. Return the run and the number of new events."""
        new: list[Event] = []
        turn = max((getattr(event, "turn", 0) for event in self._run.events[:start]), default=0)
        for tool, arguments, result in calls:
            turn += 1
            new.append(Call(tool, arguments, turn=turn))
            new.append(Result(start + len(new) - 1, result, tool=tool))
        count = len(new)
        rest = [_shifted(event, start, count) for event in self._run.events[start:]]
        return replace(self._run, events=[*self._run.events[:start], *new, *rest]), count

    def _out(self, leaf: str, _: str) -> str:
        for pattern in self._patterns:
            leaf = pattern.sub("", leaf)
        return leaf

    def _with(self, writers: Mapping[int, Write]) -> Trajectory:
        events = [
            replace(event, content=_changed(event, writers[place]))
            if isinstance(event, Result) and place in writers
            else event
            for place, event in enumerate(self._run.events)
        ]
        return replace(self._run, events=events)


def _shifted(event: Event, start: int, count: int) -> Event:
    if isinstance(event, Result):
        is_later = event.call is not None and event.call >= start
        return replace(event, call=event.call + count) if is_later and event.call is not None else event
    return replace(event, turn=event.turn + count)


def _is_open(leaf: str, field: str, event: Event, tools: Mapping[str, Tool]) -> bool:
    tool = tools.get(event.tool) if isinstance(event, Result) else None
    return tool is not None and tool.effect != "write" and len(leaf) >= _LONG and not tool.trusts(field)


def _changed(result: Result, write: Write) -> str:
    """Rewrite every text in the data of a result. Return the result's text unchanged if nothing changes."""
    text = result.text
    data = parse_result(text)
    if isinstance(data, str):
        return write(text, "")
    new = _mapped(data, write, "")
    return text if new == data else yaml.safe_dump(new, sort_keys=False, allow_unicode=True)


def _mapped(value: Any, write: Write, field: str) -> Any:
    if isinstance(value, dict):
        return {name: _mapped(part, write, field or str(name)) for name, part in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list):
        return [_mapped(part, write, field) for part in cast("list[Any]", value)]
    return write(value, field) if isinstance(value, str) else value
