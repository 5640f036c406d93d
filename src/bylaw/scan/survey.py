"""Surveys logs in one pass, without a pack, a model or a database."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from bylaw.errors import BylawError
from bylaw.facts.call_record import declaration_for, failed
from bylaw.facts.evidence import EvidenceCount, LookupEvidence
from bylaw.facts.provenance import Provenance
from bylaw.facts.result_places import leaf_values
from bylaw.policy.tool import Effect
from bylaw.scan.effect import Behaviour, EffectHint, Guess, by_definition, defined_name, guess, may_write
from bylaw.scan.generic import Generic, GenericTools
from bylaw.scan.habit import Argument, CallPlace, EarlierCall, Habit, Origins, Preparation, habits, link, names
from bylaw.text.folding import occurs
from bylaw.trace import Call, Message, Result, Trajectory

EXAMPLES = 20


class Write(Struct, frozen=True):
    """A write tool, the usual look-ups before it, and the origins of its arguments."""

    tool: str
    cases: int
    """The number of calls that were not refused."""
    habits: tuple[Habit, ...]
    arguments: tuple[Argument, ...]


class Scan(Struct, frozen=True):
    """The results of a survey, with the confidence in them."""

    trajectories: int
    unreadable: int
    """The number of unreadable records."""
    agents: dict[str, int]
    formats: dict[str, int]
    tools: tuple[Guess, ...]
    writes: tuple[Write, ...]
    faults: tuple[str, ...] = ()
    """The first errors for unreadable records."""
    evidence: tuple[LookupEvidence, ...] = ()
    """For each look-up, the number of results that were captured and could be decoded."""
    generic: tuple[Generic, ...] = ()
    """Tools with an argument that determines what a call does."""


def scan(
    trajectories: Iterable[Trajectory | BylawError],
    *,
    effects: Mapping[str, Effect] | None = None,
    examples: int = EXAMPLES,
) -> Scan:
    """Survey `trajectories`.

    `effects` replaces the guesses. `examples` is the maximum number of calls to list per result.
    """
    survey = Survey(effects=effects, examples=examples)
    for trajectory in trajectories:
        survey.add(trajectory)
    return survey.result()


class Survey:
    """Collects counts from many conversations, and a limited number of examples."""

    def __init__(self, *, effects: Mapping[str, Effect] | None = None, examples: int = EXAMPLES) -> None:
        self._known: dict[str, Effect] = dict(effects) if effects else {}
        self._examples = examples
        self._trajectories = 0
        self._evidence = EvidenceCount()
        self._unreadable = 0
        self._faults: set[str] = set()
        self._agents: Counter[str] = Counter()
        self._formats: Counter[str] = Counter()
        self._behaviour: defaultdict[str, Behaviour] = defaultdict(Behaviour)
        self._generic = GenericTools()
        self._prepared: dict[str, Preparation] = {}
        self._origins: dict[tuple[str, str], Origins] = {}

    def define(self, definition: Mapping[str, Any]) -> None:
        """Add a tool from the catalogue, even if the logs contain no call of it."""
        self._behaviour[str(definition["name"])].definitions.add(by_definition(definition))

    def add(self, trajectory: Trajectory | BylawError) -> None:
        """Add a conversation, or the error of a conversation that cannot be read."""
        if isinstance(trajectory, BylawError):
            self._unreadable += 1
            self._faults = set(sorted({*self._faults, str(trajectory)})[: self._examples])
            return
        self._trajectories += 1
        self._agents[trajectory.agent] += 1
        self._formats[trajectory.format] += 1
        definitions = {defined_name(each): by_definition(each) for each in trajectory.tools}
        for name, evidence in definitions.items():
            if name:
                self._behaviour[name].definitions.add(evidence)
        self._evidence.add(trajectory.events)
        self._generic.add(trajectory.events)
        writes = self._behave(trajectory.events, definitions)
        if writes:
            self._prepare(trajectory, writes)

    def result(self) -> Scan:
        guesses = {tool: guess(tool, seen, self._known.get(tool)) for tool, seen in self._behaviour.items()}
        order = sorted(guesses.values(), key=lambda each: (-each.calls, each.tool))
        prepared = {tool: own for tool, own in self._prepared.items() if guesses[tool].effect == "write"}
        arguments: defaultdict[str, list[Argument]] = defaultdict(list)
        for (tool, path), origins in sorted(self._origins.items()):
            arguments[tool].append(origins.summary(tool, path))
        writes = [
            Write(each.tool, own.patterns.total(), habits(each.tool, prepared, guesses), tuple(arguments[each.tool]))
            for each in order
            if (own := prepared.get(each.tool)) is not None
        ]
        return Scan(
            self._trajectories,
            self._unreadable,
            dict(sorted(self._agents.items())),
            dict(sorted(self._formats.items())),
            tuple(order),
            tuple(writes),
            tuple(sorted(self._faults)),
            tuple(each for each in self._evidence.found() if guesses[each.tool].effect == "read"),
            self._generic.found(),
        )

    def _behave(self, events: Sequence[object], definitions: Mapping[str, tuple[EffectHint, ...]]) -> list[int]:
        """Count the results of each tool. Return the steps of the accepted calls that may be writes."""
        suspect: dict[str, bool] = {}
        answered: dict[int, bool] = {}
        earlier: dict[tuple[str, str], tuple[int, str]] = {}
        may: list[int] = []
        for step, event in enumerate(events):
            if isinstance(event, Call):
                if event.tool not in suspect:
                    suspect[event.tool] = may_write(event.tool, self._known, definitions)
                    self._behaviour[event.tool].trajectories += 1
                self._behaviour[event.tool].calls += 1
                if suspect[event.tool] and event.by == "agent" and not event.fault:
                    may.append(step)
            elif isinstance(event, Result) and event.call is not None:
                call = events[event.call]
                if not isinstance(call, Call) or event.call in answered:
                    continue
                behaviour = self._behaviour[call.tool]
                ok = answered[event.call] = not failed(event)
                if not ok:
                    behaviour.refused += 1
                    if event.error is None:
                        behaviour.unflagged[declaration_for("write", event.text)] += 1
                    continue
                text = event.text
                if suspect[call.tool]:
                    behaviour.empty += text in ("", "null", "None", "{}", "[]")
                    continue
                key = (call.tool, repr(call.arguments))
                before = earlier.get(key)
                earlier[key] = (event.call, text)
                if before is not None:
                    between = [events[other] for other in may if before[0] < other < event.call and answered.get(other)]
                    self._compare(call, before[1], text, between)
        return [step for step in may if answered.get(step, True)]

    def _compare(self, call: Call, before: str, after: str, between: Sequence[object]) -> None:
        """Add evidence about a repeated look-up, and about calls in between that share a value with the look-up."""
        if not between:
            self._behaviour[call.tool].same += before == after
            return
        arguments = repr(call.arguments)
        for other in {each.tool: each for each in between if isinstance(each, Call)}.values():
            if any(occurs(name, before) >= 0 or occurs(name, arguments) >= 0 for _, name in names(other.arguments)):
                self._behaviour[other.tool].changed += before != after
                self._behaviour[other.tool].unchanged += before == after

    def _prepare(self, trajectory: Trajectory, writes: Sequence[int]) -> None:
        events = trajectory.events
        provenance = Provenance(events, instructions=trajectory.instructions)
        starts: dict[int, int] = {}
        for step, event in enumerate(events):
            if isinstance(event, (Call, Message)):
                starts.setdefault(event.turn, step)
        called = {event.tool for event in events if isinstance(event, Call)}
        lookups: dict[int, EarlierCall] = {}
        for step in writes:
            call = events[step]
            assert isinstance(call, Call)
            start = starts[call.turn]
            place = CallPlace(trajectory.id, step, trajectory.agent)
            earlier = self._lookups(events, start, call.agent, provenance, lookups)
            own = self._prepared.setdefault(call.tool, Preparation(self._examples))
            own.add(link(call.arguments, earlier), place)
            own.together |= called
            for path, value in dict.fromkeys(leaf_values(call.arguments)):
                # Small integers occur everywhere, so their origin does not matter.
                if isinstance(value, str) or not (abs(value) < 20 and value == int(value)):
                    origins = self._origins.setdefault((call.tool, path), Origins(self._examples))
                    origins.add(value, provenance.origin(value, before=start), place)

    def _lookups(
        self, events: Sequence[object], start: int, agent: str, provenance: Provenance, known: dict[int, EarlierCall]
    ) -> list[EarlierCall]:
        """Return the look-ups whose results arrived before the agent's current turn."""
        found: list[EarlierCall] = []
        for step in range(start):
            event = events[step]
            if not isinstance(event, Result) or event.call is None or event.agent != agent:
                continue
            if step not in known:
                call = events[event.call]
                if not isinstance(call, Call) or call.by != "agent" or failed(event):
                    continue
                known[step] = EarlierCall(call.tool, call.arguments, provenance.text(step))
            found.append(known[step])
        return found
