"""Finds the entities that a request names in the results, such as an email from a particular sender, an event with a
title, or a file.

All names given for a source must match. Records are matched by their short fields, if any record in the result matches
that way. Otherwise, they are matched by their texts, and finally by the arguments of the look-up. Because of this
order, a text that merely mentions a meeting is not mistaken for the meeting itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bylaw.engine.request.allowance import Delegation, Source, Span
from bylaw.engine.request.bearing import SHORT, WHOLLY, closeness, is_name, names
from bylaw.engine.request.values import View, given_words, step_of
from bylaw.facts.provenance import Traced, is_file_name, is_search, is_spoken_of
from bylaw.text.folding import fold
from bylaw.text.identifier import is_prose
from bylaw.trace.event import Call


class Naming:
    """Matches results against the names that the user gave."""

    def __init__(self, view: View) -> None:
        self._view = view

    def is_of(self, source: Source, sight: Traced, value: str | float) -> bool:
        """Whether the source contains a value: its tool showed the value in a record with the source's names.

        If the record's own short fields contain all the names, any tool may have shown it.
        """
        is_tool = source.tool in ("", sight.tool)
        words = self._view.words(source.named)
        if not words:
            return is_tool
        places, given = self._view.around(sight), given_words(sight.arguments)
        if not places.records:
            shown = [fold(self._view.text(step_of(sight))), *given]
            return is_tool and _are_borne(words, shown)
        named, field, fields = fold(str(value)), fold(sight.field), places.fields(sight.number)
        if sight.number < 0 or (sight.is_whole and fields.keys() & {named, *given}):
            # A list item has a name of its own, and so does an entity that was passed to the tool as an argument.
            own = {"": named}
            if field in fields or named in fields:
                own |= {"field": field, "told": fields.get(named, "")}
            return is_tool and closeness(words, own, given) > 0
        if len(fields) > 1 and named in words and fields.get(field) == named:
            # The user wants this value from the record, so the value is not the record's name.
            return False
        text = "" if sight.is_whole or fields.get(field) == named else field
        return sight.number in self.named_records(source, sight, text=text)

    def named_records(self, source: Source, sight: Traced, *, text: str = "") -> list[int]:
        """Return the indices of the records that best match a source's names. `text` is a field of running text, which
        counts less.
        """
        places = self._view.around(sight)
        is_tool = source.tool in ("", sight.tool)
        if not source.named:
            return [*range(len(places.records))] if is_tool else []
        field = fold(sight.field)
        # In "my passport number", for example, the words may describe the name of the field.
        label = {" ": field} if sight.is_whole and field in places.fields(sight.number) else {}
        close = self._close(source, step_of(sight), sight.arguments, label=label, text=text)
        least = 1 if is_tool else (SHORT + WHOLLY) * len(source.named)
        return [number for number, each in enumerate(close) if each >= least and each == max(close)]

    def may_show(self, source: Source, step: int, call: Call) -> bool:
        """Whether a result may belong to a source: the right tool returned it, and the names occur in it or in the
        arguments of its look-up.

        A description such as "those two deal mails" need not occur in the result.
        """
        if source.tool not in ("", call.tool) or not source.named:
            return source.tool in ("", call.tool)
        shown = [fold(self._view.text(step)), *given_words(call.arguments)]
        words = self._view.words(source.named)
        said = [self._view.request[span.start : span.end] for span in source.named]
        telling = [
            word
            for word, written in zip(words, said, strict=True)
            if is_name(written) or any(names(word, each) for each in shown)
        ]
        return _are_borne(telling or words, shown)

    def texts_of(self, delegation: Delegation) -> Iterator[str]:
        """Yield each text that the user tells the agent to follow, without duplicates."""
        found = (text for source in delegation.sources for text in self._texts(source, delegation.asked))
        yield from dict.fromkeys(found)

    def _texts(self, source: Source, asked: Sequence[Span]) -> Iterator[str]:
        """Yield the texts in a source: the records with its names and, if the names occur in a look-up's arguments, its
        result.

        If the source has no names, the words `asked` are searched for in the arguments.
        """
        words = self._view.words(source.named)
        for step, call, text in self._view.results():
            places, given = self._view.places(step), given_words(call.arguments)
            is_tool = source.tool in ("", call.tool)
            if not is_tool and (not places.records or not words):
                continue
            close = self._close(source, step, call.arguments, exactly=True)
            if not is_tool and max(close) < (SHORT + WHOLLY) * len(words):
                continue
            if max(close, default=0) > len(words):
                known = {*words, *given}
                for number in (number for number, each in enumerate(close) if each == max(close)):
                    yield " \n ".join(each for each in places.told(number) if fold(each) not in known)
            elif (fetched := _fetched(call.arguments)) and _are_borne(words or self._view.words(asked), fetched):
                yield text

    def _close(
        self,
        source: Source,
        step: int,
        arguments: Mapping[str, Any],
        *,
        label: Mapping[str, str] | None = None,
        text: str = "",
        exactly: bool = False,
    ) -> list[int]:
        places, given = self._view.places(step), given_words(arguments)
        words, apart = self._view.words(source.named), self._apart(source.named)
        return [
            closeness(
                *(words, {**places.fields(number), **(label or {})}, given),
                but=text,
                exactly=exactly,
                apart=apart,
                own=self._own(step, number, arguments),
            )
            for number in range(len(places.records))
        ]

    def _apart(self, named: Sequence[Span]) -> frozenset[str]:
        """Return the words that name a person or an entity, except for titles and subjects."""
        request = self._view.request
        found = (each for each in named if is_name(request[each.start : each.end]))
        return frozenset(self._view.words([each for each in found if not is_spoken_of(request[: each.start])]))

    def _own(self, step: int, number: int, arguments: Mapping[str, Any]) -> Mapping[str, str] | None:
        """Return the fields that name a record's author, together with its look-up's arguments, or None if there are
        none.

        For a file, the text is included, because the owner may not be the author.
        """
        own = self._view.own_fields(step, number)
        if own is None:
            return None
        fields = self._view.places(step).fields(number)
        if any(map(is_file_name, own)):
            own |= {name for name, value in fields.items() if is_prose(value)}
        given = {f"={place}": each for place, each in enumerate(_fetched(arguments))}
        return {**{name: value for name, value in fields.items() if name in own}, **given}


def _fetched(arguments: Mapping[str, Any]) -> list[str]:
    """Return the arguments that identify the entity to look up. Search terms are left out, because they may return any
    entity.
    """
    return given_words({name: each for name, each in arguments.items() if not is_search(name)})


def _are_borne(words: Sequence[str], shown: Sequence[str]) -> bool:
    """Whether each word matches at least one of the normalised strings. Dates and numbers match in any notation."""
    return all(any(names(word, each) >= WHOLLY for each in shown) for word in words)
