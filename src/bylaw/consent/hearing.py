"""What was said of one deed, in the order in which it is read, and what else could be meant by it.

The answer is read before the question, the question before the rest of what the agent put: the first that speaks of
values of the kind decides.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain
from typing import Literal

from msgspec import Struct

from bylaw.consent.argument import Argument, target_of
from bylaw.consent.deed import Deed
from bylaw.consent.line import heads
from bylaw.consent.passage import Passage, codes, passage_of, shape
from bylaw.consent.records import Record, Records
from bylaw.consent.spot import has_kind, spoken, spot_of, stands_in
from bylaw.text.once import once

Why = Literal["never", "another", "beside", "order", "price", "fee"]
"""Nobody told it; another was told; another stands beside it; it stands where another was meant; no price was told, or
not what the thing's record holds as one."""
_PLURAL = re.compile(
    r"\b(?:both|two|three|four|five|six|seven|these|those|them|all|cancel+ations|reservations|changes|actions|orders|"
    r"bookings|items)\b"
)
_NEGATED = re.compile(
    r"\b(?:cannot|can't|not (?:eligible|possible|be|allowed)|ineligible|unable|except|remains?|stays?)\b"
)
NOUGHT = Decimal(0)


class Said(Struct, frozen=True):
    """What was said in one exchange, as it is searched for values."""

    answer: Passage
    asked: Passage
    """The questions."""
    put: Passage
    """All that the agent put, without what it denies and what stands in brackets."""
    bracketed: Passage
    """The same with what stands in brackets."""
    raw: str
    """The same with what is denied in it."""


class Hearing:
    """What was said of one deed, and the records of what it is done to."""

    def __init__(
        self,
        said: Said,
        given: Sequence[Argument],
        records: Records,
        *,
        older: Callable[[], Iterable[Passage]] = tuple,
        tool: str = "",
        described: str = "",
        deed: Deed | None = None,
        now: float | None = None,
        is_met: Callable[[str], bool] = lambda _: True,
        is_clear: bool = True,
    ) -> None:
        self.answer, self.asked, self.put = said.answer, said.asked, said.put
        self.bracketed, self.raw = said.bracketed, said.raw
        self.older = older
        """What was said in exchanges before, the latest first."""
        self.given = given
        self.records = records
        self.tool = tool
        self.described = described
        """What the tool says of itself."""
        self.deed = deed
        self.now = now
        """When the call is made, in seconds; None where nobody knows."""
        self.is_met = is_met
        """Whether anybody has called a person by anything that the person's records hold."""
        self.is_clear = is_clear
        """Whether it is clear what is asked for where the only thing that anybody has seen goes without saying."""
        self.numbers = {NOUGHT, *(each.number for each in given if each.number is not None)}
        self.whys: dict[int, Why | None] = {}
        """What was found of its values so far, by their ids."""
        self._counts: dict[Passage, int] = {}
        self._spots: dict[tuple[int, Passage], int] = {}
        self._found_names: dict[tuple[str, str], frozenset[str]] = {}
        self._found_beside: dict[tuple[str, str], list[str]] = {}
        self._found_rivals: dict[tuple[str, str, Passage], dict[str, int]] = {}

    def regions(self, each: Argument) -> Iterator[Passage]:
        """What may tell a value, in the order in which it is read: the answer, the question, the sentence with most of
        the call, all that the agent put."""
        yield self.answer
        if each.kind == "id" and self._is_silent_of(each):
            return
        yield self.asked
        if self._is_alone(each):
            # With no other of its kind in all that was put, no part of it need be read by itself.
            yield self.put
            return
        if (closest := self._closest(each)) is not None:
            yield closest
        yield self.put
        if self.bracketed is not self.put:
            yield self.bracketed
        if each.kind in ("day", "choice", "name"):
            yield from self.older()

    def _is_alone(self, each: Argument) -> bool:
        """Whether a value stands in all that was put, and no other that could be meant."""
        if each.kind == "id":
            return self.put.place_of(each.key) >= 0 and not self.rivals(each, self.put)
        return each.kind == "sum" and self.put.sums <= self.numbers and self.spot(each, self.put) >= 0

    def tells_alone(self, each: Argument) -> bool:
        """Whether a sum is the only one of all that was said: no passage is read by itself."""
        return not self.answer.numbers and self._is_alone(each)

    def spot(self, each: Argument, passage: Passage) -> int:
        """Where a value of the call stands in a passage."""
        place = (id(each), passage)
        known = self._spots.get(place)
        if known is None:
            known = self._spots[place] = spot_of(each, passage)
        return known

    def _is_silent_of(self, each: Argument) -> bool:
        """Whether nothing that the agent put tells a thing of the kind."""
        told = self.bracketed
        return told.place_of(each.key) < 0 and not self.rivals(each, told) and self.by_marks(each, told) == "never"

    @once
    def lines(self) -> list[Passage]:
        """The sentences that may tell values: where the question is about several deeds all that was put, and
        otherwise what the agent says it would do."""
        if self.deed is None:
            return []
        lines = self.put.lines
        if not _PLURAL.search(f"{self.answer.words} {self.asked.words}"):
            lines = [line for line in lines if (named := heads(line)) and self.deed.is_called(named)]
        return [passage_of((line,)) for line in lines if not _NEGATED.search(line)]

    def _closest(self, each: Argument) -> Passage | None:
        """Of the sentences with values of a kind, those in which most of the call stands."""
        lines = [line for line in self.lines if has_kind(each, line) or self.stands(each, line)]
        with_kind = [(line, self._told_in(line)) for line in lines]
        best = max((score for _, score in with_kind), default=0)
        chosen = [line.words for line, score in with_kind if score == best]
        return passage_of(tuple(chosen)) if best and len(chosen) < len(self.put.lines) else None

    def _told_in(self, line: Passage) -> int:
        """How many values of the call stand in a sentence."""
        count = self._counts.get(line)
        if count is None:
            count = self._counts[line] = sum(self.stands(each, line) for each in self.given)
        return count

    def stands(self, each: Argument, line: Passage) -> bool:
        """Whether a value stands in a sentence, or what its record holds and no other does."""
        if each.kind == "id":
            if each.is_person or line.place_of(each.key) >= 0:
                return line.place_of(each.key) >= 0
            is_marked = line.endings or not line.marks.isdisjoint(self.records.marks_of(each.key))
            return bool(is_marked) and self.by_marks(each, line) is None
        if each.kind in ("choice", "name"):
            return stands_in(spoken(each.value), (), line)
        return self.spot(each, line) >= 0

    def rivals(self, each: Argument, passage: Passage) -> dict[str, int]:
        """Other ids in a passage that could have been given in its place."""
        place = (each.name, each.key, passage)
        known = self._found_rivals.get(place)
        if known is not None:
            return known
        mine, found = self.own, dict[str, int]()
        if passage.ids:
            kind = shape(each.key)
            found = {key: at for key, at in passage.ids.items() if key not in mine and shape(key) == kind}
        for key in passage.among(beside) if (beside := self.beside(each)) else ():
            if key not in mine and len(key) > 2 and (at := passage.may_tell(key)) >= 0:
                found[key] = at
        found = {key: at for key, at in found.items() if not self._has_own_field(key, each)} if found else found
        self._found_rivals[place] = found
        return found

    @once
    def own(self) -> set[str]:
        """The call's own values, and the codes within them."""
        values = [each.value.lower() for each in self.given]
        within = [codes(value) for value in values if not value.isalnum()]
        return {*(each.key for each in self.given), *values, *chain.from_iterable(within)}

    def beside(self, each: Argument) -> list[str]:
        """Other values that stand in fields of the same names."""
        known = self._found_beside.get((each.name, each.key))
        if known is None:
            known = self.records.beside(self._names(each), each.key)
            self._found_beside[each.name, each.key] = known
        return known

    def _names(self, each: Argument) -> frozenset[str]:
        """The names of the fields that a value stands in."""
        known = self._found_names.get((each.name, each.key))
        if known is None:
            known = frozenset((each.name, *self.records.names_of(each.key)))
            self._found_names[each.name, each.key] = known
        return known

    def _has_own_field(self, key: str, each: Argument) -> bool:
        """Whether a record gives a rival a field of its own, or says that it is what the call would change."""
        if not self.records.of(key):
            return False
        if self._names(each).isdisjoint(self.records.names_of(key)):
            return True
        current = {record.step for record in self.current}
        return bool(self.steps(key) & current - self.steps(each.key))

    def steps(self, key: str) -> set[int]:
        """The steps that showed a value."""
        return {record.step for _, record in self.records.of(key)}

    @once
    def target(self) -> Argument | None:
        return target_of(self.given, self.tool)

    @once
    def current(self) -> list[Record]:
        """The records of the thing that the call changes."""
        if self.target is None:
            return []
        return [record for _, record in self.records.of(self.target.key) if record.is_shown]

    def by_marks(self, each: Argument, passage: Passage) -> Why | None:
        """Whether a passage tells a thing by what its record holds and no other record of the kind does."""
        if passage.endings and any(each.key.endswith(figures) for figures in passage.endings):
            others = [key for key in self.beside(each) for figures in passage.endings if key.endswith(figures)]
            return "beside" if others else None
        if not passage.marks:
            return "never"
        names = self._names(each)
        held = self.records.marks_beside(names, passage.marks)
        if not held:
            return "never"
        own = held & self.records.marks_of(each.key)
        if own != held:
            return "beside" if own else "another"
        return "never" if self.records.is_shared(own, names, each.key) else None
