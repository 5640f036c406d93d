"""What has been shown so far, by which step, to whom; and what writes have made stale since.

Results are kept as they came and decoded only when a guard asks for a kind of thing they may show,
each at most once. Every question is asked as of a step, so that the answer for a judged call
never depends on what came after it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import merge
from itertools import groupby
from typing import Any, Protocol

from bylaw.facts.acceptance import accepted
from bylaw.facts.call_record import TO_USER, Answers, CallRecord, record_of
from bylaw.facts.changes import Changes
from bylaw.facts.claim import Claims
from bylaw.facts.entity import UNDECLARED, Between, Entity, Key, NoValue
from bylaw.facts.missing_results import MissingResults
from bylaw.facts.observation import Sighting, sightings, unreadable
from bylaw.facts.path import NOTHING, Finder
from bylaw.facts.provenance import Provenance
from bylaw.facts.schema import Schema
from bylaw.facts.shown import SeenThing, Shown
from bylaw.facts.value import key_of
from bylaw.policy.pattern import Pattern
from bylaw.trace.event import Call, Event, Result

SKEW = 1.0
"""Seconds by which a later event may be stamped earlier: clocks that are rounded or are not quite the same."""


class Requests(Protocol):
    """Who knows what the user's words allow."""

    def keeps(self, at: CallRecord) -> "bool | NoValue":
        """Whether a call keeps to what the user asked for before it; UNSEEN where only the user can say."""
        ...

    def objections(self, at: CallRecord) -> Sequence[object]:
        """Why it does not; each can be told in words."""
        ...


FEW = 4
"""Sightings of a thing that are looked through one by one; those of more are kept by field."""


class Ledger:
    """The facts shown in one trajectory."""

    turn = -1
    """The number of the last turn, and the step at which it began."""
    turn_start = 0
    _provenance: Provenance | None = None
    _looked_for_times = 0
    """How many events were looked through for results that were not captured, and for times."""
    requests: Requests | None = None
    """Who knows what the user's words allow, where the pack asks for it."""

    def __init__(self, schema: Schema, vouched: Mapping[str, Any] | None = None) -> None:
        self.schema = schema
        self.vouched: Mapping[str, Any] = {} if vouched is None else vouched
        """What the host vouches for."""
        self.calls: dict[int, CallRecord] = {}
        self.writes: list[CallRecord] = []
        """Calls that may change something: of tools that do, and of tools that nobody declared."""
        self.said: list[tuple[int, str]] = []
        self._unheard: list[int] = []
        """The steps at which the user said something that was not recorded."""
        self.changes = Changes(schema)
        self.answers = Answers()
        self._stating: dict[Pattern, tuple[int, list[int]]] = {}
        """By pattern, how many of the user's messages were searched for it, and the places of those that have it."""
        self.suspects: dict[tuple[str, str, str], tuple[int, list[CallRecord]]] = {}
        """By tool, kind and field, how many answers were looked at, and those that may not have told the field."""
        self._unreadable: dict[str, tuple[int, list[CallRecord]]] = {}
        """By kind, how many results that may show such things were looked at, and those that could not be read."""
        self._showing: dict[str, list[CallRecord]] = {}
        """By kind, the calls whose results may show such things, as the results came."""
        self._absorbed: dict[str, int] = {}
        """How many of these were read for it."""
        self._things: dict[str, dict[Key, SeenThing]] = {}
        self._to_show: dict[int, CallRecord] = {}
        """Calls, by step, that a shield refused after looking something up, while the agent has not been told."""
        self._times: list[tuple[int, float]] = []
        """Steps that bear a time, with it, as far as was looked."""
        self._events: list[Event] = []
        self._missing = MissingResults(self._events)

    @cached_property
    def claims(self) -> Claims:
        """What the user's messages state."""
        return Claims(self.said)

    @property
    def events(self) -> Sequence[Event]:
        """What was taken in so far."""
        return self._events

    @property
    def step(self) -> int:
        """The step of the next event."""
        return len(self._events)

    def record(self, call: Call, step: int) -> CallRecord:
        """The record of a call that is about to be observed."""
        start = self.turn_start if call.turn == self.turn else step
        return record_of(call, step, start, self.schema.tools.get(call.tool))

    def observe(self, step: int, event: Event, made: CallRecord | None = None) -> None:
        """Take in the next event; `made` is the record of a call that was judged before it was observed."""
        self.observe_all(step, (event,), made)

    def observe_all(self, step: int, events: Sequence[Event], made: CallRecord | None = None) -> None:
        """Take in the next events, the first of them at `step`; `made` is its record where it was judged before."""
        tools, calls, shows, answered = self.schema.tools, self.calls, self.schema.shows, self.answers.add
        turn, start = self.turn, self.turn_start
        self._events += events
        for event in events:
            # `isinstance` is slow to say no of a record, and Python finds fields fastest where it meets one type.
            if type(event) is Result:
                asked = calls.get(event.call) if event.call is not None else None
                if asked is not None and asked.result is None and not asked.call.refused:
                    asked.result, asked.delivered = event, step
                    answered(asked)
                    tool = asked.tool
                    if tool is None or tool.effect == "write":
                        self._write_answered(asked, event)
                    shown = shows.get(asked.call.tool)
                    if shown is not None:
                        for entity in shown:
                            self._shown_by(asked, entity)
                elif self._to_show and event.call in self._to_show:
                    self._shown_with(self._to_show.pop(event.call), event, step)
            elif type(event) is Call:
                if event.turn != turn:
                    turn, start = self.turn, self.turn_start = event.turn, step
                if made is None:
                    who = TO_USER if event.by == "user" else event.agent
                    made = CallRecord(event, step, start, tools.get(event.tool), who)
                calls[step] = made
                if event.refused:
                    made.accepted, made.delivered = False, step
                    if event.looked_up:
                        self._to_show[step] = made
                if self.changes.under_way:
                    self.changes.ask(made)
                tool = made.tool
                if tool is None or tool.effect == "write":
                    self.writes.append(made)
                    if not event.refused:
                        self.changes.write(made, self.finder(made))
                made = None
            else:
                if event.turn != turn:
                    turn, start = self.turn, self.turn_start = event.turn, step
                # What the user answered to a card was not said in words.
                if event.by == "user" and event.confirmation is None:
                    self.said.append((step, event.text))
                    if not event.captured:
                        self._unheard.append(step)
            step += 1

    def _shown_with(self, refused: CallRecord, told: Result, step: int) -> None:
        """Take in what a shield looked up for a call that it refused, and the agent was told in place of a result."""
        call = refused.call
        for each in call.looked_up:
            if each.shown:
                asked = Call(each.tool, each.arguments, turn=call.turn, agent=call.agent, time=call.time)
                made = CallRecord(asked, refused.step, refused.start, self.schema.tools.get(each.tool), refused.who)
                made.result = Result(told.call, each.content, each.failed or None, tool=each.tool, time=told.time)
                made.delivered = step
                self.answers.add(made)
                for entity in self.schema.shows.get(each.tool, ()):
                    self._shown_by(made, entity)

    def _write_answered(self, made: CallRecord, result: Result) -> None:
        made.accepted = accepted(made.tool, result)
        self.changes.end(made)
        if made.accepted and result.captured:
            self.changes.answer(made, result, self.finder(made))

    def _shown_by(self, made: CallRecord, entity: str) -> None:
        showing = self._showing.get(entity)
        if showing is None:
            self._showing[entity] = [made]
        else:
            showing.append(made)

    def has_answer_about(self, entity: str) -> bool:
        """Whether any result came so far that may show things of a kind."""
        return entity in self._showing

    def finder(self, made: CallRecord) -> Finder:
        """What the agent had been shown of other things when it made a call."""

        def find(entity: str, key: Key, field: str) -> Any:
            shown = self.latest(self.schema.entities[entity], key, field, made)
            return NOTHING if shown is None else shown.value

        return find

    def provenance(self, context: Mapping[str, Any]) -> Provenance:
        """Where values of the conversation came from."""
        if self._provenance is None:
            self._provenance = Provenance(self._events, context=context, tools=self.schema.tools)
        return self._provenance

    def vouch(self, context: Mapping[str, Any]) -> None:
        """What the host vouches for by now."""
        self.vouched = context
        if self._provenance is not None:
            self._provenance.vouch(context)

    def read_ahead(self, result: Result) -> None:
        """Read a result that has been observed before anybody asks for what it shows."""
        if self._provenance is not None:
            self._provenance.index()
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

    def visible_keys(self, entity: Entity, at: CallRecord) -> list[Key]:
        """Those of the things that the judged call's agent had been shown before the turn that makes the call."""
        self._absorb(entity.name)
        return [
            key
            for key, thing in self._things.get(entity.name, {}).items()
            if any(delivered < at.start and who == at.who for _, delivered, who, _, _ in thing.sightings)
        ]

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
            changed = self.changes.last(entity.name, key, field, entry.as_of, before, known_at=at.step)
            if changed is None:
                if thing.lost and thing.lost_since(entry, at.start):
                    # The agent has seen something newer, and nobody can read what: unread.
                    return None
                return None if entity.fresh_for is not None and self._expired(entity.fresh_for, entry, at) else entry
            newest = max(newest, changed)
        return None

    def newest_of(self, thing: SeenThing, entity: Entity, key: Key, field: str, at: CallRecord) -> Any:
        """What `latest_of` comes to for nearly every field: the newest value shown, of a thing seen a few times and
        never missed, not changed since. NOTHING where more has to be looked at."""
        if thing.is_ever_absent or thing.lost or entity.fresh_for is not None or len(thing.sightings) > FEW:
            return NOTHING
        if (
            len(thing.sightings) > 1
            and (kind := entity.fields.get(field)) is not None
            and kind.default is not UNDECLARED
        ):
            # A default counts only where no answer before told the field.
            return NOTHING
        if len(thing.sightings) == 1:
            as_of, delivered, who, sighting, _ = thing.sightings[0]
            value = sighting.show(field) if delivered < at.start and who == at.who else NOTHING
            if value is NOTHING or self.changes.last(entity.name, key, field, as_of, at.step, known_at=at.step) is None:
                return value
            return NOTHING
        asked, found = -1, NOTHING
        for as_of, delivered, who, sighting, _ in reversed(thing.sightings):
            if delivered < asked:
                break
            if delivered < at.start and who == at.who and (value := sighting.show(field)) is not NOTHING:
                if found is not NOTHING:
                    # Shown twice at once, perhaps in two ways.
                    return NOTHING
                if self.changes.last(entity.name, key, field, as_of, at.step, known_at=at.step) is not None:
                    return NOTHING
                asked, found = as_of, value
        return found

    def ever_visible(self, entity: Entity, key: Key, field: str, at: CallRecord) -> Shown | None:
        """The newest value that was visible to the judged call, stale or not."""
        shown = reversed(self.shown(entity, key, field))
        return next((entry for entry in shown if entry.delivered < at.start and entry.agent == at.who), None)

    def may_be_read_again(self, entity: Entity, key: Key, field: str, at: CallRecord) -> bool:
        """Whether a fact was shown, and the one look-up made since could not be read: another may be."""
        thing, shown = self.thing(entity.name, key), self.ever_visible(entity, key, field, at)
        return thing is not None and shown is not None and thing.lost_since(shown, at.start) == 1

    def _expired(self, seconds: float, entry: Shown, at: CallRecord) -> bool:
        """Whether what was shown may be too old for a call. Where nothing so far bears a time, nothing expires."""
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
            # It was shown no earlier than whatever was stamped last before it.
            if first == 0:
                return True
            since = self._times[first - 1][1]
        latest = max((time for _, time in self._times[first:until]), default=since)
        return now - since > seconds or now < max(latest, since) - SKEW

    def has_heard_all(self, step: int) -> bool:
        """Whether all that the user said before a step is there; where nothing is, the log may not keep such words."""
        return self.has_heard_since(-1, step) and bool(self.said) and self.said[0][0] < step

    def is_whole_before(self, step: int) -> bool:
        """Whether every message of the user and every result before a step is there: what was not found is new."""
        return self.has_heard_all(step) and not self._missing.any_before(step)

    def has_heard_since(self, step: int, before: int) -> bool:
        """Whether all that the user said after one step and before another is there."""
        return bisect_left(self._unheard, before) <= bisect_right(self._unheard, step)

    def is_last_unheard(self) -> bool:
        """Whether of the user's last message nothing is there."""
        return bool(self._unheard) and self._unheard[-1] == self.said[-1][0]

    def stating(self, patterns: Iterable[Pattern], before: int) -> Iterator[tuple[int, str]]:
        """What the user said before a step that has one of the patterns, the latest first: each with its step."""
        said = self.said
        found: list[Iterator[int]] = []
        until = bisect_left(said, (before,))
        for pattern in patterns:
            searched, places = self._stating.get(pattern, (0, []))
            if searched < len(said):
                places += [place for place in range(searched, len(said)) if pattern.occurs(said[place][1])]
                self._stating[pattern] = (len(said), places)
            if places and places[0] < until:
                last = bisect_left(places, until) - 1
                found.append(map(places.__getitem__, range(last, -1, -1)))
        for place, _ in groupby(merge(*found, reverse=True)):
            yield said[place]

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
        if not record.result.captured or record.is_another_view():
            return True
        return record.accepted is not False and bool(unreadable(observations, record.call.arguments, record.value))

    def done(
        self, tool: str, match: Mapping[str, Any], at: CallRecord, *, known_at: int | None = None
    ) -> int | Between:
        """How many calls of `tool` before `at` took effect with arguments equal to `match`."""
        count = unsure = 0
        for made in self.writes:
            if made.step >= at.step:
                break
            if made.call.tool != tool:
                continue
            is_known = made.delivered is not None and (known_at is None or made.delivered < known_at)
            # A call of the same turn counts as done until its result comes, as it does for what it makes stale.
            is_pending = known_at is not None and made.start == at.start
            happened = made.accepted if is_known else True if is_pending else None
            matches = made.had(match)
            if happened is False or matches is False:
                continue
            if happened is None or matches is None:
                unsure += 1
            else:
                count += 1
        return Between(count, count + unsure) if unsure else count

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
            if result is not None:
                self._lose(made, entity)
            return
        if made.value is NOTHING:
            made.value = result.value()
            if made.tool is not None and made.tool.effect != "write":
                made.accepted = accepted(made.tool, result, made.value)
        if made.is_another_view():
            # `sandbox`, `as_of`: the agent would choose the world that its guards are shown.
            return
        delivered = made.delivered if made.delivered is not None else made.step
        value: Any = made.value
        if isinstance(value, str):
            text = value
        else:
            # What Python printed is data, and still text to those who search it as such.
            text = None if made.accepted and result.is_json() else result.text
        things, arguments, step, who, time = self._things[entity], made.call.arguments, made.step, made.who, result.time
        shown: list[Sighting] = []
        for observation in self.schema.shows[made.call.tool][entity]:
            for sighting in sightings(observation, arguments, value, text, made.accepted):
                shown.append(sighting)
                thing = things.get(sighting.key)
                if thing is None:
                    thing = things[sighting.key] = SeenThing()
                thing.sightings.append((step, delivered, who, sighting, time))
                if not sighting.exists:
                    thing.is_ever_absent = True
        if _tell(shown, self.schema.entities[entity]):
            made.has_told = True
        elif made.accepted is not False:
            self._lose(made, entity)

    def _lose(self, made: CallRecord, entity: str) -> None:
        """Note that a look-up of one thing was answered, and that nobody can read the thing in the answer."""
        read = self.schema.entities[entity].read
        if read is None or read.tool != made.call.tool or made.call.fault or made.delivered is None:
            return
        parts = self.schema.entities[entity].key
        given = {part: made.call.arguments.get(name) for name, part in read.arguments.items()}
        if parts and all(given.get(part) is not None for part in parts):
            thing = self._things[entity].get(key_of([given[part] for part in parts]))
            if thing is not None:
                thing.lost.append((made.step, made.delivered, made.who))


_NONE: list[Shown] = []


def _tell(sightings: Sequence[Sighting], kind: Entity) -> bool:
    """Whether any sighting tells more of a thing than its key: a field, or that it does not exist."""
    for sighting in sightings:
        if not sighting.exists:
            return True
        for name in kind.fields:
            if name not in kind.key and sighting.show(name) is not NOTHING:
                return True
    return False


def _delivered(entry: Shown) -> int:
    return entry.delivered
