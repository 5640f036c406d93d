"""Where something was said before, found without reading the whole conversation again for every write.

The last utterances are read as they are. Older ones are found by the runs of letters and digits they hold, each taken
apart once; and what is asked of every utterance alike is asked of each once.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from bylaw.engine.consent.said.number import counts
from bylaw.engine.consent.said.utterance import Utterance
from bylaw.engine.consent.said.wording import wording
from bylaw.facts.folded_text import runs_of
from bylaw.facts.spelling import spell

_NEAR = 32
"""So many of the last utterances, up to twice as many, are read as they are."""
_LATELY = 128
"""So many of the last utterances are asked what no index answers."""
_NOWHERE: list[int] = []


class Mentions:
    """Looks things up in what was said; `said` may grow while it is in use. Places are positions in it."""

    def __init__(self, said: Sequence[Utterance]) -> None:
        self._said = said
        self._indexed = 0
        self._holding: dict[str, list[int]] = {}
        """By a run of letters or digits, the places of the older utterances that hold it."""
        self._last: dict[Hashable, tuple[int, int]] = {}
        """By what was asked, how many utterances were read for it, and the last of which it is so."""
        self._counted: dict[tuple[str, str], tuple[int, dict[str, int]]] = {}
        """By a thing and who spoke, how many utterances were read, and where each number was last said of it."""

    def latest(self, value: str | float, end: int, by: str = "") -> int | None:
        """The place of the last utterance before `end` that states a value."""
        self.take_in()
        said, needed = self._said, wording(value).needed
        for place in range(end - 1, self._indexed - 1, -1):
            each = said[place]
            if needed in each.text and (not by or each.by == by) and each.says(value):
                return place
        return next(self.all(value, min(end, self._indexed), by), None) if self._indexed else None

    def all(self, value: str | float, end: int, by: str = "") -> Iterator[int]:
        """The places of the utterances before `end` that state a value, the latest first."""
        spelling = spell(value)
        for place in () if spelling is None else self._candidates(spelling.runs, end):
            each = self._said[place]
            if (not by or each.by == by) and each.says(value):
                yield place

    def has_form(self, form: str, end: int, by: str = "") -> bool:
        """Whether folded words stand as they are in something said before `end`."""
        for place in self._candidates((runs_of(form),), end):
            each = self._said[place]
            if (not by or each.by == by) and each.names(form):
                return True
        return False

    def has(self, key: Hashable, holds: Callable[[Utterance], bool], end: int, by: str = "") -> bool:
        """Whether `holds` is true of anything said lately before `end`; it is asked once of each for a key."""
        read, last = self._last.get((key, by), (0, -1))
        since = max(0, end - _LATELY)
        if end < read:
            read, last = since, -1
        for place in range(end - 1, max(read, since) - 1, -1):
            each = self._said[place]
            if (not by or each.by == by) and holds(each):
                last = place
                break
        self._last[key, by] = (end, last)
        return last >= since

    def has_number(self, wanted: Iterable[str], stem: str, end: int, by: str) -> bool:
        """Whether one of the wanted numbers was said of a thing lately before `end`."""
        read, last = self._counted.get((stem, by), (0, {}))
        since = max(0, end - _LATELY)
        if end < read:
            read, last = since, {}
        for place in range(max(read, since), end):
            each = self._said[place]
            if each.by == by:
                for number in counts(each.text, stem):
                    last[number] = place
        self._counted[stem, by] = (end, last)
        return any(last.get(number, -1) >= since for number in wanted)

    def since(self, place: int, end: int) -> Iterator[Utterance]:
        """The utterances after one and before another, the latest first."""
        return (self._said[each] for each in range(end - 1, place, -1))

    def _candidates(self, forms: Sequence[Sequence[str]], end: int) -> Iterator[int]:
        """The places before `end`, the latest first, of all that may hold every run of one of the forms."""
        self.take_in()
        yield from range(end - 1, self._indexed - 1, -1)
        end = min(end, self._indexed)
        if not end:
            return
        if not all(forms):
            yield from range(end - 1, -1, -1)
            return
        rarest = [min((self._holding.get(run, _NOWHERE) for run in form), key=len) for form in forms]
        places = rarest[0] if len(rarest) == 1 else sorted({place for each in rarest for place in each})
        for index in range(bisect_left(places, end) - 1, -1, -1):
            yield places[index]

    def take_in(self) -> None:
        """Take apart what was said, but for the last of it."""
        if len(self._said) - self._indexed > 2 * _NEAR:
            end = len(self._said) - _NEAR
            for place in range(self._indexed, end):
                for run in self._said[place].runs:
                    self._holding.setdefault(run, []).append(place)
            self._indexed = end
