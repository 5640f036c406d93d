"""Which of the things that results show the user's words name: the mail of a sender, the event of a title, a file.

A record is named by its short fields where any of the same result is; else by what its texts say; else by what the tool
was asked for. So a text that only mentions a meeting does not make its event that meeting. Of a longer text it is the
line or the sentence that bears the names.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import Any, cast

from msgspec.structs import replace

from bylaw.engine.request.allowance import Delegation, Source, Span
from bylaw.engine.request.stems import WORD, stem, telling_stems
from bylaw.facts.attribution import is_file_name, is_search, is_spoken_of
from bylaw.facts.provenance import Provenance, Traced, plain_link
from bylaw.facts.result_places import ResultPlaces
from bylaw.text.day import MONTHS
from bylaw.text.folding import fold, occurs
from bylaw.text.identifier import identifiers, is_prose
from bylaw.text.spelling import spell

_SHORT = 2
"""What a short field adds to how closely it is named."""
_WHOLLY = 2
_EXACTLY = 3
_A_NAME = 5
"""What a name counts among the words that a thing may bear."""
_TIMES = frozenset((*MONTHS, "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"))
"""Written like names, and no name of anything."""
_HEADED = 2
"""A text of more lines has a heading."""
_NAMED = 100
"""What a name in a piece of a text counts, beside words that it may bear."""
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
        return _folded(self._request, tuple(spans))

    def is_of(self, source: Source, sight: Traced, value: str | float) -> bool:
        """Whether a value stands in a source: in a result of its tool, in the record that the user named.

        Where a record's own fields bear the names, it does not matter which tool showed it.
        """
        is_tool = not source.tool or sight.tool == source.tool
        words = self.words(source.named)
        if not words and (sight.number < 0 or not source.is_described):
            return is_tool
        assert sight.step is not None
        places = self._provenance.places(sight.step)
        given = [fold(str(plain_link(each))) for each in leaves_of(sight.arguments)]
        named = fold(str(value))
        fields = places.fields(sight.number)
        if sight.number < 0 or (sight.is_whole and fields.keys() & {named, *given}):
            # A thing of a list, or one that the tool was asked about, goes by its own name.
            if not words:
                return is_tool
            if not places.records and all(any(names(word, each) >= _WHOLLY for each in given) for word in words):
                return is_tool
            if not places.records and self.stands_by_its_names(source, sight, value) is not False:
                return is_tool and not self._is_missing(source, sight.step, given)
            own = {"": named} if sight.is_whole else {"lines": self.lines(sight.step, named)}
            if (field := fold(sight.field)) in fields or named in fields:
                own |= {"field": field, "told": fields.get(named, "")}
            return is_tool and closeness(words, own, given) > 0
        if len(fields) > 1 and named in words and fields.get(fold(sight.field)) == named:
            # What the user calls a record by is not what is looked for in it.
            return False
        field = fold(sight.field)
        own_text = "" if sight.is_whole or fields.get(field) == named else field
        # "My passport number": what a value is may be told by the name of its field.
        label = {" ": field} if sight.is_whole and field in fields else {}
        own = self._own(sight.step, sight.number, sight.arguments)
        apart = self._apart(source.named)
        if (
            is_tool
            and len(places.records) == 1
            and closeness(words, {**fields, **label}, given, but=own_text, apart=apart, own=own)
        ):
            return True
        return sight.number in self._closest(source, sight, label, own_text)

    def _apart(self, named: Sequence[Span]) -> frozenset[str]:
        """Of the user's words those that are a name, and not what a text is called or about."""
        found = [
            span
            for span in named
            if is_name(self._request[span.start : span.end]) and not is_spoken_of(self._request[: span.start])
        ]
        return frozenset(self.words(found))

    def _own(self, step: int, number: int, arguments: Mapping[str, Any]) -> Mapping[str, str] | None:
        """What a record may be called by, and what its tool was asked for, where the record says who wrote it. A file
        may be by its text, too: its owner need not be who it is of."""
        own = self._provenance.own_fields(step, number)
        if own is None:
            return None
        fields = self._provenance.places(step).fields(number)
        if any(map(is_file_name, own)):
            own |= {name for name, value in fields.items() if is_prose(value)}
        asked = {name: each for name, each in arguments.items() if not is_search(name)}
        given = {f"={place}": fold(str(plain_link(each))) for place, each in enumerate(leaves_of(asked))}
        return {**{name: value for name, value in fields.items() if name in own}, **given}

    def named_records(self, source: Source, sight: Traced) -> list[int]:
        """Of the result that shows a value alone in a field, the records that a source names."""
        assert sight.step is not None
        field = fold(sight.field)
        fields = self._provenance.places(sight.step).fields(sight.number)
        return self._closest(source, sight, {" ": field} if field in fields else {}, "")

    def _closest(self, source: Source, sight: Traced, label: Mapping[str, str], but: str) -> list[int]:
        """The records of a result that bear the names of a source best."""
        assert sight.step is not None
        places = self._provenance.places(sight.step)
        is_tool = not source.tool or sight.tool == source.tool
        if not source.named:
            return self._likely(source, places, [*range(len(places.records))]) if is_tool else []
        given = [fold(str(plain_link(each))) for each in leaves_of(sight.arguments)]
        records = [{**places.fields(each), **label} for each in range(len(places.records))]
        words = self._telling(source.named, [*(value for record in records for value in record.values()), *given])
        apart = self._apart(source.named)
        close = [
            closeness(words, record, given, but=but, apart=apart, own=self._own(sight.step, number, sight.arguments))
            for number, record in enumerate(records)
        ]
        least = 1 if is_tool else (_SHORT + _WHOLLY) * len(words)
        most = max(close, default=0)
        best = [number for number, each in enumerate(close) if each >= least and each == most]
        return self._likely(source, places, best)

    def _likely(self, source: Source, places: ResultPlaces, numbers: list[int]) -> list[int]:
        """Of the records of a result those that bear a word which the right one may bear; all, where none does."""
        return [number for number in numbers if self._likelihood(source, places.fields(number))] or numbers

    def _likelihood(self, source: Source, fields: Mapping[str, str]) -> int:
        """How much of what the right thing may bear a record bears: its own short fields before its texts."""
        found = 0
        for word, weight in _likely_words(self._request, source.perhaps, source.guessed):
            borne = [value for value in fields.values() if names(word, value)]
            found += weight * (0 if not borne else 1 if all(map(is_prose, borne)) else _SHORT)
        return found

    def is_likelier(self, source: Source, mine: tuple[Traced, str | float], other: tuple[Traced, str | float]) -> bool:
        """Whether a thing bears more of the words that the right one may bear than another of the same result: its
        record, or its name in a list."""
        sight, step = mine[0], mine[0].step
        assert step is not None
        places = self._provenance.places(step)
        borne, rival = (
            self._likelihood(source, places.fields(place.number) if sight.number >= 0 else {"": fold(str(value))})
            for place, value in (mine, other)
        )
        return borne > rival

    def is_likeliest(self, source: Source, sight: Traced) -> bool:
        """Whether no record of the result bears more of the words that the right one may bear, of those it names."""
        assert sight.step is not None
        if sight.number < 0 or not (source.perhaps or source.guessed):
            return True
        places = self._provenance.places(sight.step)
        borne = {each: self._likelihood(source, places.fields(each)) for each in self.named_records(source, sight)}
        return borne.get(sight.number, 0) == max(borne.values(), default=0)

    def placed(self, sources: Sequence[Source], before: int) -> tuple[Source, ...] | None:
        """Sources of several tools that share their names, each with those that its tool shows or is asked for: a list
        of the hotels in a city has the city, one of prices has not. None where that changes nothing."""
        found: list[Source] = []
        for source in sources:
            named = {word: {call.tool for _, call, _ in self._provenance.mentions(word, before=before)}
                     for word in self.words(source.named)}  # fmt: skip
            tools = {other.tool for other in sources if other.named == source.named}
            kept = tuple(
                span
                for span, word in zip(source.named, self.words(source.named), strict=True)
                if source.tool in named[word] or not named[word] & tools
            )
            if not source.named or any(source.tool in named[word] for word in named):
                found.append(replace(source, named=kept))
        return tuple(found) if found and found != [*sources] else None

    def _telling(self, named: Sequence[Span], shown: Sequence[str]) -> tuple[str, ...]:
        """The words that tell records apart: names and figures, and of the others those that any of them bears.

        People say "those two deal mails" where only the sender tells; one word at least must name the record.
        """
        words = self.words(named)
        found = tuple(
            word
            for word, span in zip(words, named, strict=True)
            if is_name(self._request[span.start : span.end]) or any(names(word, value) for value in shown)
        )
        return found or words

    def is_called(self, source: Source, sight: Traced, other: Traced) -> bool:
        """Whether the user's words are what a thing is called, and another of the same result only holds them."""
        words = self.words(source.named)
        assert sight.step is not None
        places = self._provenance.places(sight.step)
        fields = [places.fields(each.number) for each in (sight, other)]
        mine, rival = (closeness(words, each, (), exactly=True) for each in fields)
        # A file `costs-2024` is called so; one `costs-2023` of 2024 bears the words as well, but not in its name.
        own, others = (any(all(names(word, value) for word in words) for value in each.values()) for each in fields)
        return sight.number >= 0 and (mine > rival > 0 or (own and not others))

    def is_in_a_row(self, sight: Traced, value: str, codes: Sequence[str]) -> bool:
        """Whether a code stands in a line of a text that has no other and is no sentence."""
        assert sight.step is not None
        text = self._provenance.places(sight.step).written(sight.number, sight.field)
        lines = (text or self._provenance.text(sight.step)).splitlines()
        rows = [line for line in lines if value in line and sum(code in line for code in codes) == 1]
        return bool(rows) and not any(is_prose(fold(line)) for line in rows)

    def alone_bears(self, source: Source, sight: Traced, value: str, rivals: Sequence[str]) -> bool:
        """Whether pieces of a running text that bear any of the names hold a value, and none holds a rival of it:
        whoever adds a line with the name makes two of it."""
        counted = self._borne(source, sight, said=True)
        most = max((count for _, count in counted), default=0)
        borne = [piece for piece, count in counted if count and (count >= _NAMED or count == most < _NAMED)]
        held = {rival for rival in rivals for piece in borne if occurs(fold(rival), piece) >= 0}
        return held == {value}

    def stands_by_its_names(
        self, source: Source, sight: Traced, value: str | float, *, among_all: bool = False
    ) -> bool | None:
        """Of a value in a text, whether no other piece of it bears more of the names which the text alone bears; None
        where no piece with such a value bears any. With `among_all` pieces without such a value count as well.

        "Ann's contract has ended. Ben's runs until May": asked for the contract that has ended, it is not Ben's.
        """
        named = fold(str(plain_link(value)))
        is_plain = not identifiers(named)
        borne = [each for each in self._borne(source, sight, headed=is_plain) if among_all or _may_hold(each[0], named)]
        most = max((count for _, count in borne), default=0)
        spelling = spell(plain_link(value))
        held = [count for piece, count in borne if spelling is not None and spelling.said_in(piece)]
        return most in held if most else None

    def is_in_text_of(self, source: Source, sight: Traced) -> bool:
        """Whether a value stands in a text without records that was got by a name of its source."""
        given = [fold(str(plain_link(each))) for each in leaves_of(sight.arguments)]
        is_got = any(names(word, each) >= _WHOLLY for word in self.words(source.named) for each in given)
        return sight.number < 0 and is_got and source.tool in ("", sight.tool)

    def _borne(
        self, source: Source, sight: Traced, *, said: bool = False, headed: bool = False
    ) -> list[tuple[str, int]]:
        """The pieces of the text that a value stands in, folded, each with how many names of its source it bears; those
        aside that short fields of the record or the tool's arguments bear. With `said` none but the user's words; with
        `headed` what the first of several lines says, it says of the whole text."""
        assert sight.step is not None
        places = self._provenance.places(sight.step)
        given = [fold(str(plain_link(each))) for each in leaves_of(sight.arguments)]
        short = [each for each in places.beside_number(sight.number).values() if not is_prose(each)]
        text = places.written(sight.number, sight.field) or self._provenance.text(sight.step)
        lines = [line for line in text.splitlines() if line.strip()]
        outer = (*short, *given, *(fold(line) for line in lines[: headed and len(lines) > _HEADED]))
        words = [word for word in self.words(source.named) if not any(names(word, each) >= _WHOLLY for each in outer)]
        perhaps = [
            word
            for word, _ in _likely_words(self._request, source.perhaps, () if said else source.guessed)
            if not any(names(word, each) >= _WHOLLY for each in outer)
        ]
        pieces = [fold(each) for each in pieces_of(text)]
        return [(piece, _NAMED * _borne_by(words, piece) + _borne_by(perhaps, piece)) for piece in pieces]

    def stands_by_words(
        self, sources: Sequence[Source], spans: Sequence[Span], sight: Traced, value: str | float, *, as_well: bool
    ) -> bool:
        """Whether the sentence of a running text that holds a value has more words of a description than any other of
        the texts that the user named there, or with `as_well` the line as many; or is the only one."""
        assert sight.step is not None
        places = self._provenance.places(sight.step)
        named = {number for source in sources for number in self._closest(source, sight, {}, fold(sight.field))}
        texts = [places.written(number, sight.field) for number in named] or [self._provenance.text(sight.step)]
        told, spelling = telling_stems(" ".join(self.words(spans))), spell(plain_link(value))
        mine = others = 0
        parts = [line for text in texts for line in text.splitlines() if line.strip()] if as_well else []
        pieces = [fold(piece) for piece in parts or (piece for text in texts for piece in pieces_of(text))]
        for piece in pieces:
            shared = len(told & telling_stems(piece))
            if spelling is not None and spelling.said_in(piece):
                mine = max(mine, shared)
            else:
                others = max(others, shared)
        return mine > others or len(pieces) == 1 or (as_well and mine == others)

    def _is_missing(self, source: Source, step: int, given: Sequence[str]) -> bool:
        """Whether neither a text nor what its tool was given bears a word that tells things apart."""
        shown = [fold(self._provenance.text(step)), *given]
        words = self._telling(source.named, shown)
        return not all(any(names(word, each) >= _WHOLLY for each in shown) for word in words)

    def lines(self, step: int, value: str) -> str:
        """The lines of a text in which a value stands, folded."""
        lines = (fold(line) for line in self._provenance.text(step).splitlines())
        return " \n ".join(line for line in lines if occurs(value, line) >= 0)

    def is_shown_by(self, source: Source, value: str | float, before: int) -> bool:
        """Whether a source that was asked about a thing showed what the user named: the channel where Ann wrote."""
        words, named = self.words(source.named), fold(str(value))
        for step, call, _ in self._provenance.mentions(value, before=before) if words and source.tool else ():
            if call.tool == source.tool and named in (fold(str(each)) for each in leaves_of(call.arguments)):
                places = self._provenance.places(step)
                members = [] if places.records else [*places.values()]
                if any(closeness(words, places.fields(each), ()) for each in range(len(places.records))) or (
                    members and all(any(names(word, each) == _EXACTLY for each in members) for word in words)
                ):
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

    def by_name(self, source: Source) -> Source:
        """A source with its names alone, without descriptions."""
        named = tuple(span for span in source.named if is_name(self._request[span.start : span.end]))
        return Source(source.tool, named or source.named)

    def texts_of(self, delegation: Delegation, before: int) -> Iterator[str]:
        """The texts that the user hands over to, each once."""
        found = (text for source in delegation.sources for text in self.texts(source, delegation.asked, before))
        yield from dict.fromkeys(found)

    def texts(self, source: Source, asked: Sequence[Span], before: int, *, only_prose: bool = False) -> Iterator[str]:
        """The texts of results that a source means: records that bear its names, else what was got by them.

        With `only_prose` nothing of a record but its running texts.
        """
        named = (*source.named, *asked)
        for step, call, text in self._provenance.results(before=before):
            places = self._provenance.places(step)
            given = [fold(str(plain_link(each))) for each in leaves_of(call.arguments)]
            shown = (value for number in range(len(places.records)) for value in places.fields(number).values())
            words = self._telling(source.named, [*shown, *given])
            is_tool = not source.tool or call.tool == source.tool
            if not is_tool and (only_prose or not places.records or not words):
                continue
            apart = self._apart(source.named)
            close = [
                closeness(
                    *(words, places.fields(each), given),
                    exactly=True,
                    apart=apart,
                    own=self._own(step, each, call.arguments),
                )
                for each in range(len(places.records))
            ]
            if not is_tool and max(close) < (_SHORT + _WHOLLY) * len(words):
                # Where a record's own fields bear the names, it does not matter which tool showed it.
                continue
            if max(close, default=0) > len(words):
                known = {*words, *given}
                best = [number for number, each in enumerate(close) if each == max(close)]
                for number in self._likely(source, places, best):
                    told = (each for each in places.told(number) if is_prose(each) or not only_prose)
                    yield " \n ".join(each for each in told if fold(each) not in known)
            elif (not only_prose or not places.records) and any(
                len(each) > 2 and occurs(each, said) >= 0 for each in given for said in self.words(named)
            ):
                yield text

    def asked_about(self, value: str | float, before: int) -> Iterator[Traced]:
        """The results of tools that were asked about a thing, each as the place of its name there."""
        named = fold(str(value))
        for step, call, _ in self._provenance.mentions(value, before=before):
            places = self._provenance.places(step)
            for number in range(len(places.records)):
                if named in places.fields(number):
                    yield Traced("record", step=step, tool=call.tool, arguments=call.arguments, number=number)

    def contradicts(self, source: Source, value: str | float, before: int, *, is_shared: bool) -> bool:
        """Whether a tool that was asked about a thing told something else of it than the user's words.

        `is_shared` where these are for other tools as well: then they tell only where the tool says them of another.
        """
        words = self.words(source.named)
        is_known = bool(source.tool and source.is_described)
        for step, call, _ in self._provenance.mentions(value, before=before) if is_known else ():
            if call.tool == source.tool:
                told = about(self._provenance, step, call.arguments, value)
                if told is None or self._likelihood(source, {"": told}):
                    continue
                places = self._provenance.places(step)
                others = [places.fields(each) for each in range(len(places.records))]
                telling = [
                    word
                    for word in words
                    if not is_shared or any(names(word, other) for each in others for other in each.values())
                ]
                if telling and not closeness(telling, {"": told, " ": fold(str(value))}, ()):
                    return True
                # What it may be called tells only where another is called so.
                if not telling and any(self._likelihood(source, each) for each in others):
                    return True
        return False


@lru_cache(maxsize=1024)
def _folded(request: str, spans: tuple[Span, ...]) -> tuple[str, ...]:
    return tuple(fold(request[span.start : span.end]).strip(_TRIM) for span in spans)


def about(provenance: Provenance, step: int, arguments: Mapping[str, Any], value: str | float) -> str | None:
    """What a result tells of a thing that its tool was asked about, folded; None where it tells nothing of it."""
    named = fold(str(value))
    places = provenance.places(step)
    for number in range(len(places.records)):
        if named in (fields := places.fields(number)):
            return fields[named]
    given = [fold(str(each)) for each in leaves_of(arguments)]
    return fold(provenance.text(step)) if given == [named] and not places.records else None


def closeness(
    words: Sequence[str],
    fields: Mapping[str, str],
    given: Sequence[str],
    *,
    but: str = "",
    exactly: bool = False,
    apart: Collection[str] = (),
    own: Mapping[str, str] | None = None,
) -> int:
    """How closely a record is named: for each word 4 by a short field, with `exactly` 5 where it is one, 3 by a part of
    the word, 2 by any field, 1 only by what the tool was given; in all 0 where one of them does not name it.

    `but` is a text that a value was taken from, which counts as a long one. `apart` are names that only the fields
    `own` may bear, where they are given.
    """
    found = 0
    short = [value for name, value in fields.items() if not is_prose(value) and not (but and name == but)]
    for word in words:
        if own is not None and word in apart and not any(names(word, value) for value in own.values()):
            return 0
        if best := max((names(word, value) for value in short), default=0):
            found += _SHORT + (best if exactly else min(best, _WHOLLY))
        elif any(names(word, value) for value in fields.values()):
            found += 2
        elif any(names(word, value) >= _WHOLLY for value in given):
            found += 1
        else:
            return 0
    return found


@lru_cache(maxsize=1024)
def _likely_words(request: str, perhaps: tuple[Span, ...], guessed: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """The words that the right thing may bear, each form of one once, and what each counts: the user's names most."""
    found: dict[object, tuple[str, int]] = {}
    said = [request[span.start : span.end] for span in perhaps]
    weights = [_A_NAME if is_name(each) and not _TIMES & {*WORD.findall(each.lower())} else 1 for each in said]
    for word, weight in (*zip(_folded(request, perhaps), weights, strict=True), *((word, 1) for word in guessed)):
        found.setdefault(telling_stems(word) or word, (word, weight))
    return tuple(found.values())


def _borne_by(words: Sequence[str], piece: str) -> int:
    return sum(bool(names(word, piece)) for word in words)


@lru_cache(maxsize=1024)
def is_name(words: str) -> bool:
    """Whether words are a name or a figure, by how they are written, and not a description."""
    return any(each.isupper() or each.isdigit() or each in "@._/-" for each in words)


def names(words: str, value: str) -> int:
    """Whether words of the user name a value, both folded: 3 where they are it, 2 in any form of theirs, of a day or a
    number, 1 by a part of them alone, or run together as in an address; else 0.

    A file `activities` is called by that name, one `tips for activities` only holds it.
    """
    if not words or not value:
        return 0
    return _named(words, value) if len(value) <= _KEPT else _named.__wrapped__(words, value)


@lru_cache(maxsize=4096)
def _named(words: str, value: str) -> int:
    plain, said = value.replace("-", " "), words.replace("-", " ").removesuffix("'s")
    if said == plain:
        return 3
    if occurs(said, plain) >= 0 or (len(plain) > 2 and occurs(plain, said) >= 0):
        return 2
    if day := _DAY.match(value):
        spelling = spell(day[0])
        is_said = spelling is not None and spelling.said_in(words)
        is_day = is_said or _is_of_month(day[0], words) or _is_day(day[0], words) or is_weekday(day[0], words)
        return 2 if is_day else 0
    if (figure := _FIGURE.fullmatch(words)) and (spelling := spell(float(figure[1].replace(",", "")))) is not None:
        return 2 if spelling.said_in(value) else 0
    mine, other = telling_stems(said), telling_stems(plain)
    if any(each[-1].isdigit() for each in other):
        # `draft2` is a draft.
        other |= {stem(each.rstrip("0123456789")) for each in other if not each.isdigit()}
    if mine and mine <= other:
        return 2
    is_part = len(mine) > 2 and len(mine & other) >= 2 and all(each in other for each in mine if each.isdigit())
    return 1 if is_part or _is_run_together(said, value) else 0


_KEPT = 100
"""Characters of a value that is held against the same words again and again; a longer one is a text."""
_JOINED = 5
"""Letters of a name that may be found run together."""


def _is_run_together(words: str, value: str) -> bool:
    """Whether an address or a link holds words without the spaces and signs between them: `smithandsons-shop.com`."""
    if " " in value or "." not in value or " " not in words:
        return False
    mine, other = ("".join(filter(str.isalnum, each.replace("&", "and"))) for each in (words, value))
    return len(mine) >= _JOINED and mine in other


_SENTENCE = re.compile(r"(?<=[.!?;])\s+")


def _may_hold(piece: str, value: str) -> bool:
    """Whether a piece of a text holds something of the kind that a value is: an address, a link, a code, a figure. A
    plain name may stand anywhere."""
    if not any(each.isdigit() for each in value) and "@" not in value and "." not in value:
        return True
    if value.replace(".", "").replace(",", "").isdigit():
        return any(each.isdigit() for each in piece)
    return bool(identifiers(piece))


def pieces_of(text: str) -> list[str]:
    """The lines of a text, and of these the sentences."""
    return [piece for line in text.splitlines() for piece in _SENTENCE.split(line) if piece.strip()]


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
