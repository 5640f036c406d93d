"""Which of the things that results show the user's words name: the mail of a sender, the event of a title, a file.

A record is named by its short fields where any of the same result is; else by what its texts say; else by what the tool
was asked for. So a text that only mentions a meeting does not make its event that meeting. Of a longer text it is the
line or the sentence that bears the names.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from bylaw.engine.request.allowance import Delegation, Source, Span
from bylaw.engine.request.bearing import EXACTLY, SHORT, WHOLLY, closeness, is_name, likely_words, names
from bylaw.engine.request.passages import NAMED, Passages
from bylaw.engine.request.values import given_words
from bylaw.engine.request.view import View, step_of
from bylaw.facts.provenance import Traced, is_file_name, is_search, is_spoken_of
from bylaw.facts.result_places import ResultPlaces
from bylaw.text.folding import fold, occurs
from bylaw.text.identifier import is_prose
from bylaw.trace.event import Call


class Naming:
    """Holds what results show against the names that the user gave."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.passages = Passages(view)

    def is_of(self, source: Source, sight: Traced, value: str | float) -> bool:
        """Whether a value stands in a source: in a result of its tool, in the record that the user named.

        Where a record's own fields bear the names, it does not matter which tool showed it.
        """
        is_tool = not source.tool or sight.tool == source.tool
        words = self._view.words(source.named)
        if not words and (sight.number < 0 or not source.is_described):
            return is_tool
        places = self._view.around(sight)
        given = given_words(sight.arguments)
        named = fold(str(value))
        fields = places.fields(sight.number)
        if sight.number < 0 or (sight.is_whole and fields.keys() & {named, *given}):
            # A thing of a list, or one that the tool was asked about, goes by its own name.
            if not words:
                return is_tool
            if not places.records and all(any(names(word, each) >= WHOLLY for each in given) for word in words):
                return is_tool
            if not places.records and self.passages.stands_by_its_names(source, sight, value):
                return is_tool and not self._is_missing(source, step_of(sight), given)
            own = {"": named} if sight.is_whole else {"lines": self.passages.lines(step_of(sight), named)}
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
        own = self._own(step_of(sight), sight.number, sight.arguments)
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
            if is_name(self._view.request[span.start : span.end]) and not is_spoken_of(self._view.request[: span.start])
        ]
        return frozenset(self._view.words(found))

    def _own(self, step: int, number: int, arguments: Mapping[str, Any]) -> Mapping[str, str] | None:
        """What a record may be called by, and what its tool was asked for, where the record says who wrote it. A file
        may be by its text, too: its owner need not be who it is of."""
        own = self._view.own_fields(step, number)
        if own is None:
            return None
        fields = self._view.places(step).fields(number)
        if any(map(is_file_name, own)):
            own |= {name for name, value in fields.items() if is_prose(value)}
        asked = {name: each for name, each in arguments.items() if not is_search(name)}
        given = {f"={place}": each for place, each in enumerate(given_words(asked))}
        return {**{name: value for name, value in fields.items() if name in own}, **given}

    def named_records(self, source: Source, sight: Traced) -> list[int]:
        """Of the result that shows a value alone in a field, the records that a source names."""
        field = fold(sight.field)
        fields = self._view.around(sight).fields(sight.number)
        return self._closest(source, sight, {" ": field} if field in fields else {}, "")

    def _closest(self, source: Source, sight: Traced, label: Mapping[str, str], but: str) -> list[int]:
        """The records of a result that bear the names of a source best."""
        places = self._view.around(sight)
        is_tool = not source.tool or sight.tool == source.tool
        if not source.named:
            return self._likely(source, places, [*range(len(places.records))]) if is_tool else []
        given = given_words(sight.arguments)
        records = [{**places.fields(each), **label} for each in range(len(places.records))]
        words = self._telling(source.named, [*(value for record in records for value in record.values()), *given])
        apart, step = self._apart(source.named), step_of(sight)
        close = [
            closeness(words, record, given, but=but, apart=apart, own=self._own(step, number, sight.arguments))
            for number, record in enumerate(records)
        ]
        least = 1 if is_tool else (SHORT + WHOLLY) * len(words)
        most = max(close, default=0)
        best = [number for number, each in enumerate(close) if each >= least and each == most]
        return self._likely(source, places, best)

    def _likely(self, source: Source, places: ResultPlaces, numbers: list[int]) -> list[int]:
        """Of the records of a result those that bear a word which the right one may bear; all, where none does."""
        return [number for number in numbers if self._likelihood(source, places.fields(number))] or numbers

    def _likelihood(self, source: Source, fields: Mapping[str, str]) -> int:
        """How much of what the right thing may bear a record bears; of two alike the one whose own short fields do."""
        found = 0
        for word, weight in likely_words(self._view.request, source.perhaps, source.guessed):
            borne = [value for value in fields.values() if names(word, value)]
            found += weight * (0 if not borne else NAMED if all(map(is_prose, borne)) else NAMED + 1)
        return found

    def is_likelier(self, source: Source, mine: tuple[Traced, str | float], other: tuple[Traced, str | float]) -> bool:
        """Whether a thing bears more of the words that the right one may bear than another of the same result: its
        record, or its name in a list."""
        places = self._view.around(mine[0])
        borne, rival = (
            self._likelihood(source, places.fields(place.number) if place.number >= 0 else {"": fold(str(value))})
            for place, value in (mine, other)
        )
        return borne > rival

    def is_likeliest(self, source: Source, sight: Traced) -> bool:
        """Whether no record of the result bears more of the words that the right one may bear, of those it names."""
        if sight.number < 0 or not (source.perhaps or source.guessed):
            return True
        places = self._view.around(sight)
        borne = {each: self._likelihood(source, places.fields(each)) for each in self.named_records(source, sight)}
        return borne.get(sight.number, 0) == max(borne.values(), default=0)

    def placed(self, sources: Sequence[Source]) -> tuple[Source, ...] | None:
        """Sources of several tools that share their names, each with those that its tool shows or is asked for: a list
        of the hotels in a city has the city, one of prices has not. None where that changes nothing."""
        found: list[Source] = []
        for source in sources:
            named = {word: {call.tool for _, call, _ in self._view.mentions(word)}
                     for word in self._view.words(source.named)}  # fmt: skip
            tools = {other.tool for other in sources if other.named == source.named}
            kept = tuple(
                span
                for span, word in zip(source.named, self._view.words(source.named), strict=True)
                if source.tool in named[word] or not named[word] & tools
            )
            if not source.named or any(source.tool in named[word] for word in named):
                found.append(replace(source, named=kept))
        return tuple(found) if found and found != [*sources] else None

    def _telling(self, named: Sequence[Span], shown: Sequence[str]) -> tuple[str, ...]:
        """The words that tell records apart: names and figures, and of the others those that any of them bears.

        People say "those two deal mails" where only the sender tells; one word at least must name the record.
        """
        words = self._view.words(named)
        found = tuple(
            word
            for word, span in zip(words, named, strict=True)
            if is_name(self._view.request[span.start : span.end]) or any(names(word, value) for value in shown)
        )
        return found or words

    def is_called(self, source: Source, sight: Traced, other: Traced) -> bool:
        """Whether the user's words are what a thing is called, and another of the same result only holds them."""
        words = self._view.words(source.named)
        places = self._view.around(sight)
        fields = [places.fields(each.number) for each in (sight, other)]
        mine, rival = (closeness(words, each, (), exactly=True) for each in fields)
        # A file `costs-2024` is called so; one `costs-2023` of 2024 bears the words as well, but not in its name.
        own, others = (any(all(names(word, value) for word in words) for value in each.values()) for each in fields)
        return sight.number >= 0 and (mine > rival > 0 or (own and not others))

    def texts_beside(self, sources: Sequence[Source], sight: Traced) -> list[str]:
        """The texts of the records that sources name, in the field that a value stands in; else the whole result."""
        places = self._view.around(sight)
        named = {number for source in sources for number in self._closest(source, sight, {}, fold(sight.field))}
        return [places.written(number, sight.field) for number in named] or [self._view.text(step_of(sight))]

    def is_in_text_of(self, source: Source, sight: Traced) -> bool:
        """Whether a value stands in a text without records that was got by a name of its source."""
        given = given_words(sight.arguments)
        is_got = any(names(word, each) >= WHOLLY for word in self._view.words(source.named) for each in given)
        return sight.number < 0 and is_got and source.tool in ("", sight.tool)

    def _is_missing(self, source: Source, step: int, given: Sequence[str]) -> bool:
        """Whether neither a text nor what its tool was given bears a word that tells things apart."""
        shown = [fold(self._view.text(step)), *given]
        words = self._telling(source.named, shown)
        return not all(any(names(word, each) >= WHOLLY for each in shown) for word in words)

    def may_show(self, source: Source, step: int, call: Call) -> bool:
        """Whether a result is one of those that a source means: of its tool, and it bears the names, or was got by
        them."""
        given = given_words(call.arguments)
        return source.tool in ("", call.tool) and (not source.named or not self._is_missing(source, step, given))

    def is_shown_by(self, source: Source, value: str | float) -> bool:
        """Whether a source that was asked about a thing showed what the user named: the channel where Ann wrote."""
        words, named = self._view.words(source.named), fold(str(value))
        for step, call, _ in self._view.mentions(value) if words and source.tool else ():
            if call.tool == source.tool and named in given_words(call.arguments):
                places = self._view.places(step)
                members = [] if places.records else [*places.values()]
                if any(closeness(words, places.fields(each), ()) for each in range(len(places.records))) or (
                    members and all(any(names(word, each) == EXACTLY for each in members) for word in words)
                ):
                    return True
        return False

    def by_name(self, source: Source) -> Source:
        """A source with its names alone, without descriptions."""
        named = tuple(span for span in source.named if is_name(self._view.request[span.start : span.end]))
        return Source(source.tool, named or source.named)

    def texts_of(self, delegation: Delegation) -> Iterator[str]:
        """The texts that the user hands over to, each once."""
        found = (text for source in delegation.sources for text in self.texts(source, delegation.asked))
        yield from dict.fromkeys(found)

    def texts(self, source: Source, asked: Sequence[Span] = (), *, only_prose: bool = False) -> Iterator[str]:
        """The texts of results that a source means: records that bear its names, else what was got by them.

        With `only_prose` nothing of a record but its running texts.
        """
        named = (*source.named, *asked)
        for step, call, text in self._view.results():
            places = self._view.places(step)
            given = given_words(call.arguments)
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
            if not is_tool and max(close) < (SHORT + WHOLLY) * len(words):
                # Where a record's own fields bear the names, it does not matter which tool showed it.
                continue
            if max(close, default=0) > len(words):
                known = {*words, *given}
                best = [number for number, each in enumerate(close) if each == max(close)]
                for number in self._likely(source, places, best):
                    told = (each for each in places.told(number) if is_prose(each) or not only_prose)
                    yield " \n ".join(each for each in told if fold(each) not in known)
            elif (not only_prose or not places.records) and any(
                len(each) > 2 and occurs(each, said) >= 0 for each in given for said in self._view.words(named)
            ):
                yield text

    def asked_about(self, value: str | float) -> Iterator[Traced]:
        """The results of tools that were asked about a thing, each as the place of its name there."""
        named = fold(str(value))
        for step, call, _ in self._view.mentions(value):
            places = self._view.places(step)
            for number in range(len(places.records)):
                if named in places.fields(number):
                    yield Traced("record", step=step, tool=call.tool, arguments=call.arguments, number=number)

    def contradicts(self, source: Source, value: str | float, *, is_shared: bool) -> bool:
        """Whether a tool that was asked about a thing told something else of it than the user's words.

        `is_shared` where these are for other tools as well: then they tell only where the tool says them of another.
        """
        words = self._view.words(source.named)
        is_known = bool(source.tool and source.is_described)
        for step, call, _ in self._view.mentions(value) if is_known else ():
            if call.tool == source.tool:
                told = about(self._view, step, call.arguments, value)
                if told is None or self._likelihood(source, {"": told}):
                    continue
                places = self._view.places(step)
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


def about(view: View, step: int, arguments: Mapping[str, Any], value: str | float) -> str | None:
    """What a result tells of a thing that its tool was asked about, folded; None where it tells nothing of it."""
    named = fold(str(value))
    records = view.records(step)
    for fields in records:
        if named in fields:
            return fields[named]
    given = given_words(arguments)
    return fold(view.text(step)) if given == [named] and not records else None
