"""What has been shown so far, by which step, to whom; and what writes have made stale since.

Results are kept as they came and decoded only when a guard asks for a kind of thing they may show,
each at most once. Every question is asked as of a step, so that the answer for a judged call
never depends on what came after it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bylaw.facts.acceptance import accepted
from bylaw.facts.answered import Answered
from bylaw.facts.call_record import CallRecord, Touch
from bylaw.facts.entity import UNSEEN, Entity, Key, NoValue
from bylaw.facts.observation import Unread, sightings, unreadable
from bylaw.facts.path import NOTHING
from bylaw.facts.schema import Schema
from bylaw.facts.shown import SeenThing, Shown
from bylaw.facts.undeclared import UndeclaredCall
from bylaw.facts.value import is_same, loose, loose_key
from bylaw.policy.pattern import Pattern
from bylaw.policy.verb import sounds_harmless
from bylaw.trace.event import Call, Event, Result

SKEW = 1.0
"""Seconds by which a later event may be stamped earlier: clocks that are rounded or are not quite the same."""


FEW = 4
"""Sightings of a thing that are looked through one by one; those of more are kept by field."""


class Ledger:
    """The facts shown in one trajectory."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.calls: dict[int, CallRecord] = {}
        self.writes: list[CallRecord] = []
        """Calls that may change something: of tools that do, and of tools that nobody declared."""
        self.said: list[tuple[int, str]] = []
        self.turn = -1
        """The number of the last turn, and the step at which it began."""
        self.turn_start = 0
        self._sorted: dict[str, Answered[CallRecord]] = {}
        """The calls whose results came, by tool; those that came since anybody asked are not yet among them."""
        self._unsorted: list[CallRecord] = []
        self._stating: dict[Pattern, tuple[int, list[int]]] = {}
        """By pattern, how many of the user's messages were searched for it, and the places of those that have it."""
        self._unreadable: dict[str, tuple[int, list[CallRecord]]] = {}
        """By kind, how many results that may show such things were looked at, and those that could not be read."""
        self._showing: dict[str, list[CallRecord]] = {}
        """By kind, the calls whose results may show such things, as the results came."""
        self._absorbed: dict[str, int] = {}
        """How many of these were read for it."""
        self._things: dict[str, dict[Key, SeenThing]] = {}
        self._changes: dict[tuple[str, Key | None], list[Touch]] = {}
        """By kind and key, the key in the form that all keys share that may be the same thing's."""
        self._strangers: list[tuple[CallRecord, UndeclaredCall]] = []
        self._times: list[tuple[int, float]] = []
        """Steps that bear a time, with it."""

    def record(self, call: Call, step: int) -> CallRecord:
        """The record of a call that is about to be observed."""
        return CallRecord(
            call, step, self.turn_start if call.turn == self.turn else step, self.schema.tools.get(call.tool)
        )

    def observe(self, step: int, event: Event, made: CallRecord | None = None) -> None:
        """Take in the next event; `made` is the record of a call that was judged before it was observed."""
        self.observe_all(step, (event,), made)

    def observe_all(self, step: int, events: Iterable[Event], made: CallRecord | None = None) -> None:
        """Take in the next events, the first of them at `step`; `made` is its record where it was judged before."""
        tools, calls = self.schema.tools, self.calls
        for event in events:
            if event.time is not None:
                self._times.append((step, event.time))
            if isinstance(event, Result):
                self._result(step, event)
            else:
                if event.turn != self.turn:
                    self.turn, self.turn_start = event.turn, step
                if isinstance(event, Call):
                    if made is None:
                        made = CallRecord(event, step, self.turn_start, tools.get(event.tool))
                    calls[step] = made
                    if event.refused:
                        made.accepted, made.delivered = False, step
                    tool = made.tool
                    if tool is None or tool.effect == "write":
                        self._write(made)
                    made = None
                elif event.by == "user":
                    self.said.append((step, event.text))
            step += 1

    def _write(self, made: CallRecord) -> None:
        self.writes.append(made)
        if made.tool is None:
            if not sounds_harmless(made.call.tool):
                self._strangers.append((made, UndeclaredCall(made.call)))
            return
        for change in self.schema.changes[made.call.tool]:
            if change.by_result:
                self._touch(change.entity, None, Touch(made, change.fields, by_result=True))
                continue
            # Arguments that were not captured may have named any of the kind.
            for key in (None,) if made.call.fault else change.touched(made.call.arguments):
                self._touch(change.entity, key, Touch(made, change.fields))

    def _touch(self, entity: str, key: Key | None, touch: Touch) -> None:
        touches = self._changes.setdefault((entity, None if key is None else loose_key(key)), [])
        # A result may come after other writes: the order of the calls is kept.
        place = len(touches)
        while place and touches[place - 1].record.step > touch.record.step:
            place -= 1
        touches.insert(place, touch)

    def _result(self, step: int, result: Result) -> None:
        made = self.calls.get(result.call) if result.call is not None else None
        if made is None or made.result is not None or made.call.refused:
            return
        made.result, made.delivered = result, step
        self._unsorted.append(made)
        tool, name = made.tool, made.call.tool
        if tool is None or tool.effect == "write":
            made.accepted = accepted(tool, result)
            for change in self.schema.changes.get(name, ()) if made.accepted and result.captured else ():
                if change.by_result:
                    for key in change.touched(made.call.arguments, result.value()):
                        self._touch(change.entity, key, Touch(made, change.fields))
        shown = self.schema.shows.get(name)
        if shown is not None:
            for entity in shown:
                self._showing.setdefault(entity, []).append(made)

    def read_ahead(self, result: Result) -> None:
        """Read a result that has been observed before anybody asks for what it shows."""
        made = self.calls.get(result.call) if result.call is not None else None
        for entity in self.schema.shows.get(made.call.tool, ()) if made is not None else ():
            self._absorb(entity)

    def shown(self, entity: Entity, key: Key, field: str) -> list[Shown]:
        """Every value of the field shown so far, in the order of delivery."""
        thing = self.thing(entity.name, key)
        return thing.shown(field) if thing is not None else _NONE

    def thing(self, entity: str, key: Key) -> SeenThing | None:
        """Everything shown of one thing so far; None where nothing was."""
        showing = self._showing.get(entity)
        if showing is None:
            return None
        if self._absorbed.get(entity) != len(showing):
            self._absorb(entity)
        return self._things[entity].get(key)

    def keys(self, entity: Entity) -> Iterable[Key]:
        """Keys of the things of that kind shown so far, in the order first shown."""
        self._absorb(entity.name)
        return self._things.get(entity.name, {})

    def latest(self, entity: Entity, key: Key, field: str, at: CallRecord) -> Shown | None:
        """The value visible to the judged call `at` and not stale for it."""
        thing = self.thing(entity.name, key)
        return self.latest_of(thing, entity, key, field, at) if thing is not None else None

    def latest_of(
        self, thing: SeenThing, entity: Entity, key: Key, field: str, at: CallRecord, *, before: int | None = None
    ) -> Shown | None:
        """The same, for a thing that has been found already; or as if no write from step `before` on had been made."""
        before = at.step if before is None else before
        shown = thing.shown(field)
        if not shown:
            return None
        who, newest = at.who, -1
        # Mostly nothing was shown since the call's turn began: then there is nothing to search for.
        count = len(shown) if shown[-1].delivered < at.start else bisect_left(shown, at.start, key=_delivered)
        for index in range(count - 1, -1, -1):
            entry = shown[index]
            if entry.delivered < newest:
                return None
            if entry.agent != who:
                continue
            changed = self.changed(entity.name, key, field, entry.as_of, before, known_at=at.step)
            if changed is None:
                return None if entity.fresh_for is not None and self._expired(entity.fresh_for, entry, at) else entry
            newest = max(newest, changed)
        return None

    def newest_of(self, thing: SeenThing, entity: Entity, key: Key, field: str, at: CallRecord) -> Any:
        """What `latest_of` comes to for nearly every field: the newest value shown, of a thing seen a few times and
        never missed, not changed since. NOTHING where more has to be looked at."""
        if thing.is_ever_absent or entity.fresh_for is not None or len(thing.sightings) > FEW:
            return NOTHING
        for as_of, delivered, who, sighting, _ in reversed(thing.sightings):
            if delivered < at.start and who == at.who and (value := sighting.show(field)) is not NOTHING:
                changed = self.changed(entity.name, key, field, as_of, at.step, known_at=at.step)
                return value if changed is None else NOTHING
        return NOTHING

    def ever_visible(self, entity: Entity, key: Key, field: str, at: CallRecord) -> Shown | None:
        """The newest value that was visible to the judged call, stale or not."""
        shown = reversed(self.shown(entity, key, field))
        return next((entry for entry in shown if entry.delivered < at.start and entry.agent == at.who), None)

    def changed(
        self, entity: str, key: Key, field: str, after: int, before: int, *, known_at: int | None = None
    ) -> int | None:
        """Step of the last call between two steps (both excluded) that may change the field; None where none does."""
        last: int | None = None
        if self._strangers:
            last = self._touched(key, after, before, known_at)
        if not self._changes:
            return last
        for index in ((entity, loose_key(key)), (entity, None)):
            for touch in reversed(self._changes.get(index, _NO_CHANGES)):
                step = touch.record.step
                if step <= after:
                    break
                if step < before and (touch.fields is None or field in touch.fields) and touch.counts(known_at):
                    last = step if last is None else max(last, step)
                    break
        return last

    def writes_of_turn(self, entity: str, key: Key, field: str, at: CallRecord) -> list[CallRecord]:
        """The earlier writes of the judged call's own turn that may change the field, in order."""
        if self._strangers and self._touched(key, at.start - 1, at.step, at.step) is not None:
            return [record for record, _ in self._strangers if at.start <= record.step < at.step]
        found = [
            touch.record
            for index in ((entity, loose_key(key)), (entity, None))
            for touch in self._changes.get(index, _NO_CHANGES)
            if at.start <= touch.record.step < at.step
            and (touch.fields is None or field in touch.fields)
            and touch.counts(at.step)
        ]
        return sorted(dict.fromkeys(found), key=lambda record: record.step)

    def _touched(self, key: Key, after: int, before: int, known_at: int | None) -> int | None:
        """Step of the last call between two steps of a tool that nobody declared and that names the thing."""
        for made, stranger in reversed(self._strangers):
            may_count = made.counts() if known_at is None else made.counts_at(known_at)
            if may_count and after < made.step < before and stranger.may_touch(key):
                return made.step
        return None

    def _expired(self, seconds: float, entry: Shown, at: CallRecord) -> bool:
        """Whether what was shown may be too old for a call. Where nothing so far bears a time, nothing expires."""
        now, since = at.call.time, entry.time
        until = bisect_left(self._times, (at.step,))
        if now is None or until == 0:
            return now is not None or until > 0
        first = bisect_left(self._times, (entry.delivered + 1,))
        if since is None:
            # It was shown no earlier than whatever was stamped last before it.
            if first == 0:
                return True
            since = self._times[first - 1][1]
        latest = max((time for _, time in self._times[first:until]), default=since)
        return now - since > seconds or now < max(latest, since) - SKEW

    def delivered(self, tool: str, at: CallRecord) -> Iterator[tuple[CallRecord, Any]]:
        """The accepted calls of `tool` whose results the judged call's agent had been shown, with those results."""
        for made in self._answered(tool, at):
            result = made.result
            if result is not None and result.captured and accepted(made.tool, result):
                yield made, result.value()

    def _answers(self) -> Mapping[str, Answered[CallRecord]]:
        """The calls whose results came, by tool."""
        for made in self._unsorted:
            answered = self._sorted.get(made.call.tool)
            if answered is None:
                answered = self._sorted[made.call.tool] = Answered()
            answered.add(made)
        self._unsorted.clear()
        return self._sorted

    def _answered(self, tool: str, at: CallRecord, arguments: Mapping[str, Any] | None = None) -> Iterator[CallRecord]:
        """The calls of `tool` whose results the judged call's agent had been shown; those that may be taken for a call
        with these arguments, and perhaps others, where they are given."""
        answered = self._answers().get(tool)
        if answered is None:
            return
        for made in answered.records if arguments is None else answered.about(arguments):
            shown = made.delivered is not None and made.delivered < at.start
            if shown and made.call.by == "agent" and made.call.agent == at.call.agent:
                yield made

    def stating(self, patterns: Iterable[Pattern]) -> list[int]:
        """The places among what the user said of the messages that have one of the patterns, in order."""
        found: set[int] = set()
        for pattern in patterns:
            searched, places = self._stating.get(pattern, (0, []))
            said = self.said
            if searched < len(said):
                places += [place for place in range(searched, len(said)) if pattern.occurs(said[place][1])]
                self._stating[pattern] = (len(said), places)
            found.update(places)
        return sorted(found)

    def unread(self, entity: Entity, key: Key, field: str, at: CallRecord) -> Unread | None:
        """Why the field is not known although the judged call's agent looked it up and was answered before its turn.

        A refusal is an answer that was read; a look-up that nothing answered showed nothing.
        """
        self._absorb(entity.name)
        for record in self._asked_for(entity, key, field):
            delivered = record.delivered
            if delivered is None or delivered >= at.start or record.who != at.who:
                continue
            is_read = record.tool is not None and record.tool.effect == "read"
            # What a write answered is no look-up, unless nobody knows what it answered.
            if is_read or (record.result is not None and not record.result.captured):
                why = self._unread(record, entity, key, field)
                if why and self.changed(entity.name, key, field, record.step, at.step, known_at=at.step) is None:
                    return why
        return None

    def _asked_for(self, entity: Entity, key: Key, field: str) -> Sequence[CallRecord]:
        """The answered calls that may have been about the thing, and perhaps others."""
        ways = {way.tool: way for way in reversed(self.schema.ways_to(entity, field))}
        found: list[CallRecord] = []
        for tool, answered in self._answers().items():
            if entity.name in self.schema.shows.get(tool, ()):
                way = ways.get(tool)
                parts = list(way.arguments.items()) if way is not None else []
                if way is None or not all(part in entity.key for _, part in parts):
                    found += answered.records
                else:
                    found += answered.about({name: key[entity.key.index(part)] for name, part in parts})
        return sorted(found, key=_step_of)

    def _unread(self, record: CallRecord, entity: Entity, key: Key, field: str) -> Unread | None:
        """Why a result does not tell the field, where it may be that it should."""
        is_about = self._is_about(record.call, entity, key, field)
        if is_about is False or record.result is None:
            return None
        if not record.result.captured:
            return "not_captured"
        if record.accepted is False:
            return None
        if is_about is None:
            observations = self.schema.shows[record.call.tool][entity.name]
            showing = [each for each in observations if not each.only or field in each.fields]
            return unreadable(showing, record.call.arguments, record.value) if showing else None
        thing = self._things[entity.name].get(key)
        if thing is not None and any(shown.as_of == record.step for shown in thing.shown(field)):
            return None
        return "not_readable" if isinstance(record.value, str) else "not_mapped"

    def _is_about(self, call: Call, entity: Entity, key: Key, field: str) -> bool | None:
        """Whether a look-up asks for the thing by its key; None for one that lists things or lost its arguments."""
        for way in self.schema.ways_to(entity, field):
            if way.tool == call.tool and not call.fault:
                named = [str(call.arguments.get(argument)) for argument in way.arguments]
                wanted = [key[entity.key.index(part)] for part in way.arguments.values() if part in entity.key]
                if list(map(loose, named)) != list(map(loose, wanted)):
                    return False
                # A search by a part of the key, such as a day, may be about others.
                return True if set(way.arguments.values()) >= set(entity.key) else None
        return None

    def is_read_whole(self, entity: Entity, at: CallRecord) -> bool:
        """Whether every result that may have shown the judged call's agent such things could be read."""
        self._absorb(entity.name)
        records = self._showing.get(entity.name, [])
        seen, lost = self._unreadable.get(entity.name, (0, []))
        if seen < len(records):
            lost += [record for record in records[seen:] if self._is_lost(record, entity.name)]
            self._unreadable[entity.name] = (len(records), lost)
        return not any(
            record.delivered is not None and record.delivered < at.start and record.who == at.who for record in lost
        )

    def _is_lost(self, record: CallRecord, entity: str) -> bool:
        """Whether a result that may show things of a kind could not be read for them."""
        listed = self.schema.shows[record.call.tool][entity]
        observations = [each for each in listed if not each.only or each.fields]
        if not observations or record.result is None:
            return False
        if not record.result.captured:
            return True
        return record.accepted is not False and bool(unreadable(observations, record.call.arguments, record.value))

    def answers_to(self, tool: str, arguments: Mapping[str, Any], at: CallRecord) -> list[CallRecord]:
        """The calls of a look-up that were answered, even by an error, and may have been made with these arguments."""
        made = self._answered(tool, at, arguments)
        return [record for record in made if matches(record.call.arguments, arguments) is not False]

    def are_current(self, made: Iterable[CallRecord], entity: str, key: Key, field: str, at: CallRecord) -> bool:
        """Whether one of these calls was made since the field last went stale."""
        return any(self.changed(entity, key, field, record.step, at.step, known_at=at.step) is None for record in made)

    def has_failed(self, tool: str, arguments: Mapping[str, Any], at: CallRecord) -> bool:
        """Whether every answer to a look-up was an error: the next one may well show what was wanted."""
        made = [each for each in self._answered(tool, at) if matches(each.call.arguments, arguments) is not False]
        return bool(made) and not any(each.result is not None and accepted(each.tool, each.result) for each in made)

    def was_asked(self, tool: str, arguments: Mapping[str, Any], at: CallRecord) -> bool:
        """Whether the judged call's agent had made just that call, and been answered, before its turn."""
        return any(
            made.call.arguments == arguments
            and made.result is not None
            and made.result.captured
            and bool(accepted(made.tool, made.result))
            for made in self._answered(tool, at, arguments)
        )

    def done(
        self, tool: str, match: Mapping[str, Any], at: CallRecord, *, known_at: int | None = None
    ) -> int | NoValue:
        """How many calls of `tool` before `at` took effect with arguments equal to `match`; UNSEEN where unsure."""
        count = 0
        for made in self.writes:
            if made.step >= at.step:
                break
            if made.call.tool != tool:
                continue
            is_known = made.delivered is not None and (known_at is None or made.delivered < known_at)
            # A call of the same turn counts as done until its result comes, as it does for what it makes stale.
            is_pending = known_at is not None and made.start == at.start
            happened = made.accepted if is_known else True if is_pending else None
            matches = _matches(made.call, match)
            if happened is False or matches is False:
                continue
            if happened is None or matches is None:
                return UNSEEN
            count += 1
        return count

    def _absorb(self, entity: str) -> None:
        """Decode the results that may show things of this kind and have not been read for it yet."""
        showing = self._showing.get(entity)
        done = self._absorbed.get(entity, 0)
        if showing is None or done == len(showing):
            return
        self._things.setdefault(entity, {})
        self._absorbed[entity] = len(showing)
        try:
            for made in showing[done:]:
                self._take_in(made, entity)
        except Exception:
            # Whoever asks next meets it again.
            self._absorbed[entity] = done
            raise

    def _take_in(self, made: CallRecord, entity: str) -> None:
        """Note what the result of a call shows of a kind."""
        result = made.result
        if result is None or not result.captured:
            return
        if made.value is NOTHING:
            made.value = result.value()
            if made.tool is not None and made.tool.effect != "write":
                made.accepted = accepted(made.tool, result, made.value)
        delivered = made.delivered if made.delivered is not None else made.step
        # What Python printed is data, and still text to those who search it as such.
        is_data = not isinstance(made.value, str) and made.accepted and result.is_json()
        text = None if is_data else made.value if isinstance(made.value, str) else _content(result)
        things = self._things[entity]
        for observation in self.schema.shows[made.call.tool][entity]:
            for sighting in sightings(observation, made.call.arguments, made.value, text, made.accepted):
                thing = things.get(sighting.key)
                if thing is None:
                    thing = things[sighting.key] = SeenThing()
                thing.sightings.append((made.step, delivered, made.who, sighting, result.time))
                if not sighting.exists:
                    thing.is_ever_absent = True


_NONE: list[Shown] = []
_NO_CHANGES: list[Touch] = []


def _content(result: Result) -> str:
    content = result.content
    return content if isinstance(content, str) else bytes(content).decode("utf-8", "replace")


def _step_of(record: CallRecord) -> int:
    return record.step


def _delivered(entry: Shown) -> int:
    return entry.delivered


def _matches(call: Call, match: Mapping[str, Any]) -> bool | None:
    """Whether a call had these arguments; None where a tool may have taken what it had for them."""
    return None if call.fault and match else matches(call.arguments, match)


def matches(given: Mapping[str, Any], match: Mapping[str, Any]) -> bool | None:
    """Whether arguments are these; None where a tool may take them for these or not."""
    found = [is_same(given[name], value) if name in given else False for name, value in match.items()]
    return False if False in found else None if None in found else True
