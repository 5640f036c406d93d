"""Determines what the agent had seen at a call, and what the conversation shows in hindsight.

A result is seen if it was delivered before the turn of the call. It is stale if a later write changes the fact in a
turn before the call. An earlier write in the same turn is pending: it may or may not take effect, so the fact has its
old or its new value. A read in the same turn as an earlier write is treated in the same way, because either may have
come first.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bylaw.trace import Call, Event, Message, Result
from bylaw_lab.clinic.simulator.desk import WRITES
from bylaw_lab.clinic.simulator.needs import Change, changes, refused, shows
from bylaw_lab.clinic.simulator.tables import Fact, Key


class Unseen(Exception):
    """A fact that a source does not know."""

    def __init__(self, fact: Fact) -> None:
        super().__init__(fact)
        self.fact = fact


class Absent(Exception):
    """The entity does not exist."""


class Source(NamedTuple):
    """Known facts, facts with a few possible values, and entities that are known to exist or not to exist."""

    values: dict[Fact, Any]
    either: dict[Fact, tuple[Any, ...]]
    present: frozenset[tuple[str, Key]]
    absent: frozenset[tuple[str, Key]]

    def read(self, fact: Fact) -> Any:
        """Return the value. Raises `Absent` or `Unseen` if there is none."""
        if fact[:2] in self.absent:
            raise Absent
        if fact not in self.values:
            raise Unseen(fact)
        return self.values[fact]


class Sighting(NamedTuple):
    """A fact from a result. `made` is the step of the call, and `delivered` is the step of the result."""

    fact: Fact
    value: Any
    made: int
    delivered: int


class Write(NamedTuple):
    """A write: its changes, the time of its result, and whether it was refused."""

    step: int
    alters: Mapping[Fact, Change | None]
    arguments: Mapping[str, Any]
    answered: int | None
    refused: bool


class History:
    """A whole conversation, with the facts known at each step."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.sightings: list[Sighting] = []
        self.writes: list[Write] = []
        answers = {event.call: (step, event) for step, event in enumerate(events) if isinstance(event, Result)}
        for step, event in enumerate(events):
            if not isinstance(event, Call) or event.fault:
                continue
            delivered, answer = answers.get(step, (None, None))
            value = answer.value() if answer else None
            if event.tool in WRITES:
                changed = changes(event.tool, event.arguments)
                self.writes.append(Write(step, changed, event.arguments, delivered, refused(value)))
            if delivered is not None:
                for fact, seen in shows(event.tool, event.arguments, value):
                    self.sightings.append(Sighting(fact, seen, step, delivered))

    def seen(self, step: int) -> "Seen":
        """Return what the agent had seen when it made the call at `step`."""
        pending = self.pending(step)
        return Seen(
            amid(self.before_turn(step), pending),
            frozenset(fact for write in pending for fact in write.alters),
            frozenset(sighting.fact for sighting in self.visible(step)),
        )

    def before_turn(self, step: int) -> Source:
        """Return what was known when the turn of `step` began."""
        start = self.turn_start(step)
        done = [write for write in self.writes if write.step < start and self.counts(write, step)]
        visible = self.visible(step)
        fresh = [sighting for sighting in visible if not altered(sighting, done)]
        amidst = {each: [write for write in done if self.are_at_once(write, each)] for each in fresh}
        sure = source_of([each for each, writes in amidst.items() if not writes], visible)
        unsure = {
            each.fact: each for each in sorted(amidst, key=lambda each: each.made) if each.fact not in sure.values
        }
        for sighting in unsure.values():
            told = amid(source_of([sighting], visible), amidst[sighting])
            sure.values.update(told.values)
            sure.either.update(told.either)
        return sure

    def are_at_once(self, write: Write, sighting: Sighting) -> bool:
        """Whether a read was in the same turn as an earlier write that changes the fact. Either may have come first."""
        is_beside = write.step < sighting.made and self.turn_start(write.step) == self.turn_start(sighting.made)
        return is_beside and sighting.fact in write.alters

    def visible(self, step: int) -> list[Sighting]:
        """Return everything shown before the turn of `step`."""
        start = self.turn_start(step)
        return [sighting for sighting in self.sightings if sighting.delivered < start]

    def pending(self, step: int) -> list[Write]:
        """Return the earlier writes in the turn of `step`."""
        start = self.turn_start(step)
        return [write for write in self.writes if start <= write.step < step]

    def counts(self, write: Write, step: int) -> bool:
        """Whether a write in an earlier turn is done at `step`, because it had not been refused by then."""
        return not write.refused or write.answered is None or write.answered > step

    def hindsight(self, step: int) -> Source:
        """Return the facts seen at `step`, and the facts in later results that are not changed by any write from `step`
        on.

        A refused pending write has changed nothing. It is unknown when an accepted pending write took effect.
        """
        start = self.turn_start(step)
        seen = amid(self.before_turn(step), [write for write in self.pending(step) if not write.refused])
        accepted = [write for write in self.writes if not write.refused]
        later = [
            sighting
            for sighting in self.sightings
            if sighting.delivered >= start
            and not any(
                (write.step >= min(sighting.made, step) and sighting.fact in write.alters)
                or self.are_at_once(write, sighting)
                for write in accepted
            )
        ]
        told = source_of(later, later)
        return Source(
            {**told.values, **seen.values},
            {fact: values for fact, values in seen.either.items() if fact not in told.values},
            seen.present | told.present,
            (seen.absent | told.absent) - seen.present,
        )

    def turn_start(self, step: int) -> int:
        """Return the first step of the turn with the call at `step`."""
        turn = self.call(step).turn
        while step > 0 and isinstance(event := self.events[step - 1], Call | Message) and event.turn == turn:
            step -= 1
        return step

    def call(self, step: int) -> Call:
        event = self.events[step]
        assert isinstance(event, Call)
        return event

    def said(self, step: int) -> list[str]:
        """Return what the user had said before `step`."""
        return [event.text for event in self.events[:step] if isinstance(event, Message) and event.by == "user"]


class Seen(NamedTuple):
    """What an agent knows at a call, what pending writes change, and everything it was ever shown."""

    source: Source
    pending: frozenset[Fact]
    ever: frozenset[Fact]


def altered(sighting: Sighting, writes: Sequence[Write]) -> bool:
    return any(write.step > sighting.made and sighting.fact in write.alters for write in writes)


def source_of(fresh: Sequence[Sighting], visible: Sequence[Sighting]) -> Source:
    """Return the newest value of each fresh fact. An entity exists once any of its fields was shown."""
    values: dict[Fact, Any] = {}
    for sighting in sorted(fresh, key=lambda sighting: sighting.made):
        values[sighting.fact] = sighting.value
    present = frozenset(sighting.fact[:2] for sighting in visible if sighting.fact[2] != "exists")
    absent = frozenset(sighting.fact[:2] for sighting in visible if sighting.fact[2] == "exists")
    return Source(values, {}, present, absent - present)


def amid(source: Source, pending: Sequence[Write]) -> Source:
    """Return what is known while these writes are pending. Each may or may not take effect, in order."""
    values = dict(source.values)
    either = dict(source.either)
    for fact in {fact for write in pending for fact in write.alters} & (values.keys() | either.keys()):
        olds = either.pop(fact, None) or (values[fact],)
        possible = outcomes(olds, fact, [write for write in pending if fact in write.alters])
        if possible is None or len(possible) > 1:
            values.pop(fact, None)
        if possible is not None and len(possible) > 1:
            either[fact] = possible
    return source._replace(values=values, either=either)


def outcomes(olds: Sequence[Any], fact: Fact, writes: Sequence[Write]) -> tuple[Any, ...] | None:
    """Return all values that a fact may have after some of these writes. None if a write allows any value."""
    possible = list(olds)
    for write in writes:
        new = write.alters[fact]
        if new is None:
            return None
        possible += [new(write.arguments, value) for value in possible]
    return tuple(dict.fromkeys(possible))
