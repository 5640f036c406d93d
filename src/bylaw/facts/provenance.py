"""Finds the origin of an argument's value.

Events are indexed by the runs of letters and digits that they contain. A query examines only events that contain the
value's rarest run, and decodes a result only if it contains the value.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from bylaw.facts.echoes import CANDIDATES, Echoes, Handed, RunIndex, letters_of
from bylaw.facts.result_places import EventTexts, Place, ResultPlaces, leaf_values
from bylaw.policy.tool import Tool
from bylaw.text.folding import fold, fold_said
from bylaw.text.identifier import is_word, without_joined
from bylaw.text.spelling import Spelling, spell
from bylaw.trace.event import Call, Event, Message, Result

if TYPE_CHECKING:
    from bylaw.actions.action import PageTerms

_WHO = frozenset(("from", "sender", "author", "owner", "by", "creator", "writer", "poster", "uploader", "organizer"))
_WHICH = frozenset(("id", "ids", "uuid", "name", "filename", "file", "path", "folder", "channel", "url", "uri", "link"))
_FILE = frozenset(("name", "filename", "file", "path"))
_WHEN = frozenset(
    ("date", "time", "timestamp", "day", "at", "sent", "received", "created", "posted", "modified", "last")
)
_OF = frozenset(("user", "username", "email", "mail", "address", "message", "msg", "display", "full", "first"))
"""Words that are combined in field names with a word for an author or an identifier, as in `sender_email` and
`message_id`.
"""
_SEARCH_ARGUMENTS = frozenset(("query", "q", "search", "keyword", "keywords", "text", "term", "terms", "contains"))
_SPOKEN_OF = "subject|title|titled|entitled|headed|headline|called|named|about|regarding|concerning"
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_QUOTES = "\"'\u201c\u2018\u00ab`"


def own_fields(fields: Mapping[str, str], vouched: Callable[[str], bool]) -> frozenset[str] | None:
    """Return the normalised names of the fields that identify a record. None means all fields, because none names an
    author.
    """
    words = {name: {*_words(name)} for name in fields}
    if not any(_is_who(words[name]) and not _is_nobody(value) for name, value in fields.items()):
        return None
    return frozenset(
        fold(name) for name, each in words.items() if (each and each <= _WHO | _WHICH | _WHEN | _OF) or vouched(name)
    )


def is_file_name(field: str) -> bool:
    return {*_words(field)} <= _FILE


def is_search(argument: str) -> bool:
    """Whether an argument of a look-up is a search text rather than a name."""
    return bool({*_words(argument)} & _SEARCH_ARGUMENTS)


def is_spoken_of(before: str, field: str = "") -> bool:
    """Whether the words before a quote show that the user is quoting something, or naming a topic, title or field."""
    if before[-1:] and before[-1] in _QUOTES and not before[-2:-1].isalnum():
        return True
    names = "|".join([_SPOKEN_OF, *(re.escape(word) for word in _words(field))])
    return re.search(rf"\b(?:{names})s?(?:\W+(?:is|of|the|a|an|my|our|line|it))*\W*$", before.lower()) is not None


def _is_who(words: set[str]) -> bool:
    return bool(words & _WHO) and words <= _WHO | _WHICH | _WHEN | _OF


def _is_nobody(value: str) -> bool:
    """Whether a value names no other person, because it is `me` or mostly consists of digits, as account numbers do."""
    digits, letters = sum(map(str.isdigit, value)), sum(map(str.isalpha, value))
    return value == "me" or (digits > letters and "@" not in value)


def _words(name: str) -> list[str]:
    return _WORD.findall(_CAMEL.sub("_", name).lower())


TracedSource = Literal["user", "host", "record", "content", "agent"]
"""Where a value comes from.

`user`: the user's words. `host`: the host's context. `record`: a whole field of a result that is declared reliable.
`content`: other text in a result. `agent`: the agent itself.
"""
WORST_FIRST: tuple[TracedSource, ...] = ("agent", "content", "record", "host", "user")
"""Sources, the least trusted first. A combination of values is only as trusted as its least trusted part."""
Way = Literal["exact", "normalised", "derived"]

_NUMBERS = 200
_SEARCHED = 100_000
_NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?![\w])")
_LINE_START = re.compile(r"\\[nrt](\w+)")
_SCHEME = re.compile(r"^https?://", re.IGNORECASE)


class Traced(Struct, frozen=True):
    """The origin of a value, with what determines whether the value can be trusted."""

    source: TracedSource
    how: Way = "exact"
    step: int | None = None
    """The step of the message or result that shows the value."""
    tool: str = ""
    arguments: Mapping[str, Any] = {}
    field: str = ""
    """The field of the result. If the value is inside a longer text, the label of its line."""
    is_whole: bool = True
    """Whether the value is the whole field and not just part of a longer text."""
    beside: Mapping[str, str] = {}
    """The other short fields of the same record, normalised."""
    pointed: tuple[str, ...] = ()
    """For `content`: the normalised names by which the user referred to the source."""
    parts: tuple[TracedSource, ...] = ()
    """For a value derived from others: where its parts come from."""
    number: int = -1
    """The index of the record in the result. -1 if there is no record."""

    def record(self) -> dict[str, Any]:
        """Return the origin as a record that guards can read."""
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
    """Finds the origins of values in one conversation. Events may be added to `events` later."""

    def __init__(
        self,
        events: Sequence[Event],
        *,
        instructions: str = "",
        context: Mapping[str, Any] | None = None,
        tools: Mapping[str, Tool] | None = None,
        pages: "PageTerms | None" = None,
    ) -> None:
        """`pages` specifies which tools show browser pages, and which parts of a page anyone may have written."""
        self._events = events
        self._pages = pages
        self._instructions = instructions
        self.vouch(context or {})
        self._tools = tools or {}
        self._texts = EventTexts(events, self._tools)
        self.text, self.places, self.results = self._texts.text, self._texts.places, self._texts.results
        self._said, self._shown_in = RunIndex(), RunIndex()
        self._echoes = Echoes(self._texts, self._shown_in)
        self._own_fields: dict[tuple[int, int], frozenset[str] | None] = {}
        self._answers: dict[int, int] = {}
        self._numbers: list[tuple[int, float]] = []
        self._indexed = 0

    def vouch(self, context: Mapping[str, Any]) -> None:
        self._host = " \n ".join([self._instructions, *(str(value) for value in context.values())])

    def origin(self, value: Any, *, before: int) -> Traced:
        """Return the origin of `value` if there is no pack. A whole value in a result then counts as a record."""
        spelling = spell(value)
        if spelling is None:
            return Traced("agent")
        self.index()
        step = self._user_step(spelling, before)
        if step is not None:
            return Traced("user", step=step)
        return Traced("host") if _says(self._host, value) else self._shown(value, spelling, before)

    def trace(self, value: str | float, *, before: int) -> Traced:
        """Return the most trusted origin of `value`, using the events before a step.

        The user's words rank first, then the host's context, then a whole field of a record, then other content. A
        value that only repeats an argument is not evidence. In the call's own result, every argument may be repeated. A
        write's argument may also be repeated by later results. A look-up's argument may be repeated by later records,
        but this counts only if a result had shown the value before the look-up.
        """
        forms = _forms(value)
        self.index()
        for form, way in forms:
            spelling = spell(form)
            step = self._user_step(spelling, before) if spelling is not None else None
            if step is not None:
                return Traced("user", way if str(form) in self._texts.message(step) else "normalised", step)
        if any(_says(self._host, form) for form, _ in forms if spell(form) is not None):
            return Traced("host", "normalised")
        found: Traced | None = None
        for form, way in forms:
            for traced in self.sights(form, before=before):
                traced = replace(traced, how=way if way != "exact" else traced.how)
                # Preferred in this order: a record, the source to which the user referred, a whole value, the first
                # value found.
                found = traced if found is None or _worth(traced) > _worth(found) else found
                if found.source == "record":
                    return found
        return found or Traced("agent")

    def sights(self, value: str | float, *, before: int, confirmed: bool = False) -> Iterator[Traced]:
        """Yield the places in results before a step that show a value and do not only repeat it, in order.

        With `confirmed`, also yield fields that repeat an argument of their call, if no earlier result had shown the
        value to the agent.
        """
        spelling = spell(value)
        if spelling is None:
            return
        self.index()
        # Compare numbers only as numbers, because 5.0 without its decimal point would become 50.
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
        self.index()
        spelling = spell(value)
        if spelling is not None and self._user_step(spelling, before) is not None:
            return True
        bare = plain_link(value)
        return bare != value and self.is_said(bare, before=before)

    def echo_steps(self, value: str | float, *, before: int) -> tuple[list[int], list[int]]:
        """Return the steps of writes that had the value as an argument, and of results that showed it later."""
        spelling = spell(value)
        if spelling is None:
            return [], []
        writes = [step for step in self.given(value, before=before) if self._texts.writes(step)]
        shown = self._shown_in.candidates(spelling, before)[:CANDIDATES] if writes else []
        return writes, [step for step in shown if step > writes[0] and spelling.stands_in(self.text(step))]

    def numbers(self, *, before: int) -> list[float]:
        """Return the numbers that were said or shown before a step, or only the latest if there are many."""
        self.index()
        end = bisect_left(self._numbers, (before,))
        return [number for _, number in self._numbers[max(0, end - _NUMBERS) : end]]

    def given(self, value: str | float, *, before: int) -> list[int]:
        """Return the steps before `before` of calls that have the value in their arguments."""
        spelling = spell(value)
        self.index()
        return [] if spelling is None else self._echoes.given(spelling, before)

    def mentions(self, value: str | float, *, before: int) -> Iterator[tuple[int, Call, str]]:
        """Yield the results before a step that show a value, or whose call has the value in its arguments, in order."""
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
                        # In JSON text, an escape such as `\n` ends in a letter that directly precedes the next line.
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

    def _shown(self, value: str | float, spelling: Spelling, before: int) -> Traced:
        found = Traced("agent")
        for step in self._shown_in.candidates(spelling, before):
            places = self._texts.data(step)
            for place in places.find(value, spelling):
                if place.is_whole and (places.is_listing or not place.is_line):
                    return Traced("record", step=step, tool=self._texts.tool(step))
                found = found if found.step is not None else Traced("content", step=step, tool=self._texts.tool(step))
        return found

    def _traced(
        self, value: str | float, step: int, call: Call | None, place: Place, places: ResultPlaces, before: int
    ) -> Traced:
        name = self._texts.tool(step)
        tool = self._tools.get(name)
        arguments = call.arguments if call is not None else {}
        is_record = tool is not None and (
            (place.is_whole and tool.vouches_for(place.top, place.within))
            or (tool.trusts("") and self._is_shown_by_page(value, step, name, arguments))
        )
        # The result of a refused call is written by the shield, which may quote the results of any tool.
        is_record = is_record and not (call is not None and call.refused)
        # With an undeclared argument, the agent can influence the result.
        is_record = is_record and not (tool is not None and tool.undeclared(arguments))
        # The author of a text also wrote its lines, so a line in a field is not trusted like the field itself.
        is_record = is_record and not (place.top and place.is_line)
        beside = places.beside(place)
        # A record is accepted wherever it appears.
        named = [] if is_record else [*self._called_by(step, arguments, place.record, beside, before)]
        pointed = tuple(
            dict.fromkeys(fold(each) for each in named if _may_point(each) and self.is_said(each, before=before))
        )
        how = "exact" if str(value) in self.text(step) else "normalised"
        source = "record" if is_record else "content"
        return Traced(
            source, how, step, name, arguments, place.field, place.is_whole, beside, pointed, number=place.record
        )

    def _is_shown_by_page(self, value: str | float, step: int, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Whether a page shows a value as the site's own content, outside the parts that anyone may have written."""
        if self._pages is None or not self._pages.shows(tool):
            return False
        from bylaw.actions.page_state import shows_value, text_of

        return shows_value(text_of(self._texts.value(step)), str(value), self._pages, arguments)

    def own_fields(self, step: int, number: int) -> frozenset[str] | None:
        """Return the normalised names of the fields by which the user may refer to a record. None means all fields."""
        if (step, number) not in self._own_fields:
            tool, places = self._tools.get(self._texts.tool(step)), self.places(step)
            fields = {name: places.fields(number)[fold(name)] for name in places.names(number)}
            self._own_fields[step, number] = own_fields(fields, lambda name: bool(tool) and tool.vouches_for(name))
        return self._own_fields[step, number]

    def _called_by(
        self, step: int, arguments: Mapping[str, Any], number: int, beside: Mapping[str, str], before: int
    ) -> Iterator[str]:
        """Yield the names by which a source can be called: its tool's arguments, and the short fields not chosen by an
        author.
        """
        own = self.own_fields(step, number)
        for path, each in leaf_values(arguments):
            if own is None or not is_search(path):
                yield str(each)
        for name, each in beside.items():
            if own is None or fold(name) in own or self._is_spoken_of(name, each, before):
                yield each

    def _is_spoken_of(self, field: str, value: str, before: int) -> bool:
        said = (self._texts.said(step) for step in range(before) if self._texts.is_users(step))
        return _may_point(value) and any(
            is_spoken_of(words[: found.start()], field)
            for words in said
            for found in re.finditer(re.escape(value), words)
        )


# Cached, because the conversations in a log usually share a system prompt.
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
    """Return a value and its equivalent spellings, such as a link without its scheme, each with how it was derived."""
    bare = plain_link(value)
    return [(value, "exact")] if bare == value else [(value, "exact"), (bare, "normalised")]


def plain_link(value: str | float) -> str | float:
    """Return a link without its scheme and trailing slash. Any other value is returned unchanged."""
    if not isinstance(value, str) or not _SCHEME.match(value):
        return value
    return _SCHEME.sub("", value).rstrip("/") or value


def _worth(traced: Traced) -> tuple[bool, int, bool]:
    return traced.source == "record", len(traced.pointed), traced.is_whole


def _may_point(value: str) -> bool:
    """Whether a value is specific enough to identify a source. Single letters and numbers are not."""
    return 2 < len(value) <= 200 and not value.replace(".", "").replace("-", "").isdigit()
