"""The values that a field or an argument of one name has had lately."""

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any

from bylaw.engine.consent.said.utterance import Utterance
from bylaw.facts.folded_text import fold_name, runs_of

_FEW = 8
"""So many values of a field are looked for one by one."""


class FieldValues:
    """The values, folded, that a field or an argument of one name has had lately."""

    def __init__(self, start: int = 0) -> None:
        self.start = start
        """The step before which nothing was read for it."""
        self.read = start
        """The step up to which events were."""
        self._steps: dict[str, list[int]] = {}
        """The steps at which each value stood."""
        self._by_run: dict[str, list[str]] = {}

    def add(self, value: Any, step: int) -> None:
        """Take in a value that stood at a step."""
        text = fold_name(str(value))
        steps = self._steps.get(text)
        if steps is None:
            runs = runs_of(text)
            mark = max(runs, key=lambda run: (run.isdigit(), len(run)), default="")
            self._by_run.setdefault(mark, []).append(text)
            steps = self._steps[text] = []
        insort(steps, step)

    def other_in(self, said: Utterance, own: str, since: int, before: int) -> bool:
        """Whether an utterance names another value that stood between two steps."""
        return any(
            text != own and _is_between(self._steps[text], since, before) and said.names(text)
            for text in self._perhaps_in(said)
        )

    def _perhaps_in(self, said: Utterance) -> Iterator[str]:
        if len(self._steps) <= _FEW:
            yield from self._steps
            return
        for run in ("", *said.runs):
            yield from self._by_run.get(run, ())


def _is_between(steps: list[int], since: int, before: int) -> bool:
    at = bisect_left(steps, since)
    return at < len(steps) and steps[at] < before
