"""Counts how many results of look-ups were captured, readable and mapped to entities, and why the others were not.

An unreadable result is a fault of the log or the pack, and never a mistake by the agent.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from operator import attrgetter
from typing import Any, Final, Literal

from msgspec import Struct

from bylaw.facts.call_record import CallRecord, accepted, failed, looks_failed
from bylaw.facts.entity import Entity, Key
from bylaw.facts.ledger import Ledger
from bylaw.facts.observation import Observation, Unread, searched_text, sightings, unreadable
from bylaw.facts.schema import Schema
from bylaw.facts.value import key_of, loose
from bylaw.policy.tool import Tool
from bylaw.trace.event import Call, Event, Result

EvidenceGrade = Literal["shown", "readable", "empty", "unmapped", "unreadable", "failing", "uncaptured", "refused"]
"""How useful a result is.

`shown`: data that the pack maps to entities. `readable`: data, but there is no pack to map it. `empty`: data without
content. `unmapped`: data in which no observation finds its entity. `unreadable`: text that cannot be parsed. `failing`:
unreadable text that looks like an error.
"""

CURES: Final[dict[EvidenceGrade, str]] = {
    "uncaptured": "results were not recorded: turn on content capture",
    "unreadable": "results are text, neither JSON nor printed Python: return JSON from the tool, or give its"
    " observation a `text` pattern",
    "failing": "some results look like errors, but the pack does not declare them: add `refused` to the tool in"
    " tools.yaml (`bylaw explain` shows the line to write)",
    "unmapped": "no observation finds an entity's key in the results: correct the tool's observations",
}
"""What to do about each problem. docs/guides/get-your-logs-out.md explains how to record logs."""


class LookupEvidence(Struct, frozen=True, omit_defaults=True):
    tool: str
    results: int
    """The number of results, including refusals."""
    captured: int
    """The number of results whose content was recorded."""
    readable: int
    """The number of captured results that are data, are refusals, or match a pattern of the pack."""
    shown: int | None = None
    """The number of results whose data the pack maps to entities. None if the pack does not map this tool's results."""
    refused: int = 0
    empty: int = 0
    cures: tuple[str, ...] = ()
    """What to do about each problem, the most common problem first. Empty if every result could be used."""


class EvidenceCount:
    """Counts the results in several conversations. Two counts can be added."""

    def __init__(self, schema: Schema | None = None) -> None:
        self.graded: dict[str, Counter[EvidenceGrade]] = {}
        self._lookups: dict[str, tuple[Tool, list[Observation] | None]] | None = None
        """The pack's look-ups, each with its observations. None if there is no pack, so that all tools are counted."""
        self._mapped: frozenset[str] = frozenset()
        if schema is not None:
            shows = {name: [each for found in kinds.values() for each in found] for name, kinds in schema.shows.items()}
            pages = schema.actions.pages if schema.actions is not None else None
            # Pages of a browser are read for actions, even if they show no entities.
            shown = {name for name in schema.tools if pages is not None and pages.shows(name) and name not in shows}
            reads = [tool for tool in schema.called.values() if tool.effect == "read" and tool.name not in shown]
            self._lookups = {tool.name: (tool, shows.get(tool.name) or None) for tool in reads}
            self._mapped = frozenset(name for name, kinds in schema.shows.items() if kinds)

    def add(self, events: Sequence[Event], known: Mapping[int, CallRecord] | None = None) -> None:
        """Count the results of look-ups in one conversation or, without a pack, the results of all tools.

        `known` contains the conversation's calls by step. Passing it saves time, because guards may already have read
        their results.
        """
        lookups, graded, known = self._lookups, self.graded, known or {}
        for result in events:
            if type(result) is not Result or result.call is None:
                continue
            call = events[result.call]
            if type(call) is Call and call.by == "agent" and (lookups is None or call.tool in lookups):
                counts = graded.get(call.tool)
                if counts is None:
                    counts = graded[call.tool] = Counter()
                made = known.get(result.call)
                is_shown = made is not None and made.has_shown and made.result is result
                counts["shown" if is_shown else self.grade(call, result)] += 1

    def grade(self, call: Call, result: Result) -> EvidenceGrade:
        return grade(call, result, *(self._lookups or {}).get(call.tool, (None, None)))

    def update(self, other: "EvidenceCount") -> None:
        self.add_graded(other.graded)
        self._mapped |= other._mapped

    def add_graded(self, graded: Mapping[str, Mapping[EvidenceGrade, int]], times: int = 1) -> None:
        for tool, grades in graded.items():
            self.graded.setdefault(tool, Counter()).update({grade: count * times for grade, count in grades.items()})

    def found(self) -> tuple[LookupEvidence, ...]:
        """Return the counts by tool, the tool with the most results first."""
        listed = [_evidence(tool, graded, tool in self._mapped) for tool, graded in self.graded.items()]
        return tuple(sorted(listed, key=lambda each: (-each.results, each.tool)))


def grade(
    call: Call, result: Result, tool: Tool | None = None, observations: Iterable[Observation] | None = None
) -> EvidenceGrade:
    """Return how useful a result is. `observations` is None if the pack declares none for the tool."""
    if not result.captured:
        return "uncaptured"
    value = result.value()
    is_accepted = accepted(tool, result, value)
    text = searched_text(result, value, is_accepted)
    for observation in observations or ():
        if any(each.shows_more() for each in sightings(observation, call.arguments, value, text, is_accepted)):
            return "shown"
    if is_accepted is False or (tool is None and failed(result)):
        return "refused"
    if value is None or value == "" or value == [] or value == {}:
        return "empty"
    if isinstance(value, str):
        return "failing" if looks_failed(value) else "unreadable"
    return "readable" if observations is None else "unmapped"


def _evidence(tool: str, graded: Counter[EvidenceGrade], maps: bool) -> LookupEvidence:
    captured = graded.total() - graded["uncaptured"]
    faults: list[EvidenceGrade] = sorted((each for each in CURES if graded[each]), key=lambda each: -graded[each])
    return LookupEvidence(
        tool,
        graded.total(),
        captured,
        captured - graded["unreadable"] - graded["failing"],
        graded["shown"] if maps else None,
        graded["refused"],
        graded["empty"],
        tuple(CURES[each] for each in faults),
    )


_Z = 1.959963984540054


def wilson(hits: int, cases: int) -> tuple[float, float]:
    """Return Wilson's 95% interval for `hits` in `cases`, or 0 to 1 if there are no cases."""
    if cases == 0:
        return 0.0, 1.0
    share, square = hits / cases, _Z * _Z
    centre = (share + square / (2 * cases)) / (1 + square / cases)
    spread = _Z * sqrt(share * (1 - share) / cases + square / (4 * cases * cases)) / (1 + square / cases)
    return 0.0 if hits == 0 else max(0.0, centre - spread), 1.0 if hits == cases else min(1.0, centre + spread)


def rate(count: int, of: int) -> dict[str, Any]:
    """Return `count / of` with its confidence interval, as a record. All values are None if `of` is 0."""
    if of == 0:
        return {"value": None, "low": None, "high": None, "count": count, "of": 0}
    low, high = wilson(count, of)
    return {"value": count / of, "low": low, "high": high, "count": count, "of": of}


def why_unread(ledger: Ledger, entity: Entity, key: Key, field: str, at: CallRecord) -> Unread | None:
    """Return why a field is unknown although the agent looked it up and got a result. None if there is no such result.

    A refusal is a readable answer. A look-up without a result showed nothing, unless a result with an unknown id may
    belong to it.
    """
    seen = ledger.seen_by(at, entity, key)
    if seen is not None and seen.is_contradicted(entity.named(field)):
        return "contradicted"
    if ledger.strays and _may_have_an_answer(ledger, entity, key, field, at):
        return "not_captured"
    if not ledger.has_answer_about(entity.name):
        return None
    # Look-ups before the last change do not matter.
    changed = ledger.changes.between(entity.name, key, field, -1, at.step, known_at=at.step)
    for record in _asked_for(ledger, entity, key, field, 0 if changed is None else changed):
        delivered = record.delivered
        if delivered is None or delivered >= at.start or record.who != at.who:
            continue
        is_read = record.tool is not None and record.tool.effect == "read"
        # Only look-ups, and calls whose results were not captured, need to be examined.
        if is_read or (record.result is not None and not record.result.captured):
            why = _why_not_shown(ledger, record, entity, key, field)
            if why and ledger.changes.is_current(entity.name, key, field, record.step, at):
                return why
    return None


def _may_have_an_answer(ledger: Ledger, entity: Entity, key: Key, field: str, at: CallRecord) -> bool:
    """Whether a look-up of the entity has no result but a later result with an unknown id may belong to it."""
    last = max((step for step in ledger.strays if step < at.start), default=-1)
    return any(
        made.step < last and made.result is None and not made.call.refused and made.who == at.who
        and entity.name in ledger.schema.shows.get(made.call.tool, ())
        and _is_about(ledger.schema, made.call, entity, key, field) is not False
        for made in ledger.calls.values()
    )  # fmt: skip


def _asked_for(ledger: Ledger, entity: Entity, key: Key, field: str, since: int) -> Sequence[CallRecord]:
    """Return the calls with results, from a step on, that may be about the entity. The list may contain others."""
    ways = {way.tool: way for way in reversed(ledger.schema.ways[entity.name, field])}
    found: list[CallRecord] = []
    for tool, answered in ledger.answers.by_tool().items():
        if entity.name in ledger.schema.shows.get(tool, ()):
            way = ways.get(tool)
            named = way.given(dict(zip(entity.key, key, strict=False))) if way is not None else {}
            if way is None or None in named.values():
                asked = _suspects(ledger, tool, answered.records, entity, field)
            else:
                asked = answered.about(named)
            found += asked[bisect_left(asked, since, key=attrgetter("step")) :]
    return sorted(found, key=attrgetter("step"))


def _suspects(
    ledger: Ledger, tool: str, records: Sequence[CallRecord], entity: Entity, field: str
) -> Sequence[CallRecord]:
    """Return the calls to the tool whose results may have failed to show the field, whatever the arguments. Cached."""
    count, found = ledger.suspects.get((tool, entity.name, field), (0, []))
    if count != len(records):
        # Start again, because a late result may belong before results that were already checked.
        found = [record for record in records if _why_shown_nowhere(ledger, record, entity, field)]
        ledger.suspects[tool, entity.name, field] = (len(records), found)
    return found


def _why_shown_nowhere(ledger: Ledger, record: CallRecord, entity: Entity, field: str) -> Unread | None:
    if record.result is None:
        return None
    if not record.result.captured:
        return "not_captured"
    if record.accepted is False:
        return None
    observations = ledger.schema.shows[record.call.tool][entity.name]
    showing = [each for each in observations if not each.only or field in each.fields]
    return unreadable(showing, record.call.arguments, record.value) if showing else None


def _why_not_shown(ledger: Ledger, record: CallRecord, entity: Entity, key: Key, field: str) -> Unread | None:
    is_about = _is_about(ledger.schema, record.call, entity, key, field)
    if is_about is False or record.result is None:
        return None
    if is_about is None or not record.result.captured or record.accepted is False:
        return _why_shown_nowhere(ledger, record, entity, field)
    thing = ledger.thing(entity.name, key)
    shown = [each.value for each in thing.shown(field) if each.as_of == record.step] if thing is not None else []
    if shown:
        # A `null` means that the field was requested but not provided.
        may_be_none = field in entity.fields and entity.fields[field].nullable
        is_null = any(value is None for value in shown) and not may_be_none
        return "not_told" if is_null else None
    if _is_shown_otherwise(ledger, record, entity, field):
        return "spelt_otherwise"
    return "not_readable" if isinstance(record.value, str) else "not_mapped"


def _is_shown_otherwise(ledger: Ledger, record: CallRecord, entity: Entity, field: str) -> bool:
    """Whether a look-up showed this field of the entity, possibly under a different spelling of the entity's key."""
    way = next(way for way in ledger.schema.ways[entity.name, field] if way.tool == record.call.tool)
    named = way.parts(record.call.arguments)
    thing = ledger.thing(entity.name, key_of([named.get(part) for part in entity.key]))
    return thing is not None and any(each.as_of == record.step for each in thing.shown(field))


def _is_about(schema: Schema, call: Call, entity: Entity, key: Key, field: str) -> bool | None:
    """Whether a look-up requests this entity by its key. None if it lists entities, or if its arguments were lost."""
    for way in schema.ways[entity.name, field]:
        if way.tool == call.tool and not call.fault:
            named = [str(call.arguments.get(argument)) for argument in way.arguments]
            wanted = [key[entity.key.index(part)] for part in way.arguments.values() if part in entity.key]
            if list(map(loose, named)) != list(map(loose, wanted)):
                return False
            # A search by part of the key, such as a date, may also return other entities.
            return True if set(way.arguments.values()) >= set(entity.key) else None
    return None
