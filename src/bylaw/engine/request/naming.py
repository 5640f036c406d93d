"""Which of the things that results show the user's words name: the mail of a sender, the event of a title, a file.

A record is named by its short fields where any of the same result is; else by what its texts say; else by what the tool
was asked for. So a text that only mentions a meeting does not make its event that meeting.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, cast

from bylaw.engine.request.allowance import Source, Span
from bylaw.engine.request.stems import telling_stems
from bylaw.facts.provenance import Provenance, Traced, plain_link
from bylaw.text.day import MONTHS
from bylaw.text.folding import fold, occurs
from bylaw.text.identifier import is_prose
from bylaw.text.spelling import spell

_CLOSEST = 3
_TRIM = ".,;:!?'\"()[]*_`"
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_ORDINAL = re.compile(r"(?:the )?(\d{1,2})(?:st|nd|rd|th)")
_MONTH = re.compile(r"(?:in )?[a-z]{3,9}(?: \d{4})?")
_FIGURE = re.compile(r"[^\w]*(\d[\d,]*(?:\.\d+)?)[^\w]*")


class Naming:
    """Holds what results show against the names that the user gave."""

    def __init__(self, provenance: Provenance, request: str) -> None:
        self._provenance, self._request = provenance, request

    def words(self, spans: Iterable[Span]) -> tuple[str, ...]:
        """Words of the user, folded."""
        return tuple(fold(self._request[span.start : span.end]).strip(_TRIM) for span in spans)

    def is_of(self, source: Source, sight: Traced, value: str | float) -> bool:
        """Whether a value stands in a source: in a result of its tool, in the record that the user named.

        Where a record's own fields bear the names, it does not matter which tool showed it.
        """
        is_tool = not source.tool or sight.tool == source.tool
        words = self.words(source.named)
        if not words:
            return is_tool
        assert sight.step is not None
        places = self._provenance.places(sight.step)
        given = [fold(str(plain_link(each))) for each in leaves_of(sight.arguments)]
        named = fold(str(value))
        fields = places.fields(sight.number)
        if sight.number < 0 or (sight.is_whole and fields.keys() & {named, *given}):
            # A thing of a list, or one that the tool was asked about, goes by its own name.
            own = {"": named} if sight.is_whole else {"lines": self._lines(sight.step, named)}
            if (field := fold(sight.field)) in fields or named in fields:
                own |= {"field": field, "told": fields.get(named, "")}
            return is_tool and _closeness(words, own, given) > 0
        if len(fields) > 1 and named in words and fields.get(fold(sight.field)) == named:
            # What the user calls a record by is not what is looked for in it.
            return False
        field = fold(sight.field)
        own_text = "" if sight.is_whole or fields.get(field) == named else field
        others = [places.fields(each) for each in range(len(places.records))]
        words = self._telling(source.named, [*(value for other in others for value in other.values()), *given])
        mine = _closeness(words, fields, given, but=own_text)
        if not mine or not (is_tool or mine == _CLOSEST * len(words)):
            return False
        return mine >= max(_closeness(words, other, given, but=own_text) for other in others)

    def _telling(self, named: Sequence[Span], shown: Sequence[str]) -> tuple[str, ...]:
        """The words that tell records apart: names and figures, and of the others those that any of them bears.

        People say "those two deal mails" where only the sender tells; one word at least must name the record.
        """
        words = self.words(named)
        found = tuple(
            word
            for word, span in zip(words, named, strict=True)
            if _is_name(self._request[span.start : span.end]) or any(names(word, value) for value in shown)
        )
        return found or words

    def _lines(self, step: int, value: str) -> str:
        """The lines of a text in which a value stands, folded."""
        lines = (fold(line) for line in self._provenance.text(step).splitlines())
        return " \n ".join(line for line in lines if occurs(value, line) >= 0)

    def is_shown_by(self, source: Source, value: str | float, before: int) -> bool:
        """Whether a source that was asked about a thing showed what the user named: the channel where Ann wrote."""
        words, named = self.words(source.named), fold(str(value))
        for step, call, _ in self._provenance.results(before=before) if words and source.tool else ():
            if call.tool == source.tool and named in (fold(str(each)) for each in leaves_of(call.arguments)):
                places = self._provenance.places(step)
                if any(_closeness(words, places.fields(each), ()) for each in range(len(places.records))):
                    return True
        return False

    def is_noted(self, sight: Traced, text: str) -> bool:
        """Whether a folded text names what stands beside a value, or was asked for, and of no record beside it more."""
        assert sight.step is not None
        places = self._provenance.places(sight.step)
        given = {fold(str(plain_link(each))) for each in leaves_of(sight.arguments)}

        def noted(number: int) -> int:
            beside = {value for value in places.fields(number).values() if len(value) > 2 and not is_prose(value)}
            return sum(occurs(value, text) >= 0 for value in beside | given if not value.isdigit())

        return noted(sight.number) >= max(1, *(noted(each) for each in range(len(places.records))))

    def texts(self, source: Source, asked: Sequence[Span], before: int) -> Iterator[str]:
        """The texts of results that a source means: records that bear its names, else what was got by them."""
        named = (*source.named, *asked)
        for step, call, text in self._provenance.results(before=before):
            if source.tool and call.tool != source.tool:
                continue
            places = self._provenance.places(step)
            words = self.words(source.named)
            given = [fold(str(plain_link(each))) for each in leaves_of(call.arguments)]
            close = [_closeness(words, places.fields(each), given) for each in range(len(places.records))]
            if max(close, default=0) > len(words):
                best = (number for number, each in enumerate(close) if each == max(close))
                known = {*words, *given}
                for fields in map(places.fields, best):
                    yield " \n ".join(value for value in fields.values() if value not in known)
            elif any(len(each) > 2 and occurs(each, said) >= 0 for each in given for said in self.words(named)):
                yield text

    def asked_about(self, value: str | float, before: int) -> Iterator[Traced]:
        """The results of tools that were asked about a thing, each as the place of its name there."""
        named = fold(str(value))
        for step, call, _ in self._provenance.results(before=before):
            places = self._provenance.places(step)
            for number in range(len(places.records)):
                if named in places.fields(number):
                    yield Traced("record", step=step, tool=call.tool, arguments=call.arguments, number=number)

    def contradicts(self, source: Source, value: str | float, before: int) -> bool:
        """Whether a tool that was asked about a thing told something else of it than the user's words."""
        words = self.words(source.named)
        for step, call, _ in self._provenance.results(before=before) if words and source.tool else ():
            if call.tool == source.tool:
                told = about(self._provenance, step, call.arguments, value)
                if told is not None and not _closeness(words, {"": told, " ": fold(str(value))}, ()):
                    return True
        return False


def about(provenance: Provenance, step: int, arguments: Mapping[str, Any], value: str | float) -> str | None:
    """What a result tells of a thing that its tool was asked about, folded; None where it tells nothing of it."""
    named = fold(str(value))
    places = provenance.places(step)
    for number in range(len(places.records)):
        if named in (fields := places.fields(number)):
            return fields[named]
    given = [fold(str(each)) for each in leaves_of(arguments)]
    return fold(provenance.text(step)) if given == [named] and not places.records else None


def _closeness(words: Sequence[str], fields: Mapping[str, str], given: Sequence[str], *, but: str = "") -> int:
    """How closely a record is named: for each word 3 by a short field, 2 by any, 1 only by what the tool was given; in
    all 0 where one of them does not name it.

    `but` is a text that a value was taken from, which counts as a long one.
    """
    closeness = 0
    for word in words:
        short = [value for name, value in fields.items() if not is_prose(value) and not (but and name == but)]
        if any(names(word, value) for value in short):
            closeness += _CLOSEST
        elif any(names(word, value) for value in fields.values()):
            closeness += 2
        elif any(names(word, value) for value in given):
            closeness += 1
        else:
            return 0
    return closeness


def _is_name(words: str) -> bool:
    """Whether words are a name or a figure, by how they are written, and not a description."""
    return any(each.isupper() or each.isdigit() or each in "@._/-" for each in words)


def names(words: str, value: str) -> bool:
    """Whether words of the user name a value, both folded: by a part of it, in any form of a day or a number."""
    if not words or not value:
        return False
    plain, said = value.replace("-", " "), words.replace("-", " ").removesuffix("'s")
    if occurs(said, plain) >= 0 or (len(plain) > 2 and occurs(plain, said) >= 0):
        return True
    if day := _DAY.match(value):
        spelling = spell(day[0])
        is_said = spelling is not None and spelling.said_in(words)
        return is_said or _is_of_month(day[0], words) or _is_day(day[0], words) or is_weekday(day[0], words)
    if (figure := _FIGURE.fullmatch(words)) and (spelling := spell(float(figure[1].replace(",", "")))) is not None:
        return spelling.said_in(value)
    mine, other = telling_stems(said), telling_stems(plain)
    return bool(mine) and (mine <= other or (len(mine) > 2 and len(mine & other) >= 2))


def _is_of_month(day: str, words: str) -> bool:
    """Whether words say the month of a day, and no day of it."""
    month = int(day[5:7])
    if not 1 <= month <= len(MONTHS) or not _MONTH.fullmatch(words):
        return False
    name, _, year = words.removeprefix("in ").partition(" ")
    return name in (MONTHS[month - 1], MONTHS[month - 1][:3]) and year in ("", day[:4])


def _is_day(day: str, words: str) -> bool:
    """Whether words say the day of some month: `the 1st`."""
    said = _ORDINAL.fullmatch(words)
    return said is not None and int(said[1]) == int(day[8:10])


def is_weekday(day: str, words: str) -> bool:
    """Whether folded words name the day of the week that a day is."""
    try:
        named = date.fromisoformat(day).strftime("%A").lower()
    except ValueError:
        return False
    return occurs(named, words.removesuffix("'s")) >= 0


def leaves_of(value: Any) -> Iterator[str | float]:
    """The values inside of arguments."""
    if isinstance(value, Mapping):
        for part in cast("Mapping[str, Any]", value).values():
            yield from leaves_of(part)
    elif isinstance(value, list):
        for part in cast("list[Any]", value):
            yield from leaves_of(part)
    elif isinstance(value, (str, int, float)) and not isinstance(value, bool) and value != "":
        yield value
