"""Whether a value of a call was told for this deed, by exclusion: where another could be meant, it was not.

The answer is read before the question, the question before the rest of what the agent put: the first that speaks of
values of the kind decides. What only the answer says the user asked for, but nobody told it. An id may be told by what
its record holds and no other of its kind does, or in an older message, where nothing of its kind was said since.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from itertools import chain, combinations, islice, product
from typing import Literal

from bylaw.consent.answer import is_neutral
from bylaw.consent.argument import Argument
from bylaw.consent.deed import Deed
from bylaw.consent.marks import number_mark
from bylaw.consent.passage import Passage, codes, passage_of, shape
from bylaw.consent.put import heads
from bylaw.consent.records import Record, Records
from bylaw.consent.spot import (
    MOVED,
    NO_LABELS,
    PLAIN,
    SOURCES,
    are_words_of,
    has_kind,
    is_about,
    is_label,
    is_led,
    is_left_behind,
    is_told_of_another,
    place_of_any,
    spoken,
    spot_of,
    stands_in,
)
from bylaw.facts.value import loose
from bylaw.policy.verb import words_of
from bylaw.text.identifier import is_prose
from bylaw.text.number import figure
from bylaw.text.once import once
from bylaw.text.stem import stem

Why = Literal["never", "another", "beside", "order", "price"]
"""Nobody told it; another was told; another stands beside it; it stands where another was meant; no price was told."""
_VAGUE = re.compile(
    r"\b(?:exact|final|actual) (?:amount|cost|price|difference|total|charge)|(?:amount|cost|price|difference|"
    r"charge)s?\b"
    r".{0,25}\b(?:calculated|determined|computed|known)"
)
_PRICED = re.compile(r"\b(?:pay|paid|payment|charge|refund|cost|total|difference|fee|price|fare)")
_PAST = re.compile(r"\b(?:history|original|paid|balance|remaining|available|previous|current)")
_GRATIS = re.compile(
    r"\bfree\b|\bno (?:\w+ )?(?:charge|cost|fee|payment|additional|extra|difference|price)|\bwithout (?:charge|cost)|"
    r"\bnothing (?:to pay|more|extra)|[$\u20ac\u00a3]\s?0(?:\.00)?\b"
)
_COUNTED = re.compile(r"\b(?:both|two|three|four|five|six|seven)\b")
_COUNTS = {"both": 2, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
_PLURAL = re.compile(r"\b(?:these|those|them|all|cancel+ations|reservations|changes|actions|orders|bookings|items)\b")
_NEGATED = re.compile(
    r"\b(?:cannot|can't|not (?:eligible|possible|be|allowed)|ineligible|unable|except|remains?|stays?)\b"
)
_OFF = re.compile(r"\b(?:no|not|none|without|0|zero|off|false|declin\w*|\w+n't)\b")
_NOBODY = frozenset(
    ("it", "that", "here", "there", "what", "let", "today", "tomorrow", "thursday", "friday", "saturday")
)
_YEAR = 370
_PARTS, _OFTEN = 4, 20
_EACH = re.compile(r"\b(?:each|per|a (?:piece|box|head|person|night|day|seat|ticket))\b|\d\s?[x\u00d7]|[x\u00d7]\s?\d")
_BOUND = re.compile(r"\b(?:until|back by|refundable (?:until|before)|no later than) [^,;\n]{1,40}")
"""What something is moved away from, and how long it holds."""
_MOVABLE = frozenset(("day", "time", "sum", "count"))
_FEES = frozenset(("fee", "fees", "penalty", "surcharge", "difference"))
_PRICES = frozenset(("price", "cost", "monthly"))
"""Words in the names of fields that say what a deed costs beside what its arguments say, and what a thing costs."""
_VAGUE_NAMES = frozenset(("total", "number", "count", "quantity", "new", "nonfree", "amount", "num", "qty"))


class Hearing:
    """What was said of one deed, in the order in which it is read."""

    def __init__(
        self,
        near: Sequence[Passage],
        older: Callable[[], Iterable[Passage]],
        given: Sequence[Argument],
        records: Records,
        before: int,
        *,
        tool: str = "",
        deed: Deed | None = None,
        raw: str = "",
        bracketed: Passage | None = None,
        now: float | None = None,
        is_met: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._near = near
        """The answer, the question, all that was put; then the same with what was put before it and still stands."""
        self._put = near[-1]
        self._raw = raw or self._put.words
        """All that was put, with what is denied in it."""
        self._bracketed = bracketed or self._put
        """All that was put, with what stands in brackets."""
        self._older = older
        """What was said in exchanges before, the latest first."""
        self._given = given
        self._records = records
        self._before = before
        self._tool = tool
        self._now = now
        """When the call is made, in seconds; None where nobody knows."""
        self._deed = deed
        self._is_met = is_met
        """Whether anybody has called a person by anything that the person's records hold."""
        self._numbers = {each.number for each in given if each.number is not None} | {Decimal(0)}
        self._found_beside: dict[tuple[str, str], list[str]] = {}
        self._found_rivals: dict[tuple[str, str, Passage], dict[str, int]] = {}
        self._marks_beside: dict[tuple[str, str], list[frozenset[str]]] = {}

    def untold(self) -> list[tuple[Argument, Why]]:
        """The values that were not surely told."""
        found: list[tuple[Argument, Why]] = [
            (each, why) for each in self._given if (why := self._why(each)) and not self._is_implied(each)
        ]
        if not found:
            found.extend((each, "another") for each in self._given if self._is_of_another(each))
        found.extend((each, "price") for each in self._given if self._is_fee_untold(each))
        if not found:
            found.extend((each, "order") for each in self._given if each.item and self._is_crossed(each))
        if not any(each.kind == "sum" for each in self._given):
            means = next((each for each in self._given if each.is_means), None)
            if means is not None and not self._tells_price:
                found.append((means, "price"))
        return found

    def _is_of_another(self, each: Argument) -> bool:
        def is_known(word: str) -> bool:
            own = chain(words_of(self._tool), *(words_of(other.name) for other in self._given))
            return stem(word) in map(stem, own) or self._deed is None or self._deed.is_called((word,))

        return is_told_of_another(each, self._bracketed, is_known)

    def _is_crossed(self, each: Argument) -> bool:
        """Whether the values of one object of several were told beside those of another: pairs are swapped."""
        items: dict[int, list[Argument]] = {}
        of_top = [other for other in self._given if other.top == each.top and other.item]
        shared = {other.key for other in of_top for more in of_top if other.item != more.item and other.key == more.key}
        for other in of_top:
            if other.key not in shared and place_of_any(other, self._bracketed) >= 0:
                items.setdefault(other.item, []).append(other)
        own, others = items.pop(each.item, []), [other for some in items.values() for other in some]
        if len(own) < 2 or not others or each not in own:
            return False
        for line in (passage_of((line,)) for line in self._bracketed.lines):
            if all(place_of_any(one, line) >= 0 for one in own) and all(
                place_of_any(other, line) < 0 for other in others
            ):
                return False
        spans = [[place_of_any(one, self._bracketed) for one in some] for some in (own, *items.values())]
        return any(min(spans[0]) < max(span) and min(span) < max(spans[0]) for span in spans[1:] if len(span) > 1)

    @property
    def is_chosen(self) -> bool:
        """Whether the answer names a value of the call that the agent had put."""
        answer = self._near[0]
        return any(
            (each.kind == "id" and self._id_in(each, answer) is None)
            or (each.day is not None and any(day.may_be(each.day) for day in answer.days))
            or (each.number is not None and any(number.value == each.number for number in answer.numbers))
            or (each.kind == "time" and all(at in answer.times for at in each.at))
            or (each.kind in ("choice", "name") and stands_in(spoken(each.value), (), answer))
            for each in self._given
        )

    def _regions(self, each: Argument) -> Iterator[Passage]:
        """The same without what something is moved away from, where the call has one value of the kind."""
        passages = self._read_in_turn(each)
        if each.kind not in _MOVABLE or not SOURCES.isdisjoint(words_of(each.name)):
            return passages
        is_one = not any(other.kind == each.kind and other.top != each.top for other in self._given)
        return self._unmoved(each, passages) if is_one else passages

    def _unmoved(self, each: Argument, passages: Iterable[Passage]) -> Iterator[Passage]:
        for passage in passages:
            left = MOVED.sub("; ", passage.words)
            left = _BOUND.sub("; ", left) if each.kind in ("day", "time") else left
            yield passage if left == passage.words else passage_of(tuple(left.split("\n")))

    def _read_in_turn(self, each: Argument) -> Iterator[Passage]:
        """What may tell a value, in the order in which it is read: the answer, the question, what the agent labelled
        with the argument's name, all that it put, and with it what it had put before."""
        yield from self._near[:2]
        if self._is_alone(each):
            # With no other of its kind in all that was put, no part of it need be read by itself.
            yield self._near[2]
            return
        if (closest := self._closest(each)) is not None:
            yield closest
        for passage in self._near[2:]:
            told = [line for line, words in passage.labelled if is_label(words, each.name, each.top)]
            if told:
                yield passage_of(tuple(told))
            yield passage
        yield self._bracketed
        if each.kind in ("day", "choice", "name"):
            yield from self._older()

    def _is_alone(self, each: Argument) -> bool:
        """Whether a value stands in all that was put, and no other that could be meant."""
        if len(self._near) < 3:
            return False
        put = self._near[2]
        if each.kind == "id":
            return put.place_of(each.key) >= 0 and not self._rivals(each, put)
        if each.kind == "sum":
            return spot_of(each, put) >= 0 and not put.sums - self._numbers
        return False

    @once
    def _lines(self) -> list[tuple[Passage, frozenset[Argument]]]:
        """The sentences that may tell values, each with the values of the call that stand in it: where the question
        is about several deeds all that was put, and otherwise what the agent says it would do."""
        if len(self._near) < 3 or self._deed is None:
            return []
        lines = self._near[2].lines
        if not self._is_plural:
            lines = [line for line in lines if (named := heads(line)) and self._deed.is_called(named)]
        told = [passage_of((line,)) for line in lines if not _NEGATED.search(line)]
        return [(line, frozenset(each for each in self._given if self._stands(each, line))) for line in told]

    @once
    def _is_plural(self) -> bool:
        asked = f"{self._near[0].words} {self._near[1].words}"
        return bool(_counted(asked) or _PLURAL.search(asked))

    def _closest(self, each: Argument) -> Passage | None:
        """Of the sentences with values of a kind, those in which most of the call stands."""
        with_kind = [(line, len(told)) for line, told in self._lines if each in told or has_kind(each, line)]
        best = max((score for _, score in with_kind), default=0)
        chosen = [line.words for line, score in with_kind if score == best]
        return passage_of(tuple(chosen)) if best and len(chosen) < len(self._near[2].lines) else None

    def _stands(self, each: Argument, line: Passage) -> bool:
        """Whether a value stands in a sentence, or what its record holds and no other does."""
        if each.kind == "id":
            if each.is_person or line.place_of(each.key) >= 0:
                return line.place_of(each.key) >= 0
            is_marked = line.endings or not line.marks.isdisjoint(self._records.marks_of(each.key, self._before))
            return bool(is_marked) and self._by_marks(each, line) is None
        if each.kind in ("choice", "name"):
            return stands_in(spoken(each.value), (), line)
        return spot_of(each, line) >= 0

    @once
    def _tells_price(self) -> bool:
        """Whether it was told what money moves: a sum that is no record's own, or that there is none."""
        own = self._deed.own if self._deed is not None else ()
        if any(_GRATIS.search(line) for line in self._raw.split("\n") if any(each in line for each in own)):
            return True
        if _VAGUE.search(self._raw):
            return False
        if _GRATIS.search(self._raw):
            return True
        means = [each for each in self._given if each.is_means]
        for line in (passage_of((words,)) for words in self._put.words.split("\n") if not _PAST.search(words)):
            if line.sums and (_PRICED.search(line.words) or any(self._stands(each, line) for each in means)):
                return True
        return any(not self._records.fields_with(number_mark(each), self._before) for each in self._put.sums)

    def _is_fee_untold(self, each: Argument) -> bool:
        """Whether the record of a thing holds a fee, or the price of what the call would take, that nobody told."""
        if each.kind != "id" or each.is_person or each.is_means:
            return False
        entries = reversed(self._records.of(each.key, self._before))
        shown = next((entry.record for entry in entries if entry.record.is_shown), None)
        if shown is None or not any(_due(shown.fields)) or (target := self._target) is None:
            return False
        # What is part of the thing at hand was paid for before.
        is_paid = any(other.is_means for other in self._given)
        is_had = bool(self._steps(each.key) & self._steps(target.key)) and not is_paid
        fees, prices = _due(shown.fields)
        return not (fees if is_had else fees | prices) <= self._every_number

    @once
    def _every_number(self) -> set[Decimal]:
        """The numbers that the agent named in any way."""
        return {abs(number.value) for number in (*self._bracketed.numbers, *passage_of((self._raw,)).numbers)}

    def _why(self, each: Argument) -> Why | None:
        match each.kind:
            case "id":
                return self._id(each)
            case "sum":
                return self._sum(each)
            case "day":
                return self._day(each)
            case "time":
                return self._time(each)
            case "count":
                return self._count(each)
            case "choice":
                return self._choice(each)
            case "flag":
                return self._flag(each)
            case "name":
                return self._name(each)

    def _is_implied(self, each: Argument) -> bool:
        """Whether it is a part of a thing that was told: the date of birth of a passenger, the day of a flight."""
        if each.kind in ("name", "choice") and self._is_of_record(each):
            return True
        if each.name == each.top or each.kind in ("sum", "id"):
            return False
        if each.day is not None and any(day.may_be(each.day) for day in self._bracketed.days):
            return True
        things = [other for other in self._given if other.top == each.top and other is not each]
        records = [entry.record for other in things for entry in self._records.of(other.key, self._before)]
        return any((each.name, each.key) in record.fields for record in records)

    def _is_of_record(self, each: Argument) -> bool:
        """Whether a thing that was told has the value, or the value names the field that held what was told."""
        for other in self._given:
            if other.kind == "id" and not other.is_person and not self._why(other):
                entries = self._records.of(other.key, self._before)
                held = [[key for name, key in entry.record.fields if name == each.name] for entry in entries]
                if [each.key] in held:
                    return True
        ids = [other for other in self._given if other.kind == "id"]
        fields = [
            at for other in ids for entry in self._records.of(other.key, self._before) for at in entry.record.fields
        ]
        return any(loose(name) == each.key and len(key) > 2 and self._put.place_of(key) >= 0 for name, key in fields)

    # Ids

    def _id(self, each: Argument) -> Why | None:
        if self._is_plain(each):
            return None
        is_seen_alone = self._records.of(each.key, self._before) and not self._beside(each)
        is_alone = is_seen_alone or (self._is_of_user(each) and not self._beside(each))
        said = (self._near[0], self._near[-1])
        if each.is_person and is_alone and not any(self._rivals(each, passage) for passage in said):
            # "Your membership" is that of somebody who has said who they are.
            return None if self._is_of_user(each) or self._is_met(each.key) else "never"
        for passage in self._regions(each):
            found = self._id_in(each, passage)
            if found is None and passage is self._near[0] and not each.is_means:
                # Of what the user names alone nothing was told.
                found = "never" if self._id_in(each, self._bracketed) in ("never", "another") else None
            if found != "never":
                return found
        if is_seen_alone:
            # The only one of its kind that anybody has seen, where nobody named another.
            return "another" if self._is_called_otherwise(each) else None
        for passage in self._older():
            found = self._id_in(each, passage)
            if found != "never":
                return found
        return "never"

    def _is_plain(self, each: Argument) -> bool:
        """Whether an id stands in what was put with none that could be meant instead, and neither the answer nor the
        question calls a thing by anything else: nothing need be read passage by passage."""
        if len(self._near) < 3 or not self._is_bare_answer:
            return False
        asked, put, key = self._near[1], self._near[2], each.key
        if put.place_of(key) < 0 or self._rivals(each, put):
            return False
        if asked.place_of(key) < 0:
            return not (asked.marks or asked.endings) and self._in_order(each, put) is None
        return self._in_order(each, asked) is None

    @once
    def _is_bare_answer(self) -> bool:
        answer = self._near[0]
        return not (answer.marks or answer.ids or answer.endings)

    def _is_called_otherwise(self, each: Argument) -> bool:
        """Whether the agent spoke of somebody's thing, or of one with a number, that the thing's records do not hold:
        "Bob's order", "order 7"."""
        names = [word for word in words_of(each.name) if word not in NO_LABELS]
        held = self._records.marks_of(each.key, self._before)
        for name in names:
            called = rf"\b([a-z]+)'s (?:\w+ )?{name}\b|\b{name}s?(?: number| no\.?| id)? #?(\w*\d\w*)"
            for found in re.finditer(called, self._raw):
                word = found[1] or found[2]
                if word not in _NOBODY and word not in held and f"n:{word}" not in held and word not in each.key:
                    return True
        return False

    def _is_of_user(self, each: Argument) -> bool:
        """Whether it only says for whom something is done: who that is, the user need not be told."""
        return each.is_user and len(self._given) > 1 and not set(words_of(self._tool)) & set(words_of(each.name))

    def _id_in(self, each: Argument, passage: Passage) -> Why | None:
        place = passage.place_of(each.key)
        rivals = self._rivals(each, passage)
        if place < 0 and not rivals:
            return self._by_marks(each, passage)
        if place < 0:
            return "another"
        if not rivals:
            return self._in_order(each, passage)
        spots = [(place, place + len(each.key)), *((at, at + len(key)) for key, at in rivals.items())]
        if passage in self._near[:2]:
            return None if passage.joins(spots) else "beside"
        if self._deed is not None and self._deed.stands_in(passage.line_at(place)) and passage.joins(spots):
            return None
        return None if self._are_all_meant(each, rivals, passage) else "beside"

    def _are_all_meant(self, each: Argument, rivals: Iterable[str], passage: Passage) -> bool:
        """Whether the question is about all ids of the kind: they are one list, and it says so, or says how many."""
        asked = f"{self._near[0].words} {self._near[1].words}" if len(self._near) > 1 else ""
        keys = [each.key, *rivals]
        counts = _counted(asked)
        if (counts and len(keys) not in counts) or _NEGATED.search(self._raw) or not (counts or _PLURAL.search(asked)):
            return False
        lines = [[key for key in keys if passage_of((line,)).place_of(key) >= 0] for line in passage.lines]
        lines = [line for line in lines if line]
        return len(lines) == 1 or (all(len(line) == 1 for line in lines) and len(lines) == len(keys))

    def _rivals(self, each: Argument, passage: Passage) -> dict[str, int]:
        """Other ids in a passage that could have been given in its place."""
        known = self._found_rivals.get((each.name, each.key, passage))
        if known is not None:
            return known
        mine = self._own
        kind = shape(each.key)
        found = {key: at for key, at in passage.ids.items() if key not in mine and shape(key) == kind}
        words = passage.words
        for key in self._beside(each):
            # Whole, an id stands in the words as it is, unless something joins its parts.
            may_stand = key in words or "_" in key or "-" in key
            if may_stand and key not in mine and len(key) > 2 and (at := passage.place_of(key)) >= 0:
                found[key] = at
        found = {key: at for key, at in found.items() if not self._has_own_field(key, each)} if found else found
        self._found_rivals[each.name, each.key, passage] = found
        return found

    @once
    def _own(self) -> set[str]:
        """The call's own values, and the codes within them."""
        return {code for each in self._given for code in (each.key, *codes(each.value.lower()))}

    def _names(self, each: Argument) -> frozenset[str]:
        return frozenset((each.name, *self._records.names_of(each.key, self._before)))

    def _beside(self, each: Argument) -> list[str]:
        """Other values that stand in fields of the same names."""
        known = self._found_beside.get((each.name, each.key))
        if known is None:
            known = self._records.beside(self._names(each), each.key, self._before)
            self._found_beside[each.name, each.key] = known
        return known

    def _has_own_field(self, key: str, each: Argument) -> bool:
        """Whether a record gives a rival a field of its own, or says that it is what the call would change."""
        entries = self._records.of(key, self._before)
        if not entries:
            return False
        if self._names(each).isdisjoint(self._records.names_of(key, self._before)):
            return True
        current = {record.step for record in self._current}
        return bool(self._steps(key) & current - self._steps(each.key))

    def _steps(self, key: str) -> set[int]:
        """The steps that showed a value."""
        return {entry.record.step for entry in self._records.of(key, self._before)}

    @once
    def _target(self) -> Argument | None:
        return target_of(self._given, self._tool)

    @once
    def _current(self) -> list[Record]:
        """The records of the thing that the call changes."""
        target = self._target
        if target is None:
            return []
        return [entry.record for entry in self._records.of(target.key, self._before) if entry.record.is_shown]

    def _by_marks(self, each: Argument, passage: Passage) -> Why | None:
        """Whether a passage tells a thing by what its record holds and no other record of the kind does."""
        if any(each.key.endswith(figures) for figures in passage.endings):
            others = [key for key in self._beside(each) for figures in passage.endings if key.endswith(figures)]
            return "beside" if others else None
        if not passage.marks:
            return "never"
        own = self._records.marks_of(each.key, self._before) & passage.marks
        others = self._beside_marks(each)
        if (rest := passage.marks - own) and not all(map(rest.isdisjoint, others)):
            return "beside" if own else "another"
        return None if own and not any(own <= other for other in others) else "never"

    def _beside_marks(self, each: Argument) -> list[frozenset[str]]:
        """The marks of other values that stand in fields of the same names."""
        known = self._marks_beside.get((each.name, each.key))
        if known is None:
            known = self._records.marks_of_each(self._beside(each), self._before, self._names(each))
            self._marks_beside[each.name, each.key] = known
        return known

    def _in_order(self, each: Argument, passage: Passage) -> Why | None:
        """Where a call gives several values of a kind, each must stand where its argument says."""
        kin = [other for other in self._given if other.kind == each.kind and other.top != each.top]
        kin = [other for other in kin if each.kind != "id" or shape(other.key) == shape(each.key)]
        if not kin:
            return None
        stood = [(spot, at) for at in self._given if (at is each or at in kin) and (spot := spot_of(at, passage)) >= 0]
        if all(is_led(other, spot, passage) for spot, other in stood):
            return None
        if any(is_led(other, spot, passage, besides=at) for spot, at in stood for _, other in stood if other is not at):
            return "order"
        return None if [spot for spot, _ in stood] == sorted(spot for spot, _ in stood) else "order"

    # Sums and days

    def _sum(self, each: Argument) -> Why | None:
        if not each.number:
            return "another" if self._put.sums - self._numbers and not _GRATIS.search(self._raw) else None
        sums = [other.number for other in self._given if other.kind == "sum" and other.number is not None]
        known = self._numbers | {sum(some, Decimal(0)) for count in (2, 3) for some in combinations(sums, count)}

        def others(passage: Passage) -> list[str]:
            left = passage.sums - known
            return [] if left and _add_up(left, each.number, passage) else [number_mark(other) for other in left]

        return self._among(each, others)

    def _day(self, each: Argument) -> Why | None:
        if each.at and (why := self._time(each)):
            return why
        if self._is_far(each):
            return "never"
        mine = [other.day for other in self._given if other.day is not None]
        return self._among(
            each,
            lambda passage: [
                f"d:{day.month}-{day.day}" for day in passage.days if not any(day.may_be(other) for other in mine)
            ],
        )

    def _is_far(self, each: Argument) -> bool:
        """Whether a day that was told without its year is more than a year away: "March 3" is the next or the last."""
        told = [day for day in self._bracketed.days if each.day is not None and day.may_be(each.day)]
        if self._now is None or each.day is None or any(day.year for day in told):
            return False
        return abs((each.day - datetime.fromtimestamp(self._now, UTC).date()).days) > _YEAR

    def _time(self, each: Argument) -> Why | None:
        """Whether a time of day stands in what is read first of all that tells one, with no other beside it."""
        mine = {at for other in self._given for at in other.at}
        for passage in self._regions(each):
            stands = all(at in passage.times for at in each.at)
            if passage.times - mine:
                return "beside" if stands else "another"
            if stands:
                return None
        return "never"

    def _among(self, each: Argument, others: Callable[[Passage], list[str]]) -> Why | None:
        """Whether a sum or a day stands in what is read first of all that tells one, with no other beside it."""
        if spot_of(each, self._put) < 0 and others(self._put):
            return "another"
        for passage in self._regions(each):
            stands, rivals = spot_of(each, passage) >= 0, others(passage)
            if rivals and not self._are_elsewhere(rivals, each):
                return "beside" if stands else "another"
            if stands:
                return self._in_order(each, passage)
        return "never"

    def _are_elsewhere(self, rivals: Iterable[str], each: Argument) -> bool:
        """Whether records hold every rival under a name of its own: for a day one that the value does not have, for a
        sum one without a word of the argument's, where the value itself has none or one with such a word."""
        if each.day is not None:
            own = self._records.fields_with(_day_mark(each), self._before)
            return all(self._records.fields_with(rival, self._before) - own for rival in rivals)
        assert each.number is not None
        words = set(words_of(each.name))
        fields = self._records.fields_with(number_mark(each.number), self._before)
        if fields and not any(words & set(words_of(name)) for name in fields):
            return False
        for rival in rivals:
            if not fields and rival in self._things:
                continue
            names = self._records.fields_with(rival, self._before)
            if not names or any(words & set(words_of(name)) for name in names - fields):
                return False
        return True

    @once
    def _things(self) -> frozenset[str]:
        """What the records of the call's own things hold: a card's balance, the price that was paid."""
        ids = [each for each in self._given if each.kind == "id" and not each.is_person]
        entries = (entry for each in ids for entry in self._records.of(each.key, self._before))
        return frozenset(mark for entry in entries for mark in entry.record.marks)

    # Everything else

    def _count(self, each: Argument) -> Why | None:
        names = [word for word in words_of(each.name) if len(word) > 2 and word not in _VAGUE_NAMES]
        if not each.number:
            # "No bags" is none of them; and where two bags were told, none of them need be said to cost anything.
            told = [line for line in self._raw.split("\n") if any(is_about(line, name) for name in names)]
            is_part = any(other.kind == "count" and other.number and _share(other, each) for other in self._given)
            others = any(passage_of((line,)).counts - self._numbers for line in told)
            if told and not others and (is_part or all(map(_OFF.search, told))):
                return None
        for passage in islice(self._regions(each), 1, None):
            lines = [line for line in passage.lines if any(is_about(line, name) for name in names)]
            for told in ([passage_of((line,)) for line in lines], [passage]):
                bare = {number for line in told for number in line.counts | _of_unit(line, names)}
                if each.number in bare:
                    return "beside" if bare - self._numbers else None
        return "never"

    def _choice(self, each: Argument) -> Why | None:
        own = spoken(each.value)
        others = [spoken(word) for word in each.others]
        current = {key for record in self._current for name, key in record.fields if name == each.name}
        mine = {spoken(other.value) for other in self._given}
        if not stands_in(own, others, self._bracketed):
            if any(stands_in(word, [own, *others], self._bracketed) for word in others):
                return "another"
            if each.key in current:
                return None
        rest = islice(self._regions(each), 2, None)
        for passage in chain(self._near[:2], islice(rest, 1), (self._bracketed,), rest):
            stands = stands_in(own, others, passage)
            rivals = [word for word in others if word not in mine and stands_in(word, [own, *others], passage)]
            if stands and rivals:
                left = [word for word in rivals if word.replace(" ", "_") not in current]
                return None if not left and each.key not in current else "beside"
            if stands:
                return None
            if rivals:
                return "another"
        return "never"

    def _flag(self, each: Argument) -> Why | None:
        names = [word for word in words_of(each.name) if len(word) > 3]
        lines = [line for line in self._raw.split("\n") if any(is_about(line, name) for name in names)]
        off = [line for line in lines if _OFF.search(line)]
        if each.is_on:
            return None if lines and not off else "beside" if lines else "never"
        return "never" if not lines else None if len(off) == len(lines) else "beside"

    def _name(self, each: Argument) -> Why | None:
        phrase = spoken(each.value)
        if is_prose(each.value):
            # What is written in the user's name is told word for word, in whatever order.
            return None if set(PLAIN.findall(phrase)) <= set(PLAIN.findall(self._bracketed.unjoined)) else "never"
        is_current = any((each.name, each.key) in record.fields for record in self._current)
        for passage in (*self._near[1:], self._bracketed):
            if phrase and not is_neutral(phrase) and (stands_in(phrase, (), passage) or are_words_of(phrase, passage)):
                if is_left_behind(each, phrase, passage):
                    return "another"
                return "beside" if is_current and each.top == each.name and passage is not self._near[:2][-1] else None
        return None if is_current else "never"


@lru_cache(maxsize=4096)
def _due(fields: frozenset[tuple[str, str]]) -> tuple[frozenset[Decimal], frozenset[Decimal]]:
    """The fees in a record, and the prices."""
    fees, prices = (
        frozenset(
            due
            for name, key in fields
            if not wanted.isdisjoint(words_of(name)) and (due := figure(key)) is not None and due > 0
        )
        for wanted in (_FEES, _PRICES)
    )
    return fees, prices


def target_of(given: Sequence[Argument], tool: str) -> Argument | None:
    """The id of the thing that a call acts on: the one that the tool is named by, or else one that is no person's."""
    things = [each for each in given if each.kind == "id" and each.name == each.top and not each.is_means]
    named = set(words_of(tool))
    target = next((each for each in things if named & set(words_of(each.name)) - {"id"}), None)
    return target or next((each for each in things if not each.is_person), None)


def _add_up(parts: frozenset[Decimal], total: Decimal | None, passage: Passage) -> bool:
    """Whether a sum is told with what it is made of: "92.00 plus a fee of 2.50, 94.50"; "3 at 18.00 each, 54.00"."""
    if total is None or len(parts) > _PARTS or any(part >= total for part in parts):
        return False
    several = [int(each) for each in passage.counts if 1 < each <= _OFTEN] if _EACH.search(passage.words) else []
    ways = [[part * times for times in (1, *several)] for part in parts]
    return any(sum(way) == total for way in product(*ways))


def _counted(words: str) -> set[int]:
    """How many things a question says it is about: `both`, `all three`."""
    return {_COUNTS[match[0]] for match in _COUNTED.finditer(words)}


def _share(one: Argument, other: Argument) -> bool:
    """Whether two arguments count the same: `total_baggages` and `nonfree_baggages`."""
    return bool(set(words_of(one.name)) & set(words_of(other.name)) - _VAGUE_NAMES)


def _of_unit(line: Passage, names: Sequence[str]) -> set[Decimal]:
    """Numbers that stand before the name of what they count: 12 of "for 12 months", where the call has `months`."""
    return {
        number.value
        for number in line.numbers
        if (after := PLAIN.match(line.words, number.end + 1)) and any(is_about(after[0], name) for name in names)
    }


def _day_mark(each: Argument) -> str:
    return f"d:{each.day.month}-{each.day.day}" if each.day is not None else ""
