"""Why a fact is not known although the agent looked it up and was answered: a fault of the log or the pack."""

from bisect import bisect_left
from collections.abc import Sequence

from bylaw.facts.call_record import CallRecord
from bylaw.facts.entity import Entity, Key
from bylaw.facts.ledger import Ledger
from bylaw.facts.observation import Unread, unreadable
from bylaw.facts.schema import Schema
from bylaw.facts.value import key_of, loose
from bylaw.trace.event import Call


def why_unread(ledger: Ledger, entity: Entity, key: Key, field: str, at: CallRecord) -> Unread | None:
    """Why the field is not known although the judged call's agent looked it up and was answered before its turn.

    A refusal is an answer that was read; a look-up that nothing answered showed nothing, unless a result came under the
    id of no call: it may be the answer.
    """
    seen = ledger.seen_by(at, entity, key)
    if seen is not None and seen.is_contradicted(entity.named(field)):
        return "contradicted"
    if ledger.strays and _may_have_an_answer(ledger, entity, key, field, at):
        return "not_captured"
    if not ledger.has_answer_about(entity.name):
        return None
    # What was asked before the last change does not matter.
    changed = ledger.changes.between(entity.name, key, field, -1, at.step, known_at=at.step)
    for record in _asked_for(ledger, entity, key, field, 0 if changed is None else changed):
        delivered = record.delivered
        if delivered is None or delivered >= at.start or record.who != at.who:
            continue
        is_read = record.tool is not None and record.tool.effect == "read"
        # What a write answered is no look-up, unless nobody knows what it answered.
        if is_read or (record.result is not None and not record.result.captured):
            why = _why_not_told(ledger, record, entity, key, field)
            if why and ledger.changes.is_current(entity.name, key, field, record.step, at):
                return why
    return None


def _may_have_an_answer(ledger: Ledger, entity: Entity, key: Key, field: str, at: CallRecord) -> bool:
    """Whether a look-up of the thing is without a result where one came after it that bears the id of no call."""
    last = max((step for step in ledger.strays if step < at.start), default=-1)
    return any(
        made.step < last and made.result is None and not made.call.refused and made.who == at.who
        and entity.name in ledger.schema.shows.get(made.call.tool, ())
        and _is_about(ledger.schema, made.call, entity, key, field) is not False
        for made in ledger.calls.values()
    )  # fmt: skip


def _asked_for(ledger: Ledger, entity: Entity, key: Key, field: str, since: int) -> Sequence[CallRecord]:
    """The answered calls from a step on that may have been about the thing, and perhaps others."""
    ways = {way.tool: way for way in reversed(ledger.schema.ways[entity.name, field])}
    found: list[CallRecord] = []
    for tool, answered in ledger.answers.by_tool().items():
        if entity.name in ledger.schema.shows.get(tool, ()):
            way = ways.get(tool)
            parts = list(way.arguments.items()) if way is not None else []
            if way is None or not all(part in entity.key for _, part in parts):
                asked = _suspects(ledger, tool, answered.records, entity, field)
            else:
                asked = answered.about({name: key[entity.key.index(part)] for name, part in parts})
            found += asked[bisect_left(asked, since, key=_step) :]
    return sorted(found, key=_step)


def _suspects(
    ledger: Ledger, tool: str, records: Sequence[CallRecord], entity: Entity, field: str
) -> Sequence[CallRecord]:
    """Of the answers of a tool that is not asked by the key, those that may not have told the field, found once."""
    count, found = ledger.suspects.get((tool, entity.name, field), (0, []))
    if count != len(records):
        # One that came late stands before others.
        found = [record for record in records if _not_told_at_all(ledger, record, entity, field)]
        ledger.suspects[tool, entity.name, field] = (len(records), found)
    return found


def _not_told_at_all(ledger: Ledger, record: CallRecord, entity: Entity, field: str) -> Unread | None:
    """Why a result that lists things of a kind tells the field of none."""
    if record.result is None:
        return None
    if not record.result.captured:
        return "not_captured"
    if record.accepted is False:
        return None
    observations = ledger.schema.shows[record.call.tool][entity.name]
    showing = [each for each in observations if not each.only or field in each.fields]
    return unreadable(showing, record.call.arguments, record.value) if showing else None


def _why_not_told(ledger: Ledger, record: CallRecord, entity: Entity, key: Key, field: str) -> Unread | None:
    """Why a result does not tell the field, where it may be that it should."""
    is_about = _is_about(ledger.schema, record.call, entity, key, field)
    if is_about is False or record.result is None:
        return None
    if is_about is None or not record.result.captured or record.accepted is False:
        return _not_told_at_all(ledger, record, entity, field)
    thing = ledger.thing(entity.name, key)
    shown = [each.value for each in thing.shown(field) if each.as_of == record.step] if thing is not None else []
    if shown:
        # What was shown as a bare `null` was asked for, and not told.
        is_null = any(value is None for value in shown) and not _may_be_none(entity, field)
        return "not_told" if is_null else None
    if _is_told_of(ledger, record, entity, field):
        return "spelt_otherwise"
    return "not_readable" if isinstance(record.value, str) else "not_mapped"


def _is_told_of(ledger: Ledger, record: CallRecord, entity: Entity, field: str) -> bool:
    """Whether a look-up told the field of the very thing that it named, which may be another by its spelling."""
    way = next(way for way in ledger.schema.ways[entity.name, field] if way.tool == record.call.tool)
    named = {part: record.call.arguments.get(argument) for argument, part in way.arguments.items()}
    thing = ledger.thing(entity.name, key_of([named[part] for part in entity.key]))
    return thing is not None and any(each.as_of == record.step for each in thing.shown(field))


def _step(record: CallRecord) -> int:
    return record.step


def _may_be_none(entity: Entity, field: str) -> bool:
    return field in entity.fields and entity.fields[field].nullable


def _is_about(schema: Schema, call: Call, entity: Entity, key: Key, field: str) -> bool | None:
    """Whether a look-up asks for the thing by its key; None for one that lists things or lost its arguments."""
    for way in schema.ways[entity.name, field]:
        if way.tool == call.tool and not call.fault:
            named = [str(call.arguments.get(argument)) for argument in way.arguments]
            wanted = [key[entity.key.index(part)] for part in way.arguments.values() if part in entity.key]
            if list(map(loose, named)) != list(map(loose, wanted)):
                return False
            # A search by a part of the key, such as a day, may be about others.
            return True if set(way.arguments.values()) >= set(entity.key) else None
    return None
