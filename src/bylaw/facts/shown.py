"""The values that results have shown for each entity, each with its step and agent. Also determines which are stale.

Two look-ups can contradict each other only if each was made before the other was answered.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

from msgspec import Struct

from bylaw.facts.call_record import CallRecord, accepted
from bylaw.facts.changes import Changes
from bylaw.facts.entity import EXISTS, UNSEEN, Entity, Field, Key, OneOf
from bylaw.facts.observation import NOTHING, Finder, searched_text, sightings, unreadable
from bylaw.facts.schema import Change, Schema, effect_on
from bylaw.facts.value import coerce, key_of, one_of
from bylaw.trace.event import Event

SKEW = 1.0
"""Because clocks differ and times may be rounded, a later event may be this many seconds earlier."""


class Shown(Struct, frozen=True, gc=False):
    as_of: int
    """The step of the look-up that showed the value."""
    delivered: int
    """The step of the result that showed the value."""
    agent: str
    value: Any
    time: float | None


class SeenEntity:
    """What results have shown of one entity: the observations, and the values of the fields that were read so far."""

    __slots__ = ("_fields", "is_ever_absent", "lost", "sightings")

    def __init__(self) -> None:
        self.is_ever_absent = False
        """Whether any result has said that the entity does not exist."""
        self.sightings: list[Shown] = []
        """The observations of the entity. The value of each is a `Sighting`."""
        self.lost: list[CallRecord] = []
        """Look-ups of this entity with unreadable results."""
        self._fields: dict[str, tuple[int, bool, list[Shown]]] = {}
        """For each field: how many observations were read, whether one of them contains the field itself, and the
        values.
        """

    def shown(self, field: str) -> list[Shown]:
        """Return all values shown so far for the field, in the order in which the results arrived."""
        kept = self._fields.get(field)
        if kept is not None and kept[0] == len(self.sightings):
            return kept[2]
        read, is_told, values = kept or (0, False, [])
        for seen in self.sightings[read:]:
            value = seen.value.show_own(field)
            if value is not NOTHING:
                is_told = True
            elif is_told or (value := seen.value.default(field)) is NOTHING:
                # A later result without the field does not reset its value to the default.
                continue
            values.append(Shown(seen.as_of, seen.delivered, seen.agent, value, seen.time))
        self._fields[field] = (len(self.sightings), is_told, values)
        return values

    def lost_since(self, entry: Shown, before: int) -> int:
        """Return how many unreadable results the agent received between `entry` and a step."""
        return sum(
            made.step > entry.as_of
            and made.delivered is not None
            and entry.delivered < made.delivered < before
            and made.who == entry.agent
            for made in self.lost
        )


class _Kind:
    """The results that may show entities of one kind, and the entities that they showed."""

    __slots__ = ("lost", "read", "showing", "things")

    def __init__(self) -> None:
        self.showing: list[CallRecord] = []
        """Calls whose results may show such an entity, in the order of the results."""
        self.read = 0
        """How many of these results have been read."""
        self.things: dict[Key, SeenEntity] = {}
        self.lost: list[CallRecord] = []
        """For an entity declared complete: the calls whose results are unreadable."""


class ShownFacts:
    """Everything that results have shown in one trajectory, by entity.

    A result is decoded once, when a guard requests an entity that it may show. Every query names a step and ignores
    later events, so the answer for a judged call never changes.
    """

    _looked_for_times = 0
    """How many events have been searched for a time."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.changes = Changes(schema)
        self._kinds: defaultdict[str, _Kind] = defaultdict(_Kind)
        self._times: list[tuple[int, float]] = []
        self._events: list[Event] = []

    def has_answer_about(self, entity: str) -> bool:
        return bool(self._kinds[entity].showing)

    def finder(self, made: CallRecord) -> Finder:
        """Return a function that reads facts about other entities as the agent had seen them when it made the call."""

        def find(entity: str, key: Key, field: str) -> Any:
            shown = self.latest(self.schema.entities[entity], key, field, made)
            return NOTHING if shown is None else shown.value

        return find

    def shown(self, entity: Entity, key: Key, field: str) -> list[Shown]:
        """Return all values shown so far for the field, in the order in which the results arrived."""
        thing = self.thing(entity.name, key)
        return thing.shown(field) if thing is not None else []

    def thing(self, entity: str, key: Key) -> SeenEntity | None:
        return self._read(entity).things.get(key)

    def keys(self, entity: Entity) -> Iterable[Key]:
        """Return the keys of the entities shown so far, in the order in which they first appeared."""
        return self._read(entity.name).things

    def visible_keys(self, entity: Entity, at: CallRecord) -> list[Key]:
        """Return the keys of the entities that the agent which made the judged call had seen before the call's turn."""
        return [
            key
            for key, thing in self._read(entity.name).things.items()
            if any(seen.delivered < at.start and seen.agent == at.who for seen in thing.sightings)
        ]

    def seen_by(self, at: CallRecord, entity: Entity, key: Key) -> "KnownEntity | None":
        """Return one entity as the agent had seen it when it made the judged call. None if no result has shown it."""
        thing = self.thing(entity.name, key)
        return KnownEntity(self, thing, entity, key, at) if thing is not None else None

    def latest(self, entity: Entity, key: Key, field: str, at: CallRecord) -> Shown | None:
        """Return the newest value that the agent had seen before the judged call and that is not stale."""
        seen = self.seen_by(at, entity, key)
        return seen.latest(field) if seen is not None else None

    def ever_visible(self, entity: Entity, key: Key, field: str, at: CallRecord) -> Shown | None:
        """Return the newest value that the agent had seen before the judged call, even if it is stale."""
        shown = reversed(self.shown(entity, key, field))
        return next((entry for entry in shown if entry.delivered < at.start and entry.agent == at.who), None)

    def may_be_read_again(self, entity: Entity, key: Key, field: str, at: CallRecord) -> bool:
        """Whether a fact that was shown should be looked up again, because it is too old or because exactly one later
        look-up was unreadable.
        """
        thing, shown = self.thing(entity.name, key), self.ever_visible(entity, key, field, at)
        if thing is None or shown is None:
            return False
        now, since, fresh_for = at.call.time, shown.time, entity.fresh_for
        is_old = now is not None and since is not None and fresh_for is not None and now - since > fresh_for
        return is_old or thing.lost_since(shown, at.start) == 1

    def has_expired(self, seconds: float, entry: Shown, at: CallRecord) -> bool:
        """Whether a value may be too old for a call. If no event has a time, values do not expire."""
        now, since = at.call.time, entry.time
        for step in range(self._looked_for_times, len(self._events)):
            if (time := self._events[step].time) is not None:
                self._times.append((step, time))
        self._looked_for_times = len(self._events)
        until = bisect_left(self._times, (at.step,))
        if now is None or until == 0:
            return now is not None or until > 0
        first = bisect_left(self._times, (entry.delivered + 1,))
        if since is None:
            # The value was shown after the last event before it that has a time, so use that time.
            if first == 0:
                return True
            since = self._times[first - 1][1]
        latest = max((time for _, time in self._times[first:until]), default=since)
        return now - since > seconds or now < max(latest, since) - SKEW

    def is_read_whole(self, entity: Entity, at: CallRecord) -> bool:
        """Whether all results that may have shown an entity of this kind were readable. Used if it is declared
        complete.
        """
        return not any(
            record.delivered is not None and record.delivered < at.start and record.who == at.who
            for record in self._read(entity.name).lost
        )

    def _is_lost(self, record: CallRecord, entity: str) -> bool:
        listed = self.schema.shows[record.call.tool][entity]
        observations = [each for each in listed if not each.only or each.fields]
        if not observations or record.result is None:
            return False
        if not record.result.captured or record.is_another_view():
            return True
        return record.accepted is not False and bool(unreadable(observations, record.call.arguments, record.value))

    def _read(self, entity: str) -> _Kind:
        """Read the results that have not been read yet. Return everything that was shown so far."""
        kind = self._kinds[entity]
        done, count = kind.read, len(kind.showing)
        if done == count:
            return kind
        kind.read = count
        is_complete = self.schema.entities[entity].complete
        try:
            for made in kind.showing[done:]:
                self._take_in(made, entity, kind.things)
                if is_complete and self._is_lost(made, entity):
                    kind.lost.append(made)
        except Exception:
            # Keep the result unread, so that the next caller gets the same error.
            kind.read = done
            raise
        return kind

    def _take_in(self, made: CallRecord, entity: str, things: dict[Key, SeenEntity]) -> None:
        result = made.result
        if result is None or not result.captured:
            if result is not None:
                self._lose(made, entity, things)
            return
        if made.value is NOTHING:
            made.value = result.value()
            if made.tool is not None and made.tool.effect != "write":
                made.accepted = accepted(made.tool, result, made.value)
        if made.is_another_view():
            # By an argument such as `sandbox` or `as_of`, the agent could choose the facts that its guards see.
            return
        delivered = made.delivered if made.delivered is not None else made.step
        value, text = made.value, searched_text(result, made.value, made.accepted)
        arguments, step, who, time = made.arguments, made.step, made.who, result.time
        shows_more = False
        for observation in self.schema.shows[made.call.tool][entity]:
            for sighting in sightings(observation, arguments, value, text, made.accepted):
                shows_more = shows_more or sighting.shows_more()
                thing = things.get(sighting.key)
                if thing is None:
                    thing = things[sighting.key] = SeenEntity()
                thing.sightings.append(Shown(step, delivered, who, sighting, time))
                if not sighting.exists:
                    thing.is_ever_absent = True
        if shows_more:
            made.has_shown = True
        elif made.accepted is not False:
            self._lose(made, entity, things)

    def _lose(self, made: CallRecord, entity: str, things: dict[Key, SeenEntity]) -> None:
        declared = self.schema.entities[entity]
        if declared.read is None or declared.read.tool != made.call.tool or made.call.fault or made.delivered is None:
            return
        given = declared.read.parts(made.call.arguments)
        if declared.key and all(given.get(part) is not None for part in declared.key):
            thing = things.get(key_of([given[part] for part in declared.key]))
            if thing is not None:
                thing.lost.append(made)


def shown_before(shown: Sequence[Shown], start: int) -> Sequence[Shown]:
    # Fast path: usually nothing was shown after the call's turn began.
    if not shown or shown[-1].delivered < start:
        return shown
    return shown[: bisect_left(shown, start, key=delivered_at)]


delivered_at = attrgetter("delivered")


def beside(entry: Shown, shown: Sequence[Shown]) -> list[Shown]:
    """Return `entry` and the values that were looked up at the same time."""
    first = bisect_right(shown, entry.as_of, key=delivered_at)
    return [each for each in shown[first:] if each.as_of < entry.delivered]


def newest_of(shown: Sequence[Shown]) -> Shown:
    """Return the value from the latest look-up. A value that arrived before that look-up was made cannot be newer."""
    newest = shown[-1]
    for each in reversed(shown):
        if each.delivered < newest.as_of:
            break
        if each.as_of >= newest.as_of:
            newest = each
    return newest


def common_value(field: Field, shown: Sequence[Shown]) -> Any:
    """Return the value that all entries show, or a `OneOf` if they differ. UNSEEN if one of them is a mere `null`."""
    return coerce(field, shown[0].value) if len(shown) == 1 else one_of(field, [each.value for each in shown])


def is_there(shown: Sequence[Shown], changed: int | None, is_current: Callable[[Shown], bool]) -> Any:
    """Return whether an entity exists, based on everything that was shown and is still current. NOTHING if nothing is.

    Returns None if results contradict each other. `changed` is the step of the last write that may have created or
    deleted the entity, and earlier results are ignored. An entity that was first absent and later present exists,
    because it may have been created in between. The reverse order is a contradiction, unless a write deletes the
    entity.
    """
    first = 0 if changed is None else bisect_right(shown, changed, key=delivered_at)
    current = [each for each in shown[first:] if is_current(each)]
    if not current:
        return NOTHING
    newest = newest_of(current)
    against = beside(newest, current) if newest.value else current
    return None if any(each.value is not newest.value for each in against) else newest.value


class KnownEntity:
    """One entity as known at a call: as the agent had seen it before the turn or, in hindsight, as it truly was."""

    __slots__ = ("_at", "_entity", "_is_hindsight", "_key", "_known_at", "_thing", "_things")

    def __init__(
        self,
        things: ShownFacts,
        thing: SeenEntity,
        entity: Entity,
        key: Key,
        at: CallRecord,
        *,
        is_hindsight: bool = False,
    ) -> None:
        """With `is_hindsight`, results for all agents count, values do not expire, and refusals are known at once."""
        self._things, self._thing, self._entity, self._key, self._at = things, thing, entity, key, at
        self._is_hindsight = is_hindsight
        self._known_at = None if is_hindsight else at.step

    def latest(self, field: str, before: int | None = None) -> Shown | None:
        """Return the newest value that is not stale at the call. Writes from the step `before` on are ignored."""
        newest, before = -1, self._at.step if before is None else before
        last, name, key, known_at = self._things.changes.last, self._entity.name, self._key, self._known_at
        for entry in reversed(shown_before(self._thing.shown(field), self._at.start)):
            if entry.delivered < newest:
                return None
            if not self._is_mine(entry):
                continue
            changed = last(name, key, field, entry.as_of, before, known_at=known_at)
            if changed is None:
                return entry if self._is_hindsight or self._is_fresh(entry) else None
            newest = max(newest, changed)
        return None

    def is_there(self) -> Any:
        """Return whether the entity exists. None if results contradict each other, NOTHING if this is unknown."""
        if self.latest("exists") is None:
            return NOTHING
        if not self._thing.is_ever_absent:
            return True
        name, key, step = self._entity.name, self._key, self._at.step
        changed = self._things.changes.between(name, key, "exists", -1, step, known_at=self._known_at)
        return is_there(self._shown("exists"), changed, lambda each: self._changed("exists", each) is None)

    def value_of(self, field: Field, entry: Shown, before: int | None = None) -> Any:
        """Return a field's value from its newest entry and from the entries that were looked up at the same time."""
        shown = self._thing.shown(field.name)
        at_once = beside(entry, shown_before(shown, self._at.start)) if len(shown) > 1 else shown
        if len(at_once) > 1:
            name = field.name
            at_once = [each for each in at_once if self._is_mine(each) and self._changed(name, each, before) is None]
            return common_value(field, at_once)
        return coerce(field, entry.value)

    def is_contradicted(self, field: Field) -> bool:
        if self._thing.is_ever_absent and self.is_there() is None:
            return True
        entry = self.latest(field.name)
        if entry is None or field is EXISTS:
            return False
        try:
            return isinstance(self.value_of(field, entry), OneOf)
        except ValueError:
            return False

    def may_be_settled(self, field: Field) -> bool:
        """Whether a new look-up could resolve a contradiction. It could not if a single result contradicts itself."""
        entry = self.latest(field.name)
        if entry is None or not self.is_contradicted(field):
            return False
        return len({each.as_of for each in beside(entry, self._shown(field.name))}) > 1

    def pending(self, field: Field) -> Any:
        """Return the value that the writes in the turn leave: the value itself, a `OneOf` if several are possible, or
        UNSEEN.

        Call this if the field is unknown at the call, but may have been known when the turn began.
        """
        if self._entity.origin == "conversation":
            return self._made(field)
        at, changes = self._at, self._things.changes
        writes = self._possible(changes.since(self._entity.name, self._key, field.name, at.start - 1, at))
        try:
            start = self.latest(field.name, at.start) if writes else None
            possible = _alternatives(self.value_of(field, start, at.start)) if start is not None else []
            return _one_or_several(self._outcomes(writes, field, possible or self._shown_beside(field)))
        except ValueError:
            return UNSEEN

    def _shown_beside(self, field: Field) -> list[Any]:
        """Return the possible values after the newest look-ups, if other writes ran at the same time.

        Each look-up may have run before or after each of those writes. Empty if any value is possible.
        """
        at, name, key, changes = self._at, self._entity.name, self._key, self._things.changes
        shown = self._shown(field.name)
        if self._entity.fresh_for is not None or not shown:
            return []
        possible: list[Any] = []
        for entry in beside(newest_of(shown), shown):
            if self._thing.lost_since(entry, at.start):
                return []
            if changes.between(name, key, field.name, entry.as_of, at.start, known_at=self._known_at) is not None:
                continue
            under_way = self._possible(changes.beside(name, key, field.name, entry.as_of, known_at=self._known_at))
            left = self._outcomes(under_way, field, _alternatives(coerce(field, entry.value)))
            if not left:
                return []
            possible += left
        return possible

    def _possible(self, writes: list[CallRecord]) -> list[CallRecord]:
        return [write for write in writes if write.counts()] if self._is_hindsight else writes

    def _outcomes(self, writes: Sequence[CallRecord], field: Field, before: Sequence[Any]) -> list[Any]:
        """Return every value that the field may have after some of these writes. Empty if any value is possible."""
        possible = list(before)
        for write in writes:
            find = self._things.finder(write)
            for value in tuple(possible):
                made = effect_on(
                    self._effects(write), write.call.arguments, self._entity, self._key, field, value, find=find
                )
                if made is NOTHING:
                    return []
                possible += [new for new in _alternatives(coerce(field, made)) if new not in possible]
        return possible

    def _made(self, field: Field) -> Any:
        things, entity, key, at = self._things, self._entity, self._key, self._at
        shown = things.ever_visible(entity, key, field.name, at)
        there = shown or things.ever_visible(entity, key, "exists", at)
        if there is None or (shown is None and there.value is False) or entity.fresh_for is not None:
            return UNSEEN
        under_way = things.changes.beside(entity.name, key, field.name, there.as_of, known_at=at.step)
        writes = [*under_way, *things.changes.since(entity.name, key, field.name, there.as_of, at)]
        try:
            possible: list[Any] = [coerce(field, shown.value) if shown is not None else NOTHING]
            for write in writes:
                after = [self._after(write, field, value) for value in possible]
                possible = after if self._is_over(write) and write not in under_way else [*possible, *after]
                if NOTHING in possible or UNSEEN in possible:
                    return UNSEEN
        except ValueError:
            return UNSEEN
        return _one_or_several(possible) if writes else UNSEEN

    def _after(self, write: CallRecord, field: Field, before: Any) -> Any:
        """Return the value of a field after a write. A write's effects list every change to the entities that they
        name.
        """
        effects = self._effects(write)
        named = [effect for effect in effects if effect.entity == self._entity.name]
        if named and not any(effect.fields is None or field.name in effect.fields for effect in named):
            return before
        result = write.result if self._is_over(write) else None
        value = result.value() if result is not None and result.captured else NOTHING
        find = self._things.finder(write)
        made = effect_on(effects, write.call.arguments, self._entity, self._key, field, before, value, find)
        return NOTHING if made is NOTHING else coerce(field, made)

    def _is_over(self, write: CallRecord) -> bool:
        was_delivered = write.delivered is not None and write.delivered < self._at.start and write.who == self._at.who
        return was_delivered and write.accepted is True

    def _effects(self, write: CallRecord) -> Sequence[Change]:
        return () if write.call.fault else self._things.schema.effects.get(write.call.tool, ())

    def _is_mine(self, entry: Shown) -> bool:
        return self._is_hindsight or entry.agent == self._at.who

    def _is_fresh(self, entry: Shown) -> bool:
        """Whether a value has not expired, and the agent has received no newer result that is unreadable."""
        if self._thing.lost and self._thing.lost_since(entry, self._at.start):
            return False
        fresh_for = self._entity.fresh_for
        return fresh_for is None or not self._things.has_expired(fresh_for, entry, self._at)

    def _shown(self, field: str) -> list[Shown]:
        return [each for each in shown_before(self._thing.shown(field), self._at.start) if self._is_mine(each)]

    def _changed(self, field: str, entry: Shown, before: int | None = None) -> int | None:
        """Return the step of the last write, before a step or the call, that may have changed a value."""
        before = self._at.step if before is None else before
        last = self._things.changes.last
        return last(self._entity.name, self._key, field, entry.as_of, before, known_at=self._known_at)


def _alternatives(told: Any) -> list[Any]:
    return list(told.values) if isinstance(told, OneOf) else [told]


def _one_or_several(possible: Sequence[Any]) -> Any:
    found = [value for place, value in enumerate(possible) if value not in possible[:place]]
    if not found or UNSEEN in found:
        return UNSEEN
    return found[0] if len(found) == 1 else OneOf(tuple(found))
