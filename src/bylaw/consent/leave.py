"""Whether the agent asked for leave to do just this, as it told it and with nothing beside it."""

import re
from collections.abc import Sequence

from bylaw.consent.argument import Argument, target_of
from bylaw.consent.deed import Deeds
from bylaw.consent.line import Line, is_about_what_was_told
from bylaw.consent.passage import shape
from bylaw.consent.put import Put
from bylaw.consent.records import Records
from bylaw.consent.talk import Exchange
from bylaw.facts.call_record import CallRecord
from bylaw.policy.verb import words_of
from bylaw.text.stem import stem

_MANY = 20
_OF = r"[^,;.\n]{0,24}\b(?:of|from|in|on)\b[^,;.\n]{0,24}"
_FOR = r"[^,;.\n]{0,24}\bfor\b[^,;.\n]{0,24}"


class Leave:
    """What one message asks leave for, beside a call."""

    def __init__(self, call: CallRecord, given: Sequence[Argument], deeds: Deeds, records: Records) -> None:
        self._call, self._given, self._records = call, given, records
        self._deeds, self._deed = deeds, deeds.of(call.call.tool)
        self._own: set[str] = set()

    def is_asked_in(self, exchanges: Sequence[Exchange]) -> bool:
        """Whether the last of these exchanges asks for it."""
        last = exchanges[-1]
        return self._is_named(exchanges) and self._asks_for(last) and self._is_for_this(last)

    def _is_named(self, exchanges: Sequence[Exchange]) -> bool:
        """Whether the deed was named: by the agent, or by the user where the agent told what it is done with."""
        told, deed = exchanges[-1].stated.words, self._deed
        if deed.stands_in(told):
            return True
        kinds = {each.kind for each in self._given if each.number != 0}
        is_more = not kinds.isdisjoint(("sum", "day", "time", "count", "choice", "name"))
        if not is_more or any(deed.stands_in(each.said_back.words) for each in exchanges):
            return is_more
        return not any(each.stands_in(told) for each in self._deeds.writing(deed, self._thing))

    def _asks_for(self, last: Exchange) -> bool:
        """Whether what the questions for leave would do is this deed, or else what stands right before them is; a
        question that names no other deed either is about what was told."""
        deed, asked = self._deed, last.put.questions
        for line in asked:
            if deed.is_asked_in(line.words, line.heads):
                return True
        told = [line for line in asked if line.heads] or [line for line in last.put.proposed if line.heads]
        if not told or any(deed.is_asked_in(line.words, line.heads) for line in told):
            return True
        if not all(is_about_what_was_told(line.words) for line in told):
            return False
        others = self._deeds.others(deed, self._thing)
        return not any(other.is_called(line.heads) for line in told for other in others)

    @property
    def _thing(self) -> str:
        """The name of the argument that says what the call acts on."""
        target = target_of(self._given, self._deed.name)
        return target.name if target is not None and not target.is_person else ""

    def _is_for_this(self, last: Exchange) -> bool:
        """Whether what was asked is leave for this call, and for nothing beside it."""
        put = last.put
        if put.is_no_proposal or (put.after and self._is_told_after(put)):
            return False
        if put.vague and not put.vague.isdisjoint([each.number for each in self._given]):
            return False
        if not all(map(self.is_of_call, put.added)) or self._is_for_a_part(last):
            return False
        if put.unread and any(sum(map(self.is_of_call, words)) < wanted for words, wanted in put.unread):
            return False
        for line in put.put_off:
            is_proposed = line.asks or self._deed.is_called(line.heads)
            if is_proposed and (line.waits or self._is_put_off(line)):
                return False
        return True

    def _is_for_a_part(self, last: Exchange) -> bool:
        """Whether what was asked for has an id that the call has not, and that no record knows: "item L1 of order 7" is
        a part of what a call on the order does."""
        told = ""
        for passage in (last.asked, last.proposed):
            if not passage.ids:
                continue
            told = told or str(self._call.call.arguments).lower()
            others = [code for code in passage.ids if code[0].isalpha() and code not in told]
            given = {each.key for each in self._given if each.kind == "id"} if others else ()
            for code in others[:_MANY]:
                if shape(code) in map(shape, given):
                    continue
                unknown = not self._records.holds(code)
                if unknown and any(_is_part(code, key, passage.words) for key in given):
                    return True
        return False

    def _is_told_after(self, put: Put) -> bool:
        """Whether the deed is told only after a question that does not name it, so that the yes may be to that: "Your
        name is Bob, right? I will transfer 500.00."."""
        is_named = any(self._deed.stands_in(line.words) for line in put.for_leave[-1:])
        return not is_named and any(self._deed.stands_in(line.words) for line in put.after)

    def _is_put_off(self, line: Line) -> bool:
        """Whether a sentence would do something at a time of which the call says nothing, or on a day that no record
        holds: a yes to that is none to doing it now."""
        if any(each.day is not None or each.at for each in self._given):
            return any(each.is_year for each in line.later)
        for each in line.later:
            is_rate = bool(each.rate) and not self.is_of_call(each.rate)
            if not is_rate and (each.is_year or not all(map(self.is_of_call, each.words))):
                return True
        marks = (f"d:{month}-{day}" for month, day in line.days)
        return any(not self._records.fields_with(mark) for mark in marks)

    def is_of_call(self, word: str) -> bool:
        """Whether a word is one of the tool, of a value or of the record of a thing of the call."""
        if self._deed.is_called((word,)):
            return True
        if not self._own:
            call, tool = self._call.call, self._call.tool
            told = f"{tool.description if tool else ''} {call.tool} {call.arguments}"
            self._own.update(map(stem, words_of(told)))
        if stem(word) in self._own:
            return True
        marks = (self._records.marks_of(each.key) for each in self._given if each.kind == "id")
        return any(word in each for each in marks)


def _is_part(code: str, key: str, words: str) -> bool:
    """Whether words narrow a thing down to something of it: "item L1 of order 7", "booking B1 for passenger P2"."""
    part, whole = re.escape(code), rf"(?<![\w-]){re.escape(key)}(?![\w-])"
    return re.search(rf"{part}{_OF}{whole}|{whole}{_FOR}{part}", words) is not None
