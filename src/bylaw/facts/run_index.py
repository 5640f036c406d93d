"""Which events hold a value's letters and digits: asked by value, so that its cost does not grow with what was said."""

from bisect import bisect_left

from bylaw.text.folding import runs_of
from bylaw.text.spelling import Spelling


class RunIndex:
    """Steps by the runs of letters and of digits in their folded texts. It grows with the conversation."""

    __slots__ = ("_steps",)

    def __init__(self) -> None:
        self._steps: dict[str, list[int]] = {}

    def add(self, step: int, folded: str) -> None:
        """Take in the text of a later step than all before."""
        steps = self._steps
        for run in set(runs_of(folded)):
            known = steps.get(run)
            if known is None:
                steps[run] = [step]
            else:
                known.append(step)

    def candidates(self, spelling: Spelling, before: int) -> list[int]:
        """The steps before `before` that may say the value, in order: they hold the rarest run of a way to say it.

        What is rarest is told by these steps alone, so that later ones change nothing.
        """
        runs = spelling.runs
        if len(runs) == 1:
            return self._rarest(runs[0], before) or []
        ways = [found for way in runs if (found := self._rarest(way, before)) is not None]
        return ways[0] if len(ways) == 1 else sorted({step for way in ways for step in way})

    def _rarest(self, runs: tuple[str, ...], before: int) -> list[int] | None:
        """The shortest list of steps among those of all runs; None where a run stands nowhere."""
        found: list[int] | None = None
        least = 0
        for run in runs:
            steps = self._steps.get(run)
            count = 0 if steps is None else len(steps) if steps[-1] < before else bisect_left(steps, before)
            if steps is None or not count:
                return None
            if found is None or count < least:
                found, least = steps, count
        return None if found is None else found if least == len(found) else found[:least]
