"""The ledger records everything that was asked, answered, said and done in one trajectory.

`ShownFacts` holds what results have shown. A value in a user message is only a claim and not a fact.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property, lru_cache
from heapq import merge
from itertools import groupby
from typing import Any, Protocol

from msgspec.structs import replace

from bylaw.facts.call_record import TO_USER, Answers, CallRecord, accepted, had, record_of
from bylaw.facts.entity import ABSENT, UNSEEN, Between, Field, FieldType, NoValue
from bylaw.facts.provenance import Provenance
from bylaw.facts.result_places import is_cut
from bylaw.facts.schema import Schema
from bylaw.facts.shown import ShownFacts
from bylaw.text.day import MONTHS
from bylaw.trace.event import Call, Event, Result

_GAPS = re.compile(r"[\s_-]+")
Search = Callable[[str], Any]
"""Searches a message for something. Any true result means that it was found."""


def _stating(field: Field, value: Any) -> tuple[str, ...]:
    if value is UNSEEN:
        values: tuple[Any, ...] = (
            field.values if field.type == "enum" else (True, False) if field.type == "boolean" else ()
        )
    elif isinstance(value, list | dict) or value is None or value is ABSENT:
        return ()
    else:
        return _forms(field.type, field.claims, value)
    return tuple(form for each in values for form in _forms(field.type, field.claims, each))


@lru_cache(maxsize=4096)
def _compile(forms: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(forms), re.IGNORECASE)


@lru_cache(maxsize=4096, typed=True)
def _forms(kind: FieldType, claims: tuple[tuple[str, tuple[str, ...]], ...], value: Any) -> tuple[str, ...]:
    """Return patterns that match statements of the value as whole words."""
    name = ("true" if value else "false") if isinstance(value, bool) else str(value)
    phrases = tuple(re.escape(each) for claimed, said in claims if claimed == name for each in said)
    match kind:
        case "string" | "enum":
            loose = r"[\s_-]+".join(re.escape(part) for part in _GAPS.split(name) if part)
            return (*phrases, rf"(?<!\w){loose}(?!\w)") if len(name) > 1 else phrases
        case "money" | "number":
            return (*phrases, _amount(value))
        case "date":
            return (*phrases, *_dates(value))
        case _:
            return phrases


def _amount(value: Any) -> str:
    amount = value if isinstance(value, Decimal) else Decimal(str(value))
    whole, cents = f"{amount:,.2f}".split(".")
    part = r"(?:\.00?)?" if amount == amount.to_integral_value() else rf"\.{cents}"
    return rf"(?<![\w.,]){whole.replace(',', ',?')}{part}(?!\w|[.,]\d)"


def _dates(value: Any) -> Iterator[str]:
    day = value.date() if isinstance(value, datetime) else value
    if not isinstance(day, date):
        return
    month = MONTHS[day.month - 1]
    name = rf"{month[:3]}(?:{month[3:]})?\.?" if len(month) > 3 else month
    number = rf"0?{day.day}(?:st|nd|rd|th)?"
    yield rf"(?<!\d){day.isoformat()}(?!\d)"
    yield rf"(?<!\w){name}\s+{number}(?!\w)"
    yield rf"(?<!\w){number}\s+(?:of\s+)?{name}(?!\w)"
    year = rf"(?:/(?:{day.year}|{day.year % 100:02d}))?"
    yield rf"(?<!\d)0?{day.month}/0?{day.day}{year}(?!\d)"


class MissingResults:
    """Finds calls whose results are missing. Events are read only up to the step of the query."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._looked = 0
        self._lost: list[int] = []
        """Steps of results that were not captured or were truncated."""
        self._answers: dict[int, int] = {}
        self._turn = -1
        self._open: list[int] = []
        self._left: list[int] = []
        """Calls that had no result when a later turn began."""

    def any_before(self, step: int) -> bool:
        """Whether a result is missing that the agent should have had in the turn at `step`."""
        self._look(step)
        if self._lost and self._lost[0] < step:
            return True
        waiting = (call for call in (*self._left, *self._open) if call < step)
        return any(self._answers.get(call, step) >= step for call in waiting)

    def _look(self, step: int) -> None:
        end = min(step, len(self._events))
        for place in range(self._looked, end):
            event = self._events[place]
            if type(event) is Result:
                if event.call is not None:
                    self._answers.setdefault(event.call, place)
                if not event.captured or is_cut(event.text):
                    self._lost.append(place)
                continue
            if event.turn != self._turn:
                self._left += (call for call in self._open if call not in self._answers)
                self._open.clear()
                self._turn = event.turn
            if type(event) is Call and not event.refused:
                self._open.append(place)
        self._looked = max(self._looked, end)


class Requests(Protocol):
    def keeps(self, at: CallRecord) -> "bool | NoValue":
        """Whether the user's request covers a call. UNSEEN if the user must be asked."""
        ...

    def objections(self, at: CallRecord) -> Sequence[object]:
        """Return the reasons why the request does not cover a call. They are objects whose `str` is the text."""
        ...


class Ledger(ShownFacts):
    """The facts shown in one trajectory, and everything that was asked, said and done in it."""

    turn = -1
    """The number of the current turn. `turn_start` is its first step."""
    turn_start = 0
    _provenance: Provenance | None = None
    requests: Requests | None = None
    """What the user's request allows. Set if the pack uses requests."""
    stated: Callable[[str, Field, CallRecord], Any] | None = None
    """For statements that code cannot read: returns the raw value that the user stated before a call, or UNSEEN."""

    def __init__(self, schema: Schema, vouched: Mapping[str, Any] | None = None) -> None:
        super().__init__(schema)
        self.vouched: Mapping[str, Any] = {} if vouched is None else vouched
        self.calls: dict[int, CallRecord] = {}
        self.writes: list[CallRecord] = []
        """Calls that may change something, which are calls to write tools and to undeclared tools."""
        self.said: list[tuple[int, str]] = []
        self._unheard: list[int] = []
        """Steps of user messages that were not recorded."""
        self.answers = Answers()
        self.strays: list[int] = []
        self._stating: dict[Search, tuple[int, list[int]]] = {}
        """For each search: how many user messages were searched so far, and the indices of those that match."""
        self.suspects: dict[tuple[str, str, str], tuple[int, list[CallRecord]]] = {}
        """For each tool, entity and field: how many results were checked, and the calls whose results may lack the
        field.
        """
        self._to_show: dict[int, CallRecord] = {}
        """Refused calls, by step, for which a shield made look-ups whose results the agent has not received yet."""

    @cached_property
    def _missing(self) -> MissingResults:
        return MissingResults(self._events)

    @property
    def events(self) -> Sequence[Event]:
        return self._events

    @property
    def step(self) -> int:
        return len(self._events)

    def record(self, call: Call, step: int) -> CallRecord:
        """Return a record of a call that has not been observed yet."""
        start = self.turn_start if call.turn == self.turn else step
        return record_of(call, step, start, self.schema.called.get(call.tool))

    def observe(self, step: int, event: Event, made: CallRecord | None = None) -> None:
        """Add the next event. If it is a call that was already judged, `made` is its record."""
        self.observe_all(step, (event,), made)

    def observe_all(self, step: int, events: Sequence[Event], made: CallRecord | None = None) -> None:
        """Add the next events. If the first is a call that was already judged, `made` is its record."""
        tools, calls, turn, start = self.schema.called, self.calls, self.turn, self.turn_start
        self._events += events
        for event in events:
            # A failing `isinstance` check is slow. The attribute is fastest to read if its type is always the same.
            if type(event) is Result:
                asked = calls.get(event.call) if event.call is not None else None
                if asked is not None and asked.result is None and not asked.call.refused:
                    for each in (asked, *asked.actions):
                        self._deliver(each, event, step)
                elif event.call is None:
                    self.strays.append(step)
                elif self._to_show and event.call in self._to_show:
                    self._shown_with(self._to_show.pop(event.call), event, step)
            elif type(event) is Call:
                if event.turn != turn:
                    turn, start = event.turn, step
                if made is None:
                    who = TO_USER if event.by == "user" else event.agent
                    made = CallRecord(event, step, start, tools.get(event.tool), who)
                calls[step] = made
                if event.refused and event.looked_up:
                    self._to_show[step] = made
                self._begin(made)
                made = None
            else:
                if event.turn != turn:
                    turn, start = event.turn, step
                # The answer to a card is not a statement of the user.
                if event.by == "user" and event.confirmation is None:
                    self.said.append((step, event.text))
                    if not event.captured:
                        self._unheard.append(step)
            step += 1
        self.turn, self.turn_start = turn, start

    def perform(self, asked: CallRecord, made: CallRecord) -> None:
        """Add an action that the last observed call performed."""
        asked.actions = (*asked.actions, made)
        self._begin(made)

    def suppose(self, made: CallRecord) -> CallRecord:
        """Assume that an action ran, in order to judge another action of the same call. Call `withdraw` afterwards."""
        supposed = CallRecord(replace(made.call, refused=False), self.step, made.start, made.tool, made.who)
        self._begin(supposed)
        return supposed

    def withdraw(self, supposed: CallRecord) -> None:
        """Undo `suppose`."""
        supposed.call, supposed.accepted = replace(supposed.call, refused=True), False
        supposed.delivered = -1
        self.changes.end(supposed)

    def _begin(self, made: CallRecord) -> None:
        """Record the start of a call or an action."""
        refused = made.call.refused
        if refused:
            made.accepted, made.delivered = False, made.step
        if self.changes.under_way:
            self.changes.ask(made)
        if made.tool is None or made.tool.effect == "write":
            self.writes.append(made)
            if not refused:
                self.changes.write(made, self.finder(made))

    def _deliver(self, made: CallRecord, result: Result, step: int) -> None:
        """Record the result of a call or an action."""
        made.result, made.delivered = result, step
        self.answers.add(made)
        if made.tool is None or made.tool.effect == "write":
            made.accepted = accepted(made.tool, result)
            self.changes.end(made)
            self.changes.answer(made, result, self.finder(made))
        for entity in self.schema.shows.get(made.call.tool, ()):
            self._kinds[entity].showing.append(made)

    def _shown_with(self, refused: CallRecord, told: Result, step: int) -> None:
        """Record the look-ups that a shield made for a refused call. The agent got their results with the refusal."""
        call = refused.call
        for each in call.looked_up:
            if each.shown:
                asked = Call(each.tool, each.arguments, turn=call.turn, agent=call.agent, time=call.time)
                made = CallRecord(asked, refused.step, refused.start, self.schema.tools.get(each.tool), refused.who)
                result = Result(told.call, each.content, each.failed or None, tool=each.tool, time=told.time)
                self._deliver(made, result, step)

    def provenance(self, context: Mapping[str, Any]) -> Provenance:
        if self._provenance is None:
            actions = self.schema.actions
            pages = actions.pages if actions is not None else None
            self._provenance = Provenance(self._events, context=context, tools=self.schema.tools, pages=pages)
        return self._provenance

    def vouch(self, context: Mapping[str, Any]) -> None:
        self.vouched = context
        if self._provenance is not None:
            self._provenance.vouch(context)

    def read_ahead(self, result: Result) -> None:
        """Decode a result that was observed, before it is needed."""
        if self._provenance is not None:
            self._provenance.index()
        made = self.calls.get(result.call) if result.call is not None else None
        for entity in self.schema.shows.get(made.call.tool, ()) if made is not None else ():
            self._read(entity)

    def has_heard_all(self, step: int) -> bool:
        """Whether every user message before a step was recorded. False if none was, because a log may leave them all
        out.
        """
        return self.has_heard_since(-1, step) and bool(self.said) and self.said[0][0] < step

    def is_whole_before(self, step: int) -> bool:
        """Whether every message and every result before a step is known, so that a value which none of them contains is
        new.
        """
        return self.has_heard_all(step) and not self._missing.any_before(step)

    def has_heard_since(self, step: int, before: int) -> bool:
        """Whether every user message between two steps was recorded."""
        return bisect_left(self._unheard, before) <= bisect_right(self._unheard, step)

    def is_last_unheard(self) -> bool:
        return bool(self._unheard) and self._unheard[-1] == self.said[-1][0]

    def stating(self, searches: Iterable[Search], before: int) -> Iterator[tuple[int, str]]:
        """Yield the user messages before a step that a search matches, each with its step, latest first."""
        said = self.said
        found: list[Iterator[int]] = []
        until = bisect_left(said, (before,))
        for search in searches:
            searched, places = self._stating.get(search, (0, []))
            if searched < len(said):
                places += [place for place in range(searched, len(said)) if search(said[place][1])]
                self._stating[search] = (len(said), places)
            if places and places[0] < until:
                last = bisect_left(places, until) - 1
                found.append(map(places.__getitem__, range(last, -1, -1)))
        for place, _ in groupby(merge(*found, reverse=True)):
            yield said[place]

    def claim(self, field: Field, value: Any, before: int) -> tuple[int, str] | None:
        """Return the step and the text of the user's last claim of a value. If it is UNSEEN, any value counts."""
        forms = _stating(field, value)
        if not forms:
            return None
        search = _compile(forms).search
        for step, text in self.stating([search], before):
            if match := search(text):
                return step, match[0]
        return None

    def done(
        self, tool: str, match: Mapping[str, Any], at: CallRecord, *, known_at: int | None = None
    ) -> int | Between:
        """Return how many earlier calls to `tool` with arguments equal to `match` took effect or were answered."""
        count = unsure = 0
        declared = self.schema.tools.get(tool)
        is_write = declared is None or declared.effect == "write"
        calls = self.calls.values()
        reads = calls if self.schema.actions is None else (one for made in calls for one in (made, *made.actions))
        for made in self.writes if is_write else reads:
            if made.step >= at.step:
                break
            if made.call.tool != tool and tool not in made.may_be:
                continue
            is_known = made.delivered is not None and (known_at is None or made.delivered < known_at)
            # A call in the same turn is assumed to have run until its result arrives, as it is for staleness.
            is_pending = is_write and known_at is not None and made.start == at.start
            happened = (
                (made.accepted if is_write else made.was_answered()) if is_known else True if is_pending else None
            )
            matches = had(made, match) if made.call.tool == tool else None
            if happened is False or matches is False:
                continue
            if happened is None or matches is None:
                unsure += 1
            else:
                count += 1
        return Between(count, count + unsure) if unsure else count
