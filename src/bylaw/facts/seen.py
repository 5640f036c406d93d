"""What the agent that makes a call has seen before it, and what only the user or the host can say."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bylaw.facts.call_record import CallRecord
from bylaw.facts.entity import (
    ABSENT,
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
from bylaw.facts.path import NOTHING
from bylaw.facts.shown import SeenThing, Shown, Visible, newest_with
from bylaw.facts.tracing import ArgumentOrigin, origins_of, trace_of
from bylaw.facts.value import coerce, key_of
from bylaw.facts.world_change import effect_on
from bylaw.policy.pattern import Match, Pattern, compile_pattern
from bylaw.text.condition import is_meant, takes_back
from bylaw.text.day import spoken_day
from bylaw.text.passage import passages_about


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


class SeenFacts:
    """What the agent that makes a call has seen before the turn that makes it."""

    def __init__(self, ledger: Ledger, at: CallRecord, context: Mapping[str, Any]) -> None:
        self._ledger = ledger
        self._at = at
        self._context = context
        self._read: dict[tuple[Any, ...], Any] = {}
        self._is_asked_more = False
        """Whether more was asked for than facts: members, counts, origins; or a fact that is malformed."""

    def read(self, entity: Entity, key: Key, field: Field) -> Any:
        """The value seen; ABSENT; or UNSEEN where it never was or is stale."""
        # Several guards ask for the same facts of one call, and settling asks again.
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
        """Every fact that was asked for so far; None where more was than facts."""
        return None if self._is_asked_more else (Fact._make(asked) for asked in self._read if len(asked) == 3)

    def _look(self, entity: Entity, key: Key, field: Field) -> Any:
        if field.origin != "system" and field.origin in SPOKEN:
            return Testimony(self._ledger, self._at, self._context).read(field)
        if not entity.key and entity.is_always_there:
            return True
        if len(key) != 1 or key[0].__class__ is not str:
            key = key_of(key)
        thing = self._ledger.thing(entity.name, key)
        if thing is None:
            return self._look_further(None, entity, key, field)
        found = self._ledger.latest_of(thing, entity, key, field.name, self._at)
        visible = Visible(self._ledger, thing, entity, key, self._at)
        # Whether it exists is in doubt only where some result said that it does not.
        if thing.is_ever_absent:
            there = visible.is_there()
            if there is None:
                return UNSEEN
            if field.name == "exists":
                return self._look_further(thing, entity, key, field) if there is NOTHING else there
            if there is False:
                return ABSENT
        return self._look_further(thing, entity, key, field) if found is None else visible.told(field, found)

    def _look_further(self, thing: SeenThing | None, entity: Entity, key: Key, field: Field) -> Any:
        """What is known of a field that nothing shows, or that is stale."""
        ledger, at = self._ledger, self._at
        if thing is not None and (pending := pending_value(ledger, thing, entity, key, field, at)) is not UNSEEN:
            return pending
        if entity.complete and ledger.ever_visible(entity, key, "exists", at) is None and self._is_whole(entity):
            return False if field.name == "exists" else ABSENT
        search = ledger.schema.searches.get((entity.name, field.name))
        return UNSEEN if search is None else search(key, _Shown(ledger, at, entity.name, key, field.name))

    def _is_whole(self, entity: Entity) -> bool:
        """Whether all that the conversation showed of a kind was read."""
        whole = self._read.get((entity.name,))
        if whole is None:
            whole = self._read[(entity.name,)] = self._ledger.is_read_whole(entity, self._at)
        return whole

    def traced(self, value: Any) -> Mapping[str, Any] | NoValue:
        """Where an argument's value came from, of a list the worst founded; UNSEEN where the history is incomplete."""
        self._is_asked_more = True
        return trace_of(self._ledger, self._at, self._context, value)

    def origins(self) -> list[ArgumentOrigin]:
        """Where each argument of the call came from."""
        return origins_of(self._ledger, self._at, self._context)

    def objections(self) -> Sequence[str]:
        """Why the call does not keep to what the user asked for, in words."""
        requests = self._ledger.requests
        return [] if requests is None else [str(each) for each in requests.objections(self._at)]

    def requested(self) -> bool | NoValue:
        """Whether the call keeps to what the user asked for before it; UNSEEN where only the user can say."""
        self._is_asked_more = True
        requests = self._ledger.requests
        return UNSEEN if requests is None else requests.keeps(self._at)

    def answers(self) -> Iterable[tuple[str, Any]]:
        """Every fact that was asked for so far, with the answer."""
        for asked, answer in self._read.items():
            if len(asked) == 3:
                entity, key, field = asked
                yield f"{entity}{list(key)}.{field}", answer

    def shown_at(self, entity: Entity, key: Key, field: Field) -> Shown | None:
        """The sighting that `read` answers from."""
        return self._ledger.latest(entity, key_of(key), field.name, self._at)

    def members(self, entity: Entity, match: Mapping[str, Any]) -> tuple[Sequence[Key], bool]:
        """The things seen whose seen fields equal `match`; there may be others, unless the kind is complete."""
        self._is_asked_more = True
        keys, is_sure = matching(self._ledger.visible_keys(entity, self._at), self.read, entity, match)
        return keys, is_sure and (bool(keys and match.keys() >= set(entity.key)) or self._holds_all(entity))

    def _holds_all(self, entity: Entity) -> bool:
        return entity.complete and self._is_whole(entity)

    def done(self, tool: str, match: Mapping[str, Any]) -> int | Between:
        """Earlier calls that took effect, for all that was known just before this one."""
        self._is_asked_more = True
        return self._ledger.done(tool, match, self._at, known_at=self._at.step)


def matching(
    keys: Iterable[Key], read: Callable[[Entity, Key, Field], Any], entity: Entity, match: Mapping[str, Any]
) -> tuple[list[Key], bool]:
    """The things whose fields are known to equal `match`, and whether those of no other of them may."""
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
    """The results a look-up function may search: shown to the agent, and the field not changed since."""

    ledger: Ledger
    at: CallRecord
    entity: str
    key: Key
    field: str

    def results(self, tool: str, match: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        return [
            {"arguments": made.call.arguments, "value": value, "step": made.delivered}
            for made, value in self.ledger.answers.delivered(tool, self.at)
            if all(made.call.arguments.get(name, NOTHING) == wanted for name, wanted in match.items())
            and self.ledger.changes.is_current(self.entity, self.key, self.field, made.step, self.at)
        ]


class Testimony:
    """What only the user or the host can say, as of one call; the same for every source."""

    def __init__(self, ledger: Ledger, at: CallRecord, context: Mapping[str, Any]) -> None:
        self._ledger = ledger
        self._at = at
        self._context = context

    def read(self, field: Field) -> Any:
        """The value, or UNSEEN."""
        if field.origin == "context":
            given = self._context.get(field.name)
            # An empty text says nothing: two that are empty are not one customer.
            is_told = field.name in self._context and not (isinstance(given, str) and not given.strip())
            return coerce(field, given) if is_told else UNSEEN
        for saying in field.sayings:
            value = self._at.call.arguments.get(saying.argument) if saying.argument else None
            if value is not None:
                return coerce(field, value)
        sayings = [(saying, compile_pattern(saying.says, saying.but_not)) for saying in field.sayings if saying.says]
        denied: set[Any] = set()
        """What a later message has words for and does not plainly state."""
        for step, text in self._ledger.stating([pattern for _, pattern in sayings], self._at.step):
            if not self._ledger.has_heard_since(step, self._at.step):
                # The user may have said otherwise since.
                return UNSEEN
            meant: list[tuple[Saying, Match]] = []
            read: list[Match] = []
            for saying, pattern in sayings:
                # What an earlier pattern has read is not read again as something else.
                every = self._found(saying, pattern, text)
                found = [each for each in every if not any(_overlap(each, other) for other in read)]
                match = next((each for each in found if is_meant(text, each.start(), each.end())), None)
                if match is not None:
                    meant.append((saying, match))
                else:
                    denied.update(_value(saying, each) for each in found)
                read += found
            values = {_value(*each) for each in meant}
            if values:
                since = (said for at, said in self._ledger.said if step < at < self._at.step)
                if len(values) > 1 or values & denied or any(map(takes_back, since)):
                    return UNSEEN
                saying, match = meant[0]
                return coerce(field, saying.value) if saying.value is not None else _told(field, match)
        # What nobody said is so where the pack says what that means, and where all that was said is there and clear.
        is_unsaid = bool(sayings) and field.default is not UNDECLARED and self._ledger.has_heard_all(self._at.step)
        return coerce(field, field.default) if is_unsaid and not denied else UNSEEN

    def _found(self, saying: Saying, pattern: Pattern, text: str) -> Iterator[Match]:
        """Where a message says it, or denies it, of the thing at hand."""
        about: Any = self._at.call.arguments.get(saying.about) if saying.about else None
        spans = [(0, len(text))] if not saying.about else passages_about(text, about)
        for match in pattern.finditer(text):
            if any(begin <= match.start() < stop for begin, stop in spans):
                yield match


def _overlap(one: Match, other: Match) -> bool:
    return one.start() < other.end() and other.start() < one.end()


def _value(saying: Saying, match: Match) -> Any:
    """What a saying says of itself, or by the words that were found."""
    return saying.value if saying.value is not None else str(match[0]).lower()


def _told(field: Field, match: Match) -> Any:
    """The value that words have; a day may be said as people say it, and one that may be two is not known."""
    said = match[match.lastindex or 0]
    if field.type != "date" or not isinstance(said, str):
        return coerce(field, said)
    return spoken_day(said) or UNSEEN
