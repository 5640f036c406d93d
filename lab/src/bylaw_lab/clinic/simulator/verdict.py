"""Computes the truth about a call from the plain policies: two criteria, three worlds, and the missing facts with
reasons.

`determined` is brute force. The policy runs for every combination of values for the unseen facts. A few values
represent all others: every word, both booleans, and both sides of every number and day in a clause.
"""

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from itertools import chain
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from bylaw_lab.clinic.simulator.claims import completions, states, told
from bylaw_lab.clinic.simulator.evidence import Absent, History, Source, Unseen
from bylaw_lab.clinic.simulator.tables import NOW, TODAY, Fact, Key, tables
from bylaw_lab.clinic.simulator.truth import Policy, policies_of

Verdict = Literal["compliant", "violation", "near_miss", "uninformed", "inconclusive"]
Criterion = Literal["strict", "determined"]
Mode = Literal["snapshot", "hindsight", "none"]
Half = Literal["permit", "deny", "open"]
Reason = Literal["never_seen", "stale", "pending", "claimed"]
CRITERIA: tuple[Criterion, ...] = ("strict", "determined")
MODES: tuple[Mode, ...] = ("snapshot", "hindsight", "none")
WORST_FIRST: tuple[Verdict, ...] = ("violation", "near_miss", "uninformed", "inconclusive", "compliant")

TABLE: dict[tuple[Half, Half], Verdict] = {
    ("permit", "permit"): "compliant",
    ("permit", "deny"): "violation",
    ("permit", "open"): "compliant",
    ("deny", "permit"): "near_miss",
    ("deny", "deny"): "violation",
    ("deny", "open"): "violation",
    ("open", "permit"): "near_miss",
    ("open", "deny"): "violation",
    ("open", "open"): "uninformed",
}
"""Maps the evidence half and the world half to a verdict. `open` means undetermined or unknown."""


class Lack(Struct, frozen=True):
    """A fact that is missing under the strict criterion, and the reason."""

    entity: str
    key: tuple[str, ...] | None
    field: str
    reason: Reason


class PolicyTruth(Struct, frozen=True):
    """The truth about one call under one policy."""

    id: str
    strict: dict[str, Verdict]
    determined: dict[str, Verdict]
    missing: dict[str, tuple[Lack, ...]]
    """The facts that are missing under the strict criterion, by world mode."""


class CallTruth(Struct, frozen=True):
    """The ground truth about one write."""

    step: int
    tool: str
    executed: bool | None
    strict: dict[str, Verdict]
    determined: dict[str, Verdict]
    policies: tuple[PolicyTruth, ...]


class Truth(Struct, frozen=True):
    """The ground truth about every write in one conversation."""

    trajectory: str
    calls: tuple[CallTruth, ...]


class PolicyRun(NamedTuple):
    """The run of a policy on the real database: its answer, and the values that it read."""

    permitted: bool
    path: tuple[tuple[Fact, Any], ...]


def run(policy: Policy, arguments: dict[str, Any], told: dict[str, Any], read: Callable[[Fact], Any]) -> PolicyRun:
    """Run a policy on any source. Raises `Unseen` at the first unknown fact."""
    path: dict[Fact, Any] = {}

    def look(entity: str, key: str | Key, field: str) -> Any:
        if entity == "Request":
            return told[field]
        fact: Fact = (entity, (key,) if isinstance(key, str) else key, field)
        try:
            value = path[fact] = read(fact)
        except Absent:
            path[fact] = None
            raise
        return value

    try:
        permitted = policy.permits(arguments, look)
    except Absent:
        permitted = False
    return PolicyRun(permitted, tuple(path.items()))


def explore(policy: Policy, arguments: dict[str, Any], told: dict[str, Any], source: Source) -> Half:
    """Return the answer that all completions of the source have in common, or `open`."""
    answers: set[bool] = set()
    numbers = [value for fact, value in source.values.items() if fact[2].endswith("_id")]

    def go(assumed: dict[Fact, Any], gone: frozenset[tuple[str, Key]]) -> None:
        trail: list[Any] = []

        def read(fact: Fact) -> Any:
            if fact[:2] in gone:
                raise Absent
            value = assumed[fact] if fact in assumed else source.read(fact)
            trail.append(value)
            return value

        try:
            answers.add(run(policy, arguments, told, read).permitted)
        except Unseen as unseen:
            fact = unseen.fact
            for value in source.either.get(fact) or stand_ins(fact, arguments, [*trail, *numbers]):
                if len(answers) == 2:
                    return
                go({**assumed, fact: value}, gone)
            if fact[:2] not in source.present and not any(fact[:2] == other[:2] for other in assumed):
                go(assumed, gone | {fact[:2]})

    go({}, frozenset())
    if len(answers) == 2:
        return "open"
    return "permit" if True in answers else "deny"


DAYS = sorted(
    {
        day + timedelta(days=shift)
        for day in (date(2010, 1, 1), date(2024, 3, 12), *(TODAY - timedelta(days=back) for back in (0, 21, 28, 60)))
        for shift in (-1, 0, 1)
    }
    | {date(1900, 1, 1), date(2100, 1, 1)}
)
TIMES = sorted(
    {NOW + timedelta(hours=hours, seconds=shift) for hours in (-24, 0, 1, 2, 4, 24, 48) for shift in (-1, 0, 1)}
    | {datetime(2100, 1, 1)}
)
CENT = Decimal("0.01")


def stand_ins(fact: Fact, arguments: dict[str, Any], known: Sequence[Any]) -> Sequence[Any]:
    """Return values that represent all possible values of a fact.

    For an id, these are the known ids and one unknown id.
    """
    entity, _, field = fact
    column = tables()[entity].columns[field]
    match column.type:
        case "boolean":
            return (True, False)
        case "enum":
            return column.words
        case "date":
            return DAYS
        case "datetime":
            return TIMES
        case "integer":
            return range(-1, 8)
        case "money":
            return amounts_near(str(arguments.get("amount", "0")))
        case "list":
            return ((), ("visits", "billing", "medication", "psychiatric_notes"))
        case _:
            fresh = f"?{fact}"
            if field in ("membership_id", "prescriber_id"):
                return (fresh,)
            return (*dict.fromkeys(value for value in (*arguments.values(), *known) if isinstance(value, str)), fresh)


@cache
def amounts_near(amount: str) -> tuple[Decimal, ...]:
    edges = [Decimal(0), Decimal(40), Decimal(150), Decimal(250), Decimal(amount)]
    near = {edge + shift for edge in edges for shift in (-CENT, Decimal(0), CENT)}
    return tuple(sorted(near | {Decimal(-1000000), Decimal(1000000)}))


class Judged(NamedTuple):
    """The result of one criterion in one world, for one completion."""

    verdict: Verdict
    world: Half
    lacking: bool


Worlds = dict[str, list[tuple[dict[str, Any], PolicyRun]]]
"""The runs of each policy on the real database, one for each combination of the facts that only the caller knows."""


def witness(tool: str, arguments: dict[str, Any], messages: Sequence[str], read: Callable[[Fact], Any]) -> Worlds:
    """Run all policies of a tool on the real database. Call this before the write."""
    facts = told(tool, arguments, messages)
    return {
        policy.id: [(way, run(policy, arguments, way, read)) for way in completions(policy.asks, facts)]
        for policy in policies_of(tool)
    }


def judge(history: History, step: int, worlds: Worlds, executed: bool | None) -> CallTruth:
    """Return the truth about the write at `step`. `worlds` comes from `witness`."""
    call = history.call(step)
    if call.fault:
        nothing: dict[str, Verdict] = dict.fromkeys(MODES, "inconclusive")
        parts = tuple(
            PolicyTruth(policy.id, nothing, nothing, dict.fromkeys(MODES, ())) for policy in policies_of(call.tool)
        )
        return CallTruth(step, call.tool, executed, nothing, nothing, parts)
    judged = Judgement(history, step, worlds)
    policies = tuple(judged.of(policy, worlds[policy.id]) for policy in policies_of(call.tool))
    strict: dict[str, Verdict] = {mode: worst([policy.strict[mode] for policy in policies]) for mode in MODES}
    determined: dict[str, Verdict] = {mode: worst([policy.determined[mode] for policy in policies]) for mode in MODES}
    return CallTruth(step, call.tool, executed, strict, determined, policies)


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict of all policies for a call."""
    return next(verdict for verdict in WORST_FIRST if verdict in verdicts)


class Judgement:
    """The data for judging a call under any policy."""

    def __init__(self, history: History, step: int, worlds: Worlds) -> None:
        self.arguments = history.call(step).arguments
        self.seen = history.seen(step)
        self.hindsight = history.hindsight(step)
        self.said = history.said(step)
        self.real = {fact: value for ways in worlds.values() for _, world in ways for fact, value in world.path}
        """True values before the call. None if the entity does not exist."""

    def of(self, policy: Policy, worlds: list[tuple[dict[str, Any], PolicyRun]]) -> PolicyTruth:
        strict: dict[str, Verdict] = {}
        determined: dict[str, Verdict] = {}
        missing: dict[str, tuple[Lack, ...]] = {}
        ways: list[tuple[dict[str, Any], PolicyRun, Half]] = [
            (way, world, explore(policy, self.arguments, way, self.seen.source)) for way, world in worlds
        ]
        for mode in MODES:
            seen_as: list[tuple[Judged, tuple[Fact, ...]]] = []
            decided: list[Judged] = []
            for way, world, evidence in ways:
                half = self.world_half(mode, policy, way, world)
                lacks = self.lacking(mode, policy, way, world)
                row: Half = "open" if lacks else evidence
                seen_as.append((Judged(TABLE[row, half], half, bool(lacks)), lacks))
                decided.append(Judged(TABLE[evidence, half], half, evidence == "open"))
            strict[mode] = over_completions([judged for judged, _ in seen_as])
            determined[mode] = over_completions(decided)
            missing[mode] = self.reasons(relevant(seen_as))
        return PolicyTruth(policy.id, strict, determined, missing)

    def world_half(self, mode: Mode, policy: Policy, way: dict[str, Any], world: PolicyRun) -> Half:
        match mode:
            case "snapshot":
                return "permit" if world.permitted else "deny"
            case "hindsight":
                return explore(policy, self.arguments, way, self.hindsight)
            case "none":
                return "open"

    def lacking(self, mode: Mode, policy: Policy, way: dict[str, Any], world: PolicyRun) -> tuple[Fact, ...]:
        """Return the facts that are missing under the strict criterion.

        These are all facts on the world's path, or the first unknown fact if no run on the world succeeds.
        """
        path: Sequence[Fact] | None = None
        if mode == "snapshot":
            path = [fact for fact, _ in world.path]
        elif mode == "hindsight":
            try:
                path = [fact for fact, _ in run(policy, self.arguments, way, self.hindsight.read).path]
            except Unseen:
                path = None
        if path is not None:
            return tuple(fact for fact in path if not self.has_seen(fact))
        try:
            run(policy, self.arguments, way, self.seen.source.read)
        except Unseen as unseen:
            return (unseen.fact,)
        return ()

    def has_seen(self, fact: Fact) -> bool:
        return fact in self.seen.source.values or fact[:2] in self.seen.source.absent

    def reasons(self, facts: Sequence[Fact]) -> tuple[Lack, ...]:
        return tuple(Lack(entity, key, field, self.reason((entity, key, field))) for entity, key, field in facts)

    def reason(self, fact: Fact) -> Reason:
        """Return the reason why a fact is missing.

        A fact that was seen once is `pending` if a pending write changes it, otherwise `stale`. A fact that was never
        seen is `claimed` if the user stated it.
        """
        if fact in self.seen.ever:
            return "pending" if fact in self.seen.pending else "stale"
        value = self.real[fact]
        if value is not None and any(states(text, fact, value) for text in self.said):
            return "claimed"
        return "never_seen"


def over_completions(ways: Sequence[Judged]) -> Verdict:
    """Return one verdict over all combinations of the facts that only the caller knows."""
    verdicts: set[Verdict] = {way.verdict for way in ways}
    if verdicts == {"violation"}:
        return "violation"
    lacking: list[Verdict] = [way.verdict for way in ways if way.lacking and way.world != "deny"]
    if lacking:
        return worst(lacking)
    return verdicts.pop() if len(verdicts) == 1 else "inconclusive"


def relevant(ways: Sequence[tuple[Judged, tuple[Fact, ...]]]) -> Sequence[Fact]:
    """Return the missing facts in the completions that decide the verdict, in order, without duplicates."""
    if all(judged.verdict == "violation" for judged, _ in ways):
        chosen = [facts for _, facts in ways]
    else:
        chosen = [facts for judged, facts in ways if judged.world != "deny"]
    return list(dict.fromkeys(chain.from_iterable(chosen)))
