"""Writes of the same turn: their results are not in yet, so a field has its old value or what they make of it."""

from typing import Any

from bylaw.facts.call_record import CallRecord
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
    writes = ledger.changes.of_turn(entity.name, key, field.name, at)
    if is_settled:
        writes = [write for write in writes if write.counts()]
    shown = ledger.latest_of(thing, entity, key, field.name, at, before=at.start) if writes else None
    if shown is None:
        return UNSEEN
    try:
        possible = [coerce(field, shown.value)]
        for write in writes:
            effects = () if write.call.fault else ledger.schema.effects.get(write.call.tool, ())
            for value in tuple(possible):
                made = effect_on(effects, write.call.arguments, entity, key, field, value)
                if made is NOTHING:
                    return UNSEEN
                if (new := coerce(field, made)) not in possible:
                    possible.append(new)
        return possible[0] if len(possible) == 1 else OneOf(tuple(possible))
    except ValueError:
        return UNSEEN
