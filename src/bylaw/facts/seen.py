"""The facts that guards read: what the agent has seen, what only the user or the host can state, and what is true."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from bylaw.facts.call_record import CallRecord
from bylaw.facts.entity import (
    ABSENT,
    EXISTS,
    SPOKEN,
    UNDECLARED,
    UNSEEN,
    Between,
    Entity,
    Fact,
    Field,
    Key,
    NoValue,
    OneOf,
    Saying,
    is_known,
)
from bylaw.facts.ledger import Ledger
from bylaw.facts.observation import NOTHING
from bylaw.facts.provenance import WORST_FIRST, Provenance, Traced, TracedSource
from bylaw.facts.result_places import leaf_values, with_keys
from bylaw.facts.shown import KnownEntity, SeenEntity, Shown, beside, common_value, shown_before
from bylaw.facts.value import coerce, key_of
from bylaw.facts.world import World
from bylaw.policy.pattern import Match, Pattern, compile_pattern
from bylaw.text.condition import is_meant, passages_about, takes_back
from bylaw.text.day import spoken_day
from bylaw.text.identifier import identifiers, is_prose
from bylaw.trace.event import Call, Result

_JOINTS = re.compile(r"[\s,;/]+")
_PIECES = 8
_LETTERS = 3
"""The minimum length of a piece of a value. A shorter piece would match anywhere."""
_DIGITS = 6


def origin_of(provenance: Provenance, value: str | float, *, before: int) -> Traced:
    """Return the origin of a value. If the value was assembled from others, the origins of its parts are included.

    A sum may match by chance, so it still counts as the agent's own value. `parts` of the result lists the candidates.
    """
    traced = provenance.trace(value, before=before)
    if traced.source != "agent":
        return traced
    if isinstance(value, str):
        pieces = [piece for piece in _JOINTS.split(value) if piece]
        if not 2 <= len(pieces) <= _PIECES or any(len(piece) < _LETTERS for piece in pieces):
            return traced
        found = [provenance.trace(each, before=before) for each in pieces]
        worst = min(found, key=_trust)
        return traced if worst.source == "agent" else replace(worst, how="derived", is_whole=False, parts=_parts(found))
    terms = _terms(float(value), provenance.numbers(before=before)) or ()
    found = [provenance.trace(term, before=before) for term in terms]
    return replace(traced, how="derived", parts=_parts(found)) if found else traced


def _trust(traced: Traced) -> int:
    return WORST_FIRST.index(traced.source)


def _parts(found: Sequence[Traced]) -> tuple[TracedSource, ...]:
    return tuple(dict.fromkeys(each.source for each in sorted(found, key=_trust)))


def _terms(value: float, numbers: Sequence[float]) -> tuple[float, float] | None:
    """Return two numbers whose sum or difference is the value, or None."""
    known = {round(number, _DIGITS): number for number in numbers if number}
    for number in known.values():
        for other in (value - number, number - value):
            found = known.get(round(other, _DIGITS))
            if found is not None and (other == value - number or found != number):
                return number, found
    return None


_NAME = re.compile(r"[A-Za-z_][\w.]{0,39}")
"""Matches the name of a field, as opposed to a label, which may be any text that its author chose."""


class ArgumentOrigin(Struct, frozen=True):
    """The origin of an argument, the writes that used the value, and the results that repeated it."""

    argument: str
    traced: Traced
    written_at: tuple[int, ...] = ()
    """Steps of earlier writes that had this argument."""
    shown_again_at: tuple[int, ...] = ()
    """Steps of results that showed the argument only after such a write, and are therefore not evidence."""

    def record(self) -> dict[str, Any]:
        """Return the origin for the output of an audit, without values and quoted words."""
        traced = self.traced
        told: dict[str, Any] = {"argument": self.argument, "source": traced.source, "how": traced.how}
        if traced.step is not None:
            told["step"] = traced.step
        if traced.tool:
            told |= {"tool": traced.tool, "whole": traced.is_whole, "named_by_user": bool(traced.pointed)}
        if _NAME.fullmatch(traced.field):
            told["field"] = traced.field
        if traced.parts:
            told["parts"] = [*traced.parts]
        if self.written_at:
            told |= {"written_at": [*self.written_at], "shown_again_at": [*self.shown_again_at]}
        return told


def _leaves(value: Any, at: CallRecord) -> list[str | float]:
    if isinstance(value, str) and (value.count("@") > 1 or is_prose(value)) and (found := identifiers(value)):
        # Also list addresses that are joined in one string, and identifiers in a longer string.
        return [*found]
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return [value] if value != "" else []
    return [part for _, part in leaf_values(with_keys(value, at.tool.names if at.tool is not None else ()))]


class SeenFacts:
    """The facts that the agent had seen when it made a call, as of the start of the call's turn."""

    def __init__(self, ledger: Ledger, at: CallRecord, context: Mapping[str, Any]) -> None:
        self._ledger = ledger
        self._at = at
        self._context = context
        self._read: dict[tuple[Any, ...], Any] = {}
        self._is_asked_more = False
        """Whether anything other than a well-formed fact was requested, such as members, counts or origins."""

    def read(self, entity: Entity, key: Key, field: Field) -> Any:
        """Return the value that the agent saw, or ABSENT. UNSEEN if it saw no value or if the value is stale."""
        # Cached, because several guards, and later the settlement, read the same facts about one call.
        asked = (entity.name, key, field.name)
        found = self._read.get(asked, NOTHING)
        if found is NOTHING:
            try:
                found = self._read[asked] = self._look(entity, key, field)
            except ValueError:
                self._is_asked_more = True
                raise
        return found

    def asked(self) -> Iterable[Fact] | None:
        """Return every fact that was requested so far. None if anything else was requested."""
        return None if self._is_asked_more else (Fact._make(asked) for asked in self._read if len(asked) == 3)

    def _look(self, entity: Entity, key: Key, field: Field) -> Any:
        if field.origin != "system" and field.origin in SPOKEN:
            return self._told(entity, key, field)
        if not entity.key and entity.is_always_there:
            return True
        if len(key) != 1 or key[0].__class__ is not str:
            key = key_of(key)
        thing = self._ledger.thing(entity.name, key)
        if thing is None:
            return self._look_further(None, entity, key, field)
        visible = KnownEntity(self._ledger, thing, entity, key, self._at)
        found = visible.latest(field.name)
        # It is uncertain whether the entity exists only if some result said that it does not.
        if thing.is_ever_absent:
            there = visible.is_there()
            if there is None:
                return UNSEEN
            if field.name == "exists":
                return self._look_further(visible, entity, key, field) if there is NOTHING else there
            if there is False:
                return ABSENT
        return self._look_further(visible, entity, key, field) if found is None else visible.value_of(field, found)

    def _told(self, entity: Entity, key: Key, field: Field) -> Any:
        """Return a fact that only the user or the host can state. Code reads it if possible, otherwise a model."""
        # A string that no record contains may be misspelt, or about something else. A model can tell which.
        has_model = self._ledger.stated is not None
        found = Testimony(self._ledger, self._at, self._context).read(field, is_checked=has_model)
        if found is not UNSEEN or field.origin != "user" or self._ledger.stated is None:
            return found
        name = f"{entity.name}{list(key) if key else ''}.{field.name}"
        raw = self._ledger.stated(name, field, self._at)
        try:
            return raw if raw is UNSEEN else coerce(field, raw)
        except ValueError:
            return UNSEEN

    def _look_further(self, visible: KnownEntity | None, entity: Entity, key: Key, field: Field) -> Any:
        ledger, at = self._ledger, self._at
        if visible is not None and (pending := visible.pending(field)) is not UNSEEN:
            return pending
        if entity.complete and ledger.ever_visible(entity, key, "exists", at) is None and self._is_whole(entity):
            return False if field.name == "exists" else ABSENT
        search = ledger.schema.searches.get((entity.name, field.name))
        return UNSEEN if search is None else search(key, _Shown(ledger, at, entity.name, key, field.name))

    def _is_whole(self, entity: Entity) -> bool:
        whole = self._read.get((entity.name,))
        if whole is None:
            whole = self._read[(entity.name,)] = self._ledger.is_read_whole(entity, self._at)
        return whole

    def traced(self, value: Any) -> Mapping[str, Any] | NoValue:
        """Return the origin of a value or, for a list, of its least trusted part. UNSEEN if the history has gaps."""
        self._is_asked_more = True
        worst = min((traced for _, traced in self._traced(value)), key=_trust, default=Traced("agent"))
        if worst.source in ("agent", "content") and not self._ledger.is_whole_before(self._at.start):
            return UNSEEN
        return worst.record()

    def origins(self) -> list[ArgumentOrigin]:
        """Return the origin of each argument. For a list or record, it is that of its least trusted part."""
        provenance = self._ledger.provenance(self._context)
        found: list[ArgumentOrigin] = []
        for name, value in self._at.call.arguments.items():
            if traced := self._traced(value):
                part, worst = min(traced, key=lambda each: _trust(each[1]))
                writes, shown = provenance.echo_steps(part, before=self._at.start)
                found.append(ArgumentOrigin(name, worst, tuple(writes), tuple(shown)))
        return found

    def _traced(self, value: Any) -> list[tuple[str | float, Traced]]:
        provenance, before = self._ledger.provenance(self._context), self._at.start
        return [(part, origin_of(provenance, part, before=before)) for part in _leaves(value, self._at)]

    def objections(self) -> Sequence[str]:
        """Return the reasons why the user's request does not cover the call."""
        requests = self._ledger.requests
        return [] if requests is None else [str(each) for each in requests.objections(self._at)]

    def requested(self) -> bool | NoValue:
        """Whether the user's request covers the call. UNSEEN if the user must be asked."""
        self._is_asked_more = True
        requests = self._ledger.requests
        return UNSEEN if requests is None else requests.keeps(self._at)

    def answers(self) -> Iterable[tuple[str, Any]]:
        """Yield every fact that was requested so far, with its value."""
        for asked, answer in self._read.items():
            if len(asked) == 3:
                entity, key, field = asked
                yield f"{entity}{list(key)}.{field}", answer

    def shown_at(self, entity: Entity, key: Key, field: Field) -> Shown | None:
        """Return the result that showed the value returned by `read`."""
        return self._ledger.latest(entity, key_of(key), field.name, self._at)

    def members(self, entity: Entity, match: Mapping[str, Any]) -> tuple[Sequence[Key], bool]:
        """Return the entities equal to `match` that the agent saw. Others may exist, unless the entity is declared
        complete.
        """
        self._is_asked_more = True
        keys, is_sure = matching(self._ledger.visible_keys(entity, self._at), self.read, entity, match)
        is_named = bool(keys and match.keys() >= set(entity.key))
        return keys, is_sure and (is_named or (entity.complete and self._is_whole(entity)))

    def done(self, tool: str, match: Mapping[str, Any]) -> int | Between:
        """Return how many earlier calls took effect, according to what was known just before this call."""
        self._is_asked_more = True
        return self._ledger.done(tool, match, self._at, known_at=self._at.step)


def matching(
    keys: Iterable[Key], read: Callable[[Entity, Key, Field], Any], entity: Entity, match: Mapping[str, Any]
) -> tuple[list[Key], bool]:
    """Return the entities that are known to equal `match`, and whether it is certain that no others do."""
    parts = {name: key_of((value,))[0] for name, value in match.items() if name in entity.key}
    wanted = [(entity.fields[name], value) for name, value in match.items() if name not in parts]
    found: list[Key] = []
    is_sure = True
    for key in list(keys):
        if any(key[entity.key.index(name)] != part for name, part in parts.items()):
            continue
        values = [(read(entity, key, field), value) for field, value in wanted]
        if all(known == value for known, value in values):
            found.append(key)
        elif not any(is_known(known) and known != value for known, value in values):
            is_sure = False
    return found, is_sure


class _Shown(NamedTuple):
    """The results in which a look-up function may search: those that the agent has seen, if the field has not changed
    since.
    """

    ledger: Ledger
    at: CallRecord
    entity: str
    key: Key
    field: str

    def results(self, tool: str, match: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        return [
            {"arguments": made.arguments, "value": result.value(), "step": made.delivered}
            for made, result in self.ledger.answers.delivered(tool, self.at)
            if all(made.arguments.get(name, NOTHING) == wanted for name, wanted in match.items())
            and self.ledger.changes.is_current(self.entity, self.key, self.field, made.step, self.at)
        ]


class Testimony:
    """Facts that only the user or the host can state, as of one call. Every source of facts uses them."""

    def __init__(self, ledger: Ledger, at: CallRecord, context: Mapping[str, Any]) -> None:
        self._ledger = ledger
        self._at = at
        self._context = context

    def read(self, field: Field, *, is_checked: bool = False) -> Any:
        """Return the value, or UNSEEN. With `is_checked`, a result must also show the value."""
        if field.origin == "context":
            given = self._context.get(field.name)
            # An empty string is not a value, because two empty names do not mean the same customer.
            is_given = field.name in self._context and not (isinstance(given, str) and not given.strip())
            return coerce(field, given) if is_given else UNSEEN
        for saying in field.sayings:
            value = self._at.call.arguments.get(saying.argument) if saying.argument else None
            if value is not None:
                return coerce(field, value)
        sayings = [(saying, compile_pattern(saying.says, saying.but_not)) for saying in field.sayings if saying.says]
        denied: set[Any] = set()
        """Values that a later message mentions without stating them clearly."""
        for step, text in self._ledger.stating([pattern.occurs for _, pattern in sayings], self._at.step):
            if not self._ledger.has_heard_since(step, self._at.step):
                # The user may have stated something else in a message that was not recorded.
                return UNSEEN
            meant, unmeant = self._meant(sayings, text)
            denied |= unmeant
            values = {_value(*each) for each in meant}
            if values:
                since = (said for at, said in self._ledger.said if step < at < self._at.step)
                if len(values) > 1 or values & denied or any(map(takes_back, since)):
                    return UNSEEN
                saying, match = meant[0]
                if saying.value is not None:
                    return coerce(field, saying.value)
                value = _stated(field, match)
                return value if not is_checked or self._is_shown(field, value) else UNSEEN
        # The default applies if the user stated no value, provided that all messages were recorded and are clear.
        has_default = field.default is not UNDECLARED and not (is_checked and field.default is None)
        is_unsaid = bool(sayings) and has_default and self._ledger.has_heard_all(self._at.step)
        return coerce(field, field.default) if is_unsaid and not denied else UNSEEN

    def _is_shown(self, field: Field, value: Any) -> bool:
        return any(
            entry.delivered < self._at.start and entry.value in (value, str(value))
            for entity in self._ledger.schema.entities.values()
            for key in self._ledger.visible_keys(entity, self._at)
            for other in entity.fields.values()
            if other.type == field.type and (thing := self._ledger.thing(entity.name, key)) is not None
            for entry in thing.shown(other.name)
        )

    def _meant(
        self, sayings: Sequence[tuple[Saying, Pattern]], text: str
    ) -> tuple[list[tuple[Saying, Match]], set[Any]]:
        """Return the values that a message states clearly, and the values that it only mentions."""
        meant: list[tuple[Saying, Match]] = []
        unmeant: set[Any] = set()
        read: list[Match] = []
        for saying, pattern in sayings:
            # Text that one pattern has matched is not available to later patterns.
            every = self._found(saying, pattern, text)
            found = [each for each in every if not any(_overlap(each, other) for other in read)]
            plain = [each for each in found if is_meant(text, each.start(), each.end())]
            meant += [(saying, each) for each in (plain if saying.value is None else plain[:1])]
            unmeant.update(_value(saying, each) for each in found if not plain)
            read += found
        return meant, unmeant

    def _found(self, saying: Saying, pattern: Pattern, text: str) -> Iterator[Match]:
        about: Any = self._at.call.arguments.get(saying.about) if saying.about else None
        spans = [(0, len(text))] if not saying.about else passages_about(text, about)
        for match in pattern.finditer(text):
            if any(begin <= match.start() < stop for begin, stop in spans):
                yield match


def _overlap(one: Match, other: Match) -> bool:
    return one.start() < other.end() and other.start() < one.end()


def _value(saying: Saying, match: Match) -> Any:
    """Return the value that the pack declares for the statement or, if it declares none, the text of the last matching
    group.
    """
    return saying.value if saying.value is not None else str(match[match.lastindex or 0]).lower()


def _stated(field: Field, match: Match) -> Any:
    """Return the value of the matched text, in which a date may be spelled out. UNSEEN if the date is ambiguous."""
    said = match[match.lastindex or 0]
    if field.type != "date" or not isinstance(said, str):
        return coerce(field, said)
    return spoken_day(said) or UNSEEN


FOREVER = 1 << 60
"""A step after all others."""


class _LookedUp:
    """The facts that a shield looked up for one call. They were true just before its turn, but the agent had not seen
    them.
    """

    def __init__(self, ledger: Ledger, at: CallRecord) -> None:
        self._changes, self._at = ledger.changes, at
        self._own = Ledger(ledger.schema)
        call = at.call
        for place, each in enumerate(call.looked_up):
            step = 2 * place
            made = Call(each.tool, each.arguments, turn=-1 - place, agent=call.agent, time=call.time)
            self._own.observe_all(step, (made, Result(step, each.content, each.failed or None, agent=call.agent)))
        self._then = self._own.record(call, 2 * len(call.looked_up))
        self._seen = SeenFacts(self._own, self._then, {})

    def keys(self, entity: Entity) -> Iterable[Key]:
        return self._own.keys(entity)

    def read(self, entity: Entity, key: Key, field: Field) -> Any:
        """Return the value that was looked up. UNSEEN if a call in the same turn may have changed it."""
        if self._own.thing(entity.name, key) is None:
            return UNSEEN
        found = self._seen.read(entity, key, field)
        if self._own.latest(entity, key, field.name, self._then) is None and found is not ABSENT:
            return UNSEEN
        at = self._at
        is_so = self._changes.between(entity.name, key, field.name, at.start - 1, at.step) is None
        return found if is_so and (found is ABSENT or is_known(found)) else UNSEEN


class TrueFacts:
    """The true facts at the time of one call, from the ground-truth database or, if it lacks them, from the
    conversation.

    A result before the call shows a fact. So does a later result, if no write has changed the field since the call.
    """

    def __init__(self, ledger: Ledger, at: CallRecord, context: Mapping[str, Any], world: World | None = None) -> None:
        self._ledger = ledger
        self._at = at
        self._world = world
        self._records: dict[tuple[str, Key], Mapping[str, Any] | NoValue] = {}
        self._looked_up = _LookedUp(ledger, at) if at.call.looked_up else None
        self._seen = SeenFacts(ledger, at, context)
        """For facts that no database contains, because they depend on what was said and shown before the call."""

    def read(self, entity: Entity, key: Key, field: Field, *, in_world: bool = True) -> Any:
        if field.origin != "system" or entity.origin == "conversation":
            found = self._seen.read(entity, key, field)
            return found if is_known(found) else UNSEEN
        if not entity.key and entity.is_always_there:
            return True
        if len(key) != 1 or key[0].__class__ is not str:
            key = key_of(key)
        found = self._in_world(self._world, entity, key, field) if self._world is not None and in_world else NOTHING
        if found is not NOTHING:
            return found
        if self._looked_up is not None and (found := self._looked_up.read(entity, key, field)) is not UNSEEN:
            return found
        thing = self._ledger.thing(entity.name, key)
        if thing is None:
            return UNSEEN
        known = KnownEntity(self._ledger, thing, entity, key, self._at, is_hindsight=True)
        there = known.is_there()
        if there is NOTHING:
            there = self._shown_later(thing, entity, key, EXISTS)
        if there is None or isinstance(there, OneOf):
            return UNSEEN
        if field.name == "exists":
            found = there
        elif there is not False and (entry := known.latest(field.name)) is not None:
            found = known.value_of(field, entry)
        else:
            found = self._shown_later(thing, entity, key, field)
            if found is NOTHING and there is False:
                return ABSENT
        # Writes in the same turn may leave several possible values.
        return known.pending(field) if found is NOTHING else found

    def _shown_later(self, thing: SeenEntity, entity: Entity, key: Key, field: Field) -> Any:
        """Return a field's value as shown after the turn began. NOTHING if its value at the call may have been
        different.
        """
        shown = thing.shown(field.name)
        later = shown[len(shown_before(shown, self._at.start)) :]
        if later and self._stays_so(entity, key, field.name):
            soonest = min(later, key=attrgetter("as_of"))
            if self._is_so_yet(entity, key, field.name, soonest):
                at_once = [each for each in beside(soonest, later) if self._is_so_yet(entity, key, field.name, each)]
                return common_value(field, at_once)
        return NOTHING

    def _stays_so(self, entity: Entity, key: Key, field: str) -> bool:
        return self._ledger.changes.between(entity.name, key, field, self._at.step - 1, FOREVER) is None

    def _is_so_yet(self, entity: Entity, key: Key, field: str, entry: Shown) -> bool:
        """Whether a value that was shown later was already true at the call, because no write had changed the field."""
        changes = self._ledger.changes
        step = self._at.step
        changed = changes.between(entity.name, key, field, min(entry.as_of, step) - 1, step)
        return changed is None and not changes.beside(entity.name, key, field, entry.as_of)

    def _in_world(self, world: World, entity: Entity, key: Key, field: Field) -> Any:
        """Return a field's value in the ground-truth database. NOTHING if the database does not contain it."""
        asked = (entity.name, key)
        record = self._records.get(asked)
        if record is None:
            record = self._records[asked] = world.record(*asked)
        if isinstance(record, NoValue):
            return NOTHING if record is UNSEEN else False if field.name == "exists" else record
        if field.name == "exists":
            return True
        value = record.get(field.name, field.default)
        if field.keys_of is not None and (value is UNSEEN or value is UNDECLARED):
            kind, pointer = field.keys_of
            found = world.members(kind, {pointer: key[0]})
            value = UNSEEN if found is None else [each for (each,) in found]
        return NOTHING if value is UNSEEN or value is UNDECLARED else coerce(field, value)

    def members(self, entity: Entity, match: Mapping[str, Any]) -> tuple[Sequence[Key], bool]:
        """Return the entities in the ground-truth database. If it cannot list them, return those shown in the
        trajectory.
        """
        if entity.origin == "conversation":
            return self._seen.members(entity, match)
        listed = self._world.members(entity.name, match) if self._world is not None else None
        if listed is not None:
            return listed, True
        shown = self._ledger.keys(entity)
        if self._looked_up is not None:
            shown = dict.fromkeys([*shown, *self._looked_up.keys(entity)])
        keys, is_sure = matching(shown, partial(self.read, in_world=False), entity, match)
        return keys, is_sure and bool(keys and match.keys() >= set(entity.key))

    def done(self, tool: str, match: Mapping[str, Any]) -> int | Between:
        return self._ledger.done(tool, match, self._at)

    def traced(self, value: Any) -> Mapping[str, Any] | NoValue:
        """Return the origin of a value, which depends only on the conversation."""
        return self._seen.traced(value)

    def requested(self) -> bool | NoValue:
        """Return whether the user's request covers the call, which depends only on the conversation."""
        return self._seen.requested()
