"""What writes leave of a field that nobody has looked up again.

Of the same turn: their results are not in yet, so a field has its old value or what they make of it. Of a turn whose
look-up was made beside them: it showed the value from before or from after. Of a thing that only the conversation
makes: there is nowhere to look it up, and what it did with the thing is what is true of it.
"""

from collections.abc import Sequence
from typing import Any

from bylaw.facts.call_record import CallRecord
from bylaw.facts.contradiction import Visible, newest_with
from bylaw.facts.entity import UNSEEN, Entity, Field, Key, OneOf
from bylaw.facts.ledger import Ledger
from bylaw.facts.path import NOTHING
from bylaw.facts.shown import SeenThing
from bylaw.facts.value import coerce
from bylaw.facts.world_change import effect_on


def pending_value(
    ledger: Ledger,
    thing: SeenThing,
    entity: Entity,
    key: Key,
    field: Field,
    at: CallRecord,
    *,
    is_settled: bool = False,
) -> Any:
    """The value where all that the turn's writes may leave is the same; `OneOf` several; UNSEEN where any is possible.

    Called where the field is not known for the judged call, but may have been known when its turn began. Where all is
    `settled`, a write that was refused in the end has changed nothing.
    """
    if entity.origin == "conversation":
        return _made_value(ledger, entity, key, field, at)
    writes = ledger.changes.since(entity.name, key, field.name, at.start - 1, at)
    if is_settled:
        writes = [write for write in writes if write.counts()]
    try:
        possible = _known_at_start(ledger, thing, entity, key, field, at) if writes else []
        possible = possible or _shown_beside(ledger, thing, entity, key, field, at, is_settled=is_settled)
        possible = _outcomes(ledger, writes, entity, key, field, possible)
    except ValueError:
        return UNSEEN
    if not possible or UNSEEN in possible:
        return UNSEEN
    return possible[0] if len(possible) == 1 else OneOf(tuple(possible))


def _known_at_start(
    ledger: Ledger, thing: SeenThing, entity: Entity, key: Key, field: Field, at: CallRecord
) -> list[Any]:
    """What the field may have been when the turn of the judged call began; empty where that was not known."""
    shown = ledger.latest_of(thing, entity, key, field.name, at, before=at.start)
    if shown is None:
        return []
    return _alternatives(Visible(ledger, thing, entity, key, at).told(field, shown, before=at.start))


def _alternatives(told: Any) -> list[Any]:
    return list(told.values) if isinstance(told, OneOf) else [told]


def _shown_beside(
    ledger: Ledger, thing: SeenThing, entity: Entity, key: Key, field: Field, at: CallRecord, *, is_settled: bool
) -> list[Any]:
    """What the field may be after the newest look-ups, where writes were under way beside them; empty where any value
    is possible: each look-up may have come before or after each of those writes."""
    if entity.fresh_for is not None:
        return []
    changes = ledger.changes
    possible: list[Any] = []
    for entry in newest_with(thing.shown(field.name), at.start, at.who):
        if thing.lost_since(entry, at.start):
            return []
        if changes.between(entity.name, key, field.name, entry.as_of, at.start, known_at=at.step) is not None:
            continue
        under_way = changes.beside(entity.name, key, field.name, entry.as_of, known_at=at.step)
        if is_settled:
            under_way = [write for write in under_way if write.counts()]
        left = _outcomes(ledger, under_way, entity, key, field, _alternatives(coerce(field, entry.value)))
        if not left:
            return []
        possible += [value for value in left if value not in possible]
    return possible


def _outcomes(
    ledger: Ledger, writes: Sequence[CallRecord], entity: Entity, key: Key, field: Field, before: Sequence[Any]
) -> list[Any]:
    """Every value the field may have after some of these writes; empty where one of them leaves just any."""
    possible = list(before)
    for write in writes:
        effects = () if write.call.fault else ledger.schema.effects.get(write.call.tool, ())
        for value in tuple(possible):
            made = effect_on(effects, write.call.arguments, entity, key, field, value, find=ledger.finder(write))
            if made is NOTHING:
                return []
            possible += [new for new in _alternatives(coerce(field, made)) if new not in possible]
    return possible


def _made_value(ledger: Ledger, entity: Entity, key: Key, field: Field, at: CallRecord) -> Any:
    """The value of a field of a thing that the conversation made, after what its own writes did to it since."""
    shown = ledger.ever_visible(entity, key, field.name, at)
    there = shown or ledger.ever_visible(entity, key, "exists", at)
    if there is None or (shown is None and there.value is False) or entity.fresh_for is not None:
        return UNSEEN
    under_way = ledger.changes.beside(entity.name, key, field.name, there.as_of, known_at=at.step)
    writes = [*under_way, *ledger.changes.since(entity.name, key, field.name, there.as_of, at)]
    try:
        possible: list[Any] = [coerce(field, shown.value) if shown is not None else NOTHING]
        for write in writes:
            after = [_after(ledger, write, entity, key, field, value, at) for value in possible]
            possible = after if _is_over(write, at) and write not in under_way else [*possible, *after]
            if NOTHING in possible or UNSEEN in possible:
                return UNSEEN
        found = [value for place, value in enumerate(possible) if value not in possible[:place]]
    except ValueError:
        return UNSEEN
    if not writes:
        return UNSEEN
    return found[0] if len(found) == 1 else OneOf(tuple(found))


def _after(
    ledger: Ledger, write: CallRecord, entity: Entity, key: Key, field: Field, before: Any, at: CallRecord
) -> Any:
    """What a write makes of a value, by its effects: of the kinds that they name, they tell all."""
    effects = () if write.call.fault else ledger.schema.effects.get(write.call.tool, ())
    named = [effect for effect in effects if effect.entity == entity.name]
    if named and not any(effect.delete or field.name in effect.fields() for effect in named):
        return before
    result = write.result if _is_over(write, at) else None
    value = result.value() if result is not None and result.captured else NOTHING
    made = effect_on(effects, write.call.arguments, entity, key, field, before, value, ledger.finder(write))
    return NOTHING if made is NOTHING else coerce(field, made)


def _is_over(write: CallRecord, at: CallRecord) -> bool:
    """Whether the judged call's agent had been told that the write was accepted."""
    was_told = write.delivered is not None and write.delivered < at.start and write.who == at.who
    return was_told and write.accepted is True
