"""What was said of one deed, in the order in which it is read, and which thing is meant where it speaks of one.

The answer is read before the question, the question before the rest of what the agent put: the first that speaks of
values of the kind decides.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import chain, islice
from typing import Literal

from bylaw.consent.answer import is_neutral
from bylaw.consent.argument import Argument, target_of
from bylaw.consent.deed import Deed
from bylaw.consent.line import heads
from bylaw.consent.passage import Heard, Passage, codes, is_code, passage_of, shape
from bylaw.consent.records import Record, Records
from bylaw.consent.spot import NO_LABELS, has_kind, spans_of, spoken, spot_of, stands_in, stem_set, word_set
from bylaw.text.once import once
from bylaw.text.stem import stem

Why = Literal["never", "another", "beside", "order", "price", "fee"]
"""Nobody told it; another was told; another stands beside it; it stands where another was meant; no price was told, or
not what the thing's record holds as one."""
NOUGHT = Decimal(0)
_PLURAL = re.compile(
    r"\b(?:both|two|three|four|five|six|seven|these|those|them|all|cancel+ations|reservations|changes|actions|orders|"
    r"bookings|items)\b"
)
_NEGATED = re.compile(
    r"\b(?:cannot|can't|not (?:eligible|possible|be|allowed)|ineligible|unable|except|remains?|stays?)\b"
)
_NOBODY = frozenset(
    ("it", "that", "here", "there", "what", "let", "today", "tomorrow", "thursday", "friday", "saturday")
)
_ENDS = re.compile(r"\bend(?:ing|s)(?: in| with)? (\d+)\b")
_POINTS = r"\b(?:your|the|this|that|a|an|his|her|their|my|our|from|to)"


class Hearing:
    """What was said of one deed, and the records of what it is done to."""

    def __init__(
        self,
        said: Heard,
        given: Sequence[Argument],
        records: Records,
        *,
        deed: Deed | None = None,
        older: Callable[[], Iterable[Passage]] = tuple,
        now: float | None = None,
        is_met: Callable[[str], bool] = lambda _: True,
        is_clear: Callable[[], bool] = lambda: True,
    ) -> None:
        self.answer, self.asked, self.put = said.answer, said.asked, said.put
        self.bracketed, self.raw, self.questions = said.bracketed, said.raw, said.questions
        self.given = given
        self.records = records
        self.deed = deed
        self.older = older
        """What was said in exchanges before, the latest first."""
        self.now = now
        """When the call is made, in seconds; None where nobody knows."""
        self.is_met = is_met
        """Whether anybody has called a person by anything that the person's records hold."""
        self.is_clear = is_clear
        """Whether it is clear what is asked for where the only thing that anybody has seen goes without saying."""
        self.numbers = {NOUGHT, *[each.number for each in given]}
        self._counts: dict[Passage, int] = {}
        self._others: dict[Passage, dict[str, int]] = {}

    def regions(self, each: Argument, *, is_sole: bool = False) -> Iterator[Passage]:
        """What may tell a value, in the order in which it is read: the answer, the question, the sentence with most of
        the call, all that the agent put. Of the only value of its kind there no part need be read by itself."""
        yield self.answer
        yield self.asked
        if not is_sole and (closest := self._closest(each)) is not None:
            yield closest
        yield self.put
        if is_sole:
            return
        if self.bracketed is not self.put:
            yield self.bracketed
        if each.kind in ("day", "choice", "name"):
            yield from self.older()

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
            return bool(is_marked) and Thing(self, each).by_marks(line) is None
        if each.kind in ("choice", "name"):
            return stands_in(spoken(each.value), (), line)
        return spot_of(each, line) >= 0

    @once
    def own(self) -> set[str]:
        """The call's own values, and the codes within them."""
        values = [each.value.lower() for each in self.given]
        within = [codes(value) for value in values if not value.isalnum()]
        return {*[each.key for each in self.given], *values, *chain.from_iterable(within)}

    @once
    def spans(self) -> dict[int, list[tuple[int, int]]]:
        """Where each value stands in all that was put, with what stands in brackets."""
        return {id(each): spans_of(each, self.bracketed) for each in self.given}

    def others(self, passage: Passage) -> dict[str, int]:
        """What looks like an id in a passage, or is a value that records hold, and no value of the call."""
        found = self._others.get(passage)
        if found is None:
            ids, known = passage.ids, self.records.standing_in(passage)
            keys = (ids.keys() | known.keys()) - self.own if ids or known else ()
            found = {key: known[key] if key in known else ids[key] for key in keys} if keys else {}
            self._others[passage] = found
        return found

    def is_own_word(self, word: str) -> bool:
        """Whether a word is one of the tool's name or of an argument's, or for the deed."""
        names = [other.name for other in self.given]
        if self.deed is not None:
            names.append(self.deed.name)
        return any(stem(word) in stem_set(name) for name in names) or (
            self.deed is not None and self.deed.is_called((word,))
        )

    def knows(self, word: str) -> bool:
        """The same, or one of what the tool says of itself; where nobody knows the tool, all are."""
        return self.deed is None or self.is_own_word(word) or stem(word) in self.deed.described

    def steps(self, key: str) -> set[int]:
        """The steps that showed a value."""
        return {record.step for _, record in self.records.of(key)}

    @once
    def target(self) -> Argument | None:
        return target_of(self.given, self.deed.name if self.deed is not None else "")

    @once
    def current(self) -> list[Record]:
        """The records of the thing that the call changes."""
        if self.target is None:
            return []
        return [record for _, record in self.records.of(self.target.key) if record.is_shown]


class Thing:
    """An id of a call: what else could be meant by it, and what tells it from that."""

    def __init__(self, heard: Hearing, each: Argument) -> None:
        self._heard, self._records = heard, heard.records
        self.each, self.key = each, each.key

    @once
    def _names(self) -> frozenset[str]:
        """The names of the fields that it stands in."""
        return frozenset((self.each.name, *self._records.names_of(self.key)))

    def why(self) -> Why | None:
        """Why it was not surely told; None where it was.

        It may be told by what its record holds and no other of its kind does, or in an older message, where nothing of
        its kind was said since. What only the answer says the user asked for, but nobody told it.
        """
        heard, each = self._heard, self.each
        answer, asked, put = heard.answer, heard.asked, heard.put
        is_sole = put.place_of(self.key) >= 0 and not self.rivals(put)
        is_called = asked.place_of(self.key) >= 0 if asked.marks or asked.endings else True
        if is_sole and is_called and not (answer.marks or answer.ids or answer.endings):
            # Neither the answer nor the question calls a thing by anything else: none is read by itself.
            return None
        is_alone = not self._records.has_beside(self._names, self.key)
        is_seen_alone = is_alone and bool(self._records.of(self.key)) and heard.is_clear()
        is_of_user = each.is_user and is_alone and self._is_of_user()
        if each.is_person and (is_seen_alone or is_of_user) and not (self.rivals(put) or self.rivals(answer)):
            return None if is_of_user else self._person()
        found = self._in(answer)
        if found is None and not each.is_means and self._in(heard.bracketed) in ("never", "another"):
            # Of what the user names alone nothing was told.
            found = "never"
        if found != "never":
            return found
        if not self._is_silent:
            for passage in islice(heard.regions(each, is_sole=is_sole), 1, None):
                if (found := self._in(passage)) != "never":
                    return found
        if is_seen_alone:
            # The only one of its kind that anybody has seen, where nobody named another.
            return "another" if self._is_called_otherwise() else None
        for passage in heard.older():
            if (found := self._in(passage)) != "never":
                return found
        return "never"

    @property
    def _is_silent(self) -> bool:
        """Whether nothing that the agent put tells a thing of the kind."""
        told = self._heard.bracketed
        return told.place_of(self.key) < 0 and not self.rivals(told) and self.by_marks(told) == "never"

    def _is_of_user(self) -> bool:
        """Whether it only says for whom something is done: who that is, the user need not be told."""
        heard = self._heard
        tool = heard.deed.name if heard.deed is not None else ""
        return len(heard.given) > 1 and word_set(tool).isdisjoint(word_set(self.each.name))

    def _person(self) -> Why | None:
        """The same of the only person whose records anybody has seen: "your membership" is that of somebody who has
        said who they are."""
        heard = self._heard
        is_told = heard.answer.place_of(self.key) >= 0 or heard.put.place_of(self.key) >= 0
        if not is_told and self._is_called_otherwise():
            return "another"
        return None if heard.is_met(self.key) else "never"

    def _in(self, passage: Passage) -> Why | None:
        """The same in one passage."""
        heard, place, rivals = self._heard, passage.place_of(self.key), self.rivals(passage)
        if not rivals:
            return self.by_marks(passage) if place < 0 else None
        if place < 0:
            return "another"
        if any(other.kind in ("sum", "count") for other in heard.given):
            # Of "50 to AC-22 and AC-33" nobody knows whether each is paid as much.
            return "beside"
        spots = [(place, place + len(self.key)), *((at, at + len(key)) for key, at in rivals.items())]
        is_asked = passage in (heard.answer, heard.asked)
        is_meant = is_asked or (heard.deed is not None and heard.deed.stands_in(passage.line_at(place)))
        return None if is_meant and passage.joins(spots, self.each.name) else "beside"

    def rivals(self, passage: Passage) -> dict[str, int]:
        """Other ids in a passage that could have been given in its place."""
        if not (others := self._heard.others(passage)):
            return others
        kind, names_of = shape(self.key), self._records.names_of
        return {
            key: at
            for key, at in others.items()
            if (not self._names.isdisjoint(names_of(key)) or (key in passage.ids and shape(key) == kind))
            and not self._has_own_field(key)
        }

    def _has_own_field(self, key: str) -> bool:
        """Whether a record gives a rival a field of its own, or says that it is what the call would change."""
        if not self._records.of(key):
            return False
        if self._names.isdisjoint(self._records.names_of(key)):
            return True
        heard = self._heard
        current = {record.step for record in heard.current}
        return bool(heard.steps(key) & current - heard.steps(self.key))

    def by_marks(self, passage: Passage) -> Why | None:
        """Whether a passage tells it by what its record holds and no other record of the kind does."""
        if passage.endings and any(self.key.endswith(figures) for figures in passage.endings):
            beside = self._records.beside(self._names, self.key)
            others = [key for key in beside for figures in passage.endings if key.endswith(figures)]
            return "beside" if others else None
        held = self._records.marks_beside(self._names, passage.marks) if passage.marks else None
        if not held:
            return "never"
        own = held & self._records.marks_of(self.key)
        if own != held:
            return "beside" if own else "another"
        return "never" if self._records.is_shared(own, self._names, self.key) else None

    def _is_called_otherwise(self) -> bool:
        """Whether the agent spoke of somebody's thing, of another kind of it, or of one with a number or an id, that
        its records do not hold: "Bob's order", "your savings account", "order 7", "the one ending in 99"."""
        heard, raw = self._heard, self._heard.raw
        held = self._records.marks_of(self.key)

        def is_its_own(word: str) -> bool:
            is_end = word.isdigit() and self.key.endswith(word) and not self.key.removesuffix(word)[-1:].isdigit()
            return word == self.key or is_end or word in held or f"n:{word}" in held

        def is_known(code: str) -> bool:
            return code in heard.own or self._records.holds(code)

        for name in word_set(self.each.name) - NO_LABELS:
            if name not in raw:
                continue
            called, kinds = _calling(name)
            for found in called.finditer(raw):
                word = found[1] or found[2]
                if word not in _NOBODY and not is_its_own(word) and not (is_code(word) and is_known(word)):
                    return True
            for kind in kinds.findall(raw):
                if not (is_its_own(kind) or is_neutral(kind) or heard.is_own_word(kind)):
                    return True
        endings = _ENDS.findall(raw) if "end" in raw else ()
        if not all(map(self._records.ends, endings)):
            return True
        return not all(is_known(key) for passage in {heard.answer, heard.bracketed} for key in passage.ids)


@lru_cache(maxsize=1024)
def _calling(name: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """How a thing of a name is called: by whose it is or its number, and by its kind."""
    return (
        re.compile(rf"\b([a-z]+)'s (?:\w+ )?{name}\b|\b{name}s?(?: number| no\.?| id)? #?(\w*\d\w*)"),
        re.compile(rf"{_POINTS} ([a-z]+) {name}\b"),
    )
