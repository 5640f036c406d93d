"""Where an argument's value came from: the reverse of asking what an agent has seen.

Events are indexed as they come by the runs of letters and digits in them. A question looks only at those that hold the
value's rarest run, and a result is decoded only where the value stands in it.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from bylaw.facts.echoes import CANDIDATES, Echoes, Handed, RunIndex, letters_of
from bylaw.facts.result_places import EventTexts, Place, ResultPlaces, leaf_values
from bylaw.policy.tool import Tool
from bylaw.text.folding import fold, fold_said
from bylaw.text.identifier import is_word, without_joined
from bylaw.text.spelling import Spelling, spell
from bylaw.trace.event import Call, Event, Message, Result

_WHO = frozenset(("from", "sender", "author", "owner", "by", "creator", "writer", "poster", "uploader", "organizer"))
_WHICH = frozenset(("id", "ids", "uuid", "name", "filename", "file", "path", "folder", "channel", "url", "uri", "link"))
_FILE = frozenset(("name", "filename", "file", "path"))
_WHEN = frozenset(
    ("date", "time", "timestamp", "day", "at", "sent", "received", "created", "posted", "modified", "last")
)
_OF = frozenset(("user", "username", "email", "mail", "address", "message", "msg", "display", "full", "first"))
"""Words beside those: `sender_email`, `message_id`."""
_SEARCH_ARGUMENTS = frozenset(("query", "q", "search", "keyword", "keywords", "text", "term", "terms", "contains"))
_SPOKEN_OF = "subject|title|titled|entitled|headed|headline|called|named|about|regarding|concerning"
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_QUOTES = "\"'\u201c\u2018\u00ab`"


def own_fields(fields: Mapping[str, str], vouched: Callable[[str], bool]) -> frozenset[str] | None:
    """Of the fields of a record those that tell what it is, folded; None where none says who wrote it, and all may."""
    words = {name: {*_words(name)} for name in fields}
    if not any(_is_who(words[name]) and not _is_nobody(value) for name, value in fields.items()):
        return None
    return frozenset(fold(name) for name, each in words.items() if _is_own(each) or vouched(name))


def is_file_name(field: str) -> bool:
    """Whether a field says what a file is called."""
    return {*_words(field)} <= _FILE


def is_search(argument: str) -> bool:
    """Whether an argument of a look-up is words to be found anywhere, and not what the thing is called."""
    return bool({*_words(argument)} & _SEARCH_ARGUMENTS)


def is_spoken_of(before: str, field: str = "") -> bool:
    """Whether words of the user, after what stands before them, are in quotes or what a text is about or called, or
    what a field of that name says."""
    if before[-1:] and before[-1] in _QUOTES and not before[-2:-1].isalnum():
        return True
    names = "|".join([_SPOKEN_OF, *(re.escape(word) for word in _words(field))])
    return re.search(rf"\b(?:{names})s?(?:\W+(?:is|of|the|a|an|my|our|line|it))*\W*$", before.lower()) is not None


def _is_who(words: set[str]) -> bool:
    return bool(words & _WHO) and words <= _WHO | _WHICH | _WHEN | _OF


def _is_nobody(value: str) -> bool:
    """Whether a value does not say which other person: an account or a telephone number, by which nobody is called, or
    the user, who may call things of their own by anything in them."""
    digits, letters = sum(map(str.isdigit, value)), sum(map(str.isalpha, value))
    return value == "me" or (digits > letters and "@" not in value)


def _is_own(words: set[str]) -> bool:
    return bool(words) and words <= _WHO | _WHICH | _WHEN | _OF


def _words(name: str) -> list[str]:
    return _WORD.findall(_CAMEL.sub("_", name).lower())


OriginKind = Literal["user", "host", "record", "text", "nowhere"]
TracedSource = Literal["user", "host", "record", "content", "agent"]
"""The user's words, the host's context, a whole field that its tool vouches for, any other part of a result, or the
agent's own making."""
WORST_FIRST: tuple[TracedSource, ...] = ("agent", "content", "record", "host", "user")
"""Of several values the first of these counts."""
Way = Literal["exact", "normalised", "derived"]

_NUMBERS = 200
_SEARCHED = 100_000
_NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?![\w])")
_LINE_START = re.compile(r"\\[nrt](\w+)")
_SCHEME = re.compile(r"^https?://", re.IGNORECASE)


class ValueOrigin(Struct, frozen=True):
    """The best-founded place a value came from: the user's words, the host, a record, free text, or none."""

    kind: OriginKind
    step: int | None = None
    """The message or result that showed it first; None for the host and for nowhere."""
    tool: str = ""
    """The tool whose result showed it."""


NOWHERE = ValueOrigin("nowhere")


class Traced(Struct, frozen=True):
    """Where a value came from, with all that tells whether to rely on it."""

    source: TracedSource
    how: Way = "exact"
    step: int | None = None
    """The message or result that showed it."""
    tool: str = ""
    arguments: Mapping[str, Any] = {}
    """What the tool was called with."""
    field: str = ""
    """The field of the result, or the line of a text in it."""
    is_whole: bool = True
    """It is all that stands there, and not a part of a running text."""
    beside: Mapping[str, str] = {}
    """The short fields of the same record, folded."""
    pointed: tuple[str, ...] = ()
    """For content, what the user called the place by: arguments and fields beside it that the user said, folded."""
    parts: tuple[TracedSource, ...] = ()
    """For a derived value the sources of what it is made of."""
    number: int = -1
    """The record of the result that it stands in; -1 where it stands in none."""

    def record(self) -> dict[str, Any]:
        """As code in the guard language sees it."""
        told = {name: getattr(self, name) for name in ("source", "how", "tool", "field")}
        return {
            **told,
            "step": -1 if self.step is None else self.step,
            "arguments": dict(self.arguments),
            "whole": self.is_whole,
            "pointed": [*self.pointed],
            "parts": [*self.parts],
        }


class Provenance:
    """Answers, for one conversation, where values came from. `events` may grow while it is in use."""

    def __init__(
        self,
        events: Sequence[Event],
        *,
        instructions: str = "",
        context: Mapping[str, Any] | None = None,
        tools: Mapping[str, Tool] | None = None,
    ) -> None:
        self._events = events
        self._instructions = instructions
        self.vouch(context or {})
        self._tools = tools or {}
        self._texts = EventTexts(events, self._tools)
        self.text, self.places, self.results = self._texts.text, self._texts.places, self._texts.results
        self._said, self._shown_in = RunIndex(), RunIndex()
        """By their runs: what the user said, and what results showed."""
        self._echoes = Echoes(self._texts, self._shown_in)
        self._own_fields: dict[tuple[int, int], frozenset[str] | None] = {}
        self._answers: dict[int, int] = {}
        """By step of a call, that of its result."""
        self._numbers: list[tuple[int, float]] = []
        self._indexed = 0

    def vouch(self, context: Mapping[str, Any]) -> None:
        """What the host vouches for by now."""
        self._host = " \n ".join([self._instructions, *(str(value) for value in context.values())])

    def origin(self, value: Any, *, before: int) -> ValueOrigin:
        """Where `value` came from, as of the events before step `before`."""
        spelling = spell(value)
        if spelling is None:
            return NOWHERE
        self.index()
        step = self._user_step(spelling, before)
        if step is not None:
            return ValueOrigin("user", step)
        if _says(self._host, value):
            return ValueOrigin("host")
        return self._shown(value, spelling, before)

    def trace(self, value: str | float, *, before: int) -> Traced:
        """Where `value` came from, as of the events before step `before`, best founded first.

        The user's words come first, then the host's, then a whole field of a record, then other content. What a call
        was given comes back in its result, after a write in any result, and in records after a look-up of what a
        result had told: that founds nothing.
        """
        forms = _forms(value)
        self.index()
        for form, way in forms:
            spelling = spell(form)
            step = self._user_step(spelling, before) if spelling is not None else None
            if step is not None:
                return Traced("user", _way(form, self._texts.message(step), way), step)
        if any(_says(self._host, form) for form, _ in forms if spell(form) is not None):
            return Traced("host", "normalised")
        found: Traced | None = None
        for form, way in forms:
            for traced in self.sights(form, before=before):
                found = _better(found, replace(traced, how=way if way != "exact" else traced.how))
                if found.source == "record":
                    return found
        return found or Traced("agent")

    def sights(self, value: str | float, *, before: int, confirmed: bool = False) -> Iterator[Traced]:
        """The places in results before a step where a value stands of itself, and not as an echo, in order.

        With `confirmed` also fields that say again what their call was given, where nobody had told it to the agent.
        """
        spelling = spell(value)
        if spelling is None:
            return
        self.index()
        # Without its point 5.0 would be 50: a number is written as one, or not at all.
        letters = "" if spelling.is_number else letters_of(spelling.folded)
        handed: Handed | None = None
        for step in self._shown_in.candidates(spelling, before)[:CANDIDATES]:
            places = self.places(step)
            for place in places.find(value, spelling):
                call, at = self._texts.called(step)
                if call is not None and self._echoes.is_given(spelling, letters, at):
                    if confirmed and place.is_whole and place.field and not self._echoes.is_told(spelling, at):
                        yield self._traced(value, step, call, place, places, before)
                    break
                traced = self._traced(value, step, call, place, places, before)
                handed = handed or self._echoes.handed(spelling, letters, before)
                first = handed.telling if traced.source == "record" else handed.anyhow
                if not self._echoes.is_written(letters, first, step):
                    yield traced

    def is_said(self, value: str | float, *, before: int) -> bool:
        """Whether the user said a value before a step."""
        self.index()
        spelling = spell(value)
        if spelling is not None and self._user_step(spelling, before) is not None:
            return True
        bare = plain_link(value)
        return bare != value and self.is_said(bare, before=before)

    def ways_back(self, value: str | float, *, before: int) -> tuple[list[int], list[int]]:
        """The steps of the writes before a step that were given a value, and of the results that showed it after."""
        spelling = spell(value)
        if spelling is None:
            return [], []
        writes = [step for step in self.given(value, before=before) if self._texts.writes(step)]
        shown = self._shown_in.candidates(spelling, before)[:CANDIDATES] if writes else []
        return writes, [step for step in shown if step > writes[0] and spelling.stands_in(self.text(step))]

    def numbers(self, *, before: int) -> list[float]:
        """The numbers among what was said and shown before a step; the latest, where there are many."""
        self.index()
        end = bisect_left(self._numbers, (before,))
        return [number for _, number in self._numbers[max(0, end - _NUMBERS) : end]]

    def given(self, value: str | float, *, before: int) -> list[int]:
        """The steps of the calls before a step that were given a value, perhaps within a text."""
        spelling = spell(value)
        self.index()
        return [] if spelling is None else self._echoes.given(spelling, before)

    def mentions(self, value: str | float, *, before: int) -> Iterator[tuple[int, Call, str]]:
        """Of the results before a step those that show a value or answer a call that was given it, in order."""
        spelling = spell(value)
        if spelling is None:
            return
        self.index()
        shown = self._shown_in.candidates(spelling, before)[:CANDIDATES]
        asked = (self._answers.get(step) for step in self._echoes.candidates(spelling, before))
        for step in sorted({*shown, *(step for step in asked if step is not None and step < before)}):
            if call := self._texts.called(step)[0]:
                yield step, call, self.text(step)

    def index(self) -> None:
        """Take in the events that came since."""
        if self._indexed == len(self._events):
            return
        for step in range(self._indexed, len(self._events)):
            event = self._events[step]
            if isinstance(event, Result):
                if event.captured:
                    if event.call is not None:
                        self._answers.setdefault(event.call, step)
                    folded = fold(self.text(step))
                    if "\\" in folded:
                        # What begins a line of a text inside JSON stands after the letter of an escape.
                        folded = " ".join((folded, *_LINE_START.findall(folded)))
                    self._shown_in.add(step, folded)
                    self._note_numbers(step, folded)
            elif isinstance(event, Message):
                if event.by == "user":
                    self._said.add(step, self._texts.said(step))
                    self._echoes.add_said(step)
                    self._note_numbers(step, self._texts.said(step))
            elif not event.refused:
                self._echoes.add_call(step)
        self._indexed = len(self._events)

    def _note_numbers(self, step: int, folded: str) -> None:
        found = {float(number.replace(",", "")) for number in _NUMBER.findall(folded[:_SEARCHED])}
        self._numbers.extend((step, number) for number in sorted(found)[:_NUMBERS])

    def _user_step(self, spelling: Spelling, before: int) -> int | None:
        for step in self._said.candidates(spelling, before)[:CANDIDATES]:
            if spelling.said_in(self._texts.said(step)) and (
                not is_word(spelling.written[0]) or spelling.said_in(self._texts.said_bare(step))
            ):
                return step
        return None

    def _shown(self, value: str | float, spelling: Spelling, before: int) -> ValueOrigin:
        found = NOWHERE
        for step in self._shown_in.candidates(spelling, before):
            places = self._texts.data(step)
            for place in places.find(value, spelling):
                if place.is_whole and (places.is_listing or not place.is_line):
                    return ValueOrigin("record", step, self._texts.tool(step))
                found = found if found.step is not None else ValueOrigin("text", step, self._texts.tool(step))
        return found

    def _traced(
        self, value: str | float, step: int, call: Call | None, place: Place, places: ResultPlaces, before: int
    ) -> Traced:
        name = self._texts.tool(step)
        tool = self._tools.get(name)
        is_record = place.is_whole and tool is not None and tool.vouches_for(place.top, place.within)
        # What is told in place of a refused call's result is a text of the shield's, and may quote any tool.
        is_record = is_record and not (call is not None and call.refused)
        # Nor is a view that the agent made with an argument which nobody declared.
        is_record = is_record and not (call is not None and tool is not None and tool.undeclared(call.arguments))
        # A line of a field's text is not that field: whoever filled the field wrote it there.
        is_record = is_record and not (place.top and place.is_line)
        arguments = call.arguments if call is not None else {}
        beside = places.beside(place)
        # A record counts wherever it stands.
        named = [] if is_record else [*self._called_by(step, arguments, place.record, beside, before)]
        pointed = tuple(
            dict.fromkeys(fold(each) for each in named if _may_point(each) and self.is_said(each, before=before))
        )
        how = "exact" if str(value) in self.text(step) else "normalised"
        source = "record" if is_record else "content"
        return Traced(
            source, how, step, name, arguments, place.field, place.is_whole, beside, pointed, number=place.record
        )

    def own_fields(self, step: int, number: int) -> frozenset[str] | None:
        """Of the fields of a record those by which it may be called, folded; None where it may be by any."""
        if (step, number) not in self._own_fields:
            tool = self._tools.get(self._texts.tool(step))
            places = self.places(step)
            fields = {name: places.fields(number)[fold(name)] for name in places.names(number)}
            own = own_fields(fields, lambda name: tool is not None and tool.vouches_for(name))
            self._own_fields[step, number] = own
        return self._own_fields[step, number]

    def _called_by(
        self, step: int, arguments: Mapping[str, Any], number: int, beside: Mapping[str, str], before: int
    ) -> Iterator[str]:
        """What a place may be called by: what its tool was given, and the short fields beside it; where these say who
        wrote it, none that the writer chose, unless the user speaks of such a field."""
        own = self.own_fields(step, number)
        for path, each in leaf_values(arguments):
            if own is None or not is_search(path):
                yield str(each)
        for name, each in beside.items():
            if own is None or fold(name) in own or self._is_spoken_of(name, each, before):
                yield each

    def _is_spoken_of(self, field: str, value: str, before: int) -> bool:
        """Whether the user said what a field says, and that it is of that field; `value` is folded."""
        steps = [step for step in range(before) if self._texts.is_users(step)] if _may_point(value) else []
        return any(
            is_spoken_of(words[: found.start()], field)
            for step in steps
            for words in [self._texts.said(step)]
            for found in re.finditer(re.escape(value), words)
        )


# Conversations of one log mostly share their instructions: folded once, asked once.
_fold_long = lru_cache(maxsize=16)(fold_said)


@lru_cache(maxsize=16)
def _fold_bare(text: str) -> str:
    return fold_said(without_joined(text))


@lru_cache(maxsize=8192, typed=True)
def _says(host: str, value: str | float) -> bool:
    spelling = spell(value) if host else None
    if spelling is None or not spelling.said_in(_fold_long(host)):
        return False
    return not is_word(spelling.written[0]) or spelling.said_in(_fold_bare(host))


def _forms(value: str | float) -> list[tuple[str | float, Way]]:
    """A value, and other ways in which the same is written: a link without its scheme."""
    found: list[tuple[str | float, Way]] = [(value, "exact")]
    if (bare := plain_link(value)) != value:
        found.append((bare, "normalised"))
    return found


def plain_link(value: str | float) -> str | float:
    """A link without its scheme and its last slash, as people write it; any other value as it is."""
    if not isinstance(value, str) or not _SCHEME.match(value):
        return value
    return _SCHEME.sub("", value).rstrip("/") or value


def _way(value: str | float, text: str, way: Way) -> Way:
    return way if way != "exact" or str(value) in text else "normalised"


def _better(found: Traced | None, other: Traced) -> Traced:
    """The better founded of two: a record, then what stands alone, then where the user pointed; else the first."""
    return other if found is None or _worth(other) > _worth(found) else found


def _worth(traced: Traced) -> tuple[bool, int, bool]:
    return traced.source == "record", len(traced.pointed), traced.is_whole


def _may_point(value: str) -> bool:
    """Whether somebody may call a place by a value: not a letter, nor a figure that stands anywhere."""
    return 2 < len(value) <= 200 and not value.replace(".", "").replace("-", "").isdigit()
