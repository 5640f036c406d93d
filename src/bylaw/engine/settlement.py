"""Settles judged calls: compares them with the ground truth, applies both criteria, and finds the facts not seen by the
agent.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import replace

from bylaw.engine.conduct import RuleFinding
from bylaw.engine.judgement import Fault, Judgement, PolicyEvidence
from bylaw.engine.verdict import (
    Cell,
    CriterionVerdict,
    Half,
    Reason,
    UnreadFact,
    Verdict,
    combine,
    fact_record,
    worst,
)
from bylaw.engine.wording import is_hosts, policy_words
from bylaw.facts.call_record import CallRecord
from bylaw.facts.entity import ABSENT, NOT_KNOWN, UNSEEN, Entity, Fact, FactSource, Field, Key, is_known
from bylaw.facts.evidence import why_unread
from bylaw.facts.ledger import Ledger
from bylaw.facts.observation import Unread
from bylaw.facts.seen import ArgumentOrigin, TrueFacts
from bylaw.facts.value import key_of
from bylaw.facts.world import World
from bylaw.guard import Assumptions, Completion, Guard, Inquiry
from bylaw.pack import Pack
from bylaw.policy.statement import Policy
from bylaw.trace.event import Approved

WhyMissing = Literal["never_seen", "stale", "pending", "claimed"]
Standing = Literal["seen", "missing"] | Unread
"""Whether the agent had seen a fact before a call, had not seen it, or had looked it up with an unreadable result."""


class MissingFact(Struct, frozen=True):
    """A fact that the call needed and a tool could have shown, but that the agent had not seen."""

    fact: Fact
    lookup: tuple[str, dict[str, Any]] | None
    """The look-up that would have shown the fact."""
    reason: WhyMissing
    claimed_at: int | None
    decisive: bool = False
    """Whether the fact is also missing under the determined criterion."""
    claim: str = ""
    """Quote from a user message that claims a value for the fact."""
    stale_by: int | None = None
    """The step of the write that changed the fact after the agent saw it. None if the fact only expired."""


class KnownFact(Struct, frozen=True):
    fact: Fact
    shown_at: int
    value: Any


class NeededFacts:
    """The facts that one call needs. They are cached because several guards share them."""

    def __init__(self, ledger: Ledger, judgement: Judgement, truth: FactSource | None) -> None:
        self._entities = ledger.schema.entities
        self._ledger = ledger
        self._made = judgement.made
        self._seen = judgement.seen
        self._truth = truth
        self._so: dict[Fact, bool | None] = {}
        """Whether the agent saw the true value of a fact. None if the true value or the value seen is unknown."""
        self._no_better: bool | None = None
        self._standing: dict[Fact, Standing] = {}
        self._lost: dict[tuple[Fact, bool, bool], MissingFact] = {}

    def are_so(self, facts: Iterable[Fact]) -> bool:
        """Whether the values that the agent saw for these facts are all true."""
        known = self._so
        for fact in facts:
            so = known[fact] if fact in known else self._is_so(fact)
            if not so:
                return False
        return True

    def is_no_better_known(self) -> bool:
        """Whether the ground truth adds nothing, because it contradicts no seen value that a guard read."""
        if self._no_better is None:
            known, asked = self._so, self._seen.asked()
            self._no_better = asked is not None
            for fact in asked or ():
                if (known[fact] if fact in known else self._is_so(fact)) is False:
                    self._no_better = False
                    break
        return self._no_better

    def _is_so(self, fact: Fact) -> bool | None:
        assert self._truth is not None
        (entity, field), key = self._named(fact), fact.key or ()
        so: bool | None = False
        try:
            seen, true = self._seen.read(entity, key, field), self._truth.read(entity, key, field)
            so = None if seen is true is UNSEEN else is_equal(seen, true)
        except ValueError:
            pass
        self._so[fact] = so
        return so

    def standing(self, fact: Fact) -> Standing:
        """Return whether the agent had seen a fact and, if not, whether it had looked up the fact."""
        found = self._standing.get(fact)
        if found is None:
            found = "missing"
            if self.is_seen(fact):
                found = "seen"
            elif fact.key is not None:
                entity = self._entities[fact.entity]
                found = why_unread(self._ledger, entity, key_of(fact.key), fact.field, self._made) or found
            self._standing[fact] = found
        return found

    def asked(self, fact: Fact) -> str:
        """Return the name of the tool that was called to look up a fact. Empty if no tool for the fact was called."""
        answered = self._ledger.answers.by_tool()
        ways = self._ledger.schema.ways[fact.entity, fact.field]
        return next((way.tool for way in ways if way.tool in answered), "")

    def is_seen(self, fact: Fact) -> bool:
        """Whether the agent had seen a fact. A value of the wrong type counts as seen."""
        if fact.key is None:
            return False
        entity, field = self._named(fact)
        try:
            return is_known(self._seen.read(entity, fact.key, field))
        except ValueError:
            return True

    def lacks(self, facts: Iterable[Fact]) -> bool:
        """Whether the agent failed to look up at least one fact."""
        return any(self.standing(fact) in ("seen", "missing") for fact in facts)

    def known(self, facts: Iterable[Fact]) -> tuple[KnownFact, ...]:
        """Return those of the facts that a result showed, each with the step of the result."""
        found: list[KnownFact] = []
        for fact in facts:
            if fact.key is not None and self.standing(fact) == "seen":
                entity, field = self._named(fact)
                shown = self._seen.shown_at(entity, fact.key, field)
                if shown is not None:
                    found.append(KnownFact(fact, shown.delivered, shown.value))
        return tuple(found)

    def missing(self, fact: Fact, decisive: bool, is_wrong: bool = False) -> MissingFact:
        """Return why a fact was missing, and the look-up that would have shown it. For a wrong call, add what the user
        claimed.
        """
        known = (fact, decisive, is_wrong)
        found = self._lost.get(known)
        if found is None:
            found = self._lost[known] = self._missing(fact, decisive)
            if is_wrong and found.claimed_at is None and fact.key is not None:
                said = self._ledger.claim(self._named(fact)[1], UNSEEN, self._made.step)
                if said is not None:
                    found = self._lost[known] = replace(found, claimed_at=said[0], claim=said[1])
        return found

    def _missing(self, fact: Fact, decisive: bool) -> MissingFact:
        if fact.key is None:
            return MissingFact(fact, None, "never_seen", None, decisive)
        entity, field = self._named(fact)
        key = key_of(fact.key)
        made, ledger = self._made, self._ledger
        step, words = ledger.claim(field, self._value(entity, fact.key, field), made.step) or (None, "")
        shown = ledger.ever_visible(entity, key, fact.field, made)
        lookup = self._look_up(entity, key, fact.field, again=shown is not None)
        if shown is not None:
            by = ledger.changes.last(entity.name, key, fact.field, shown.as_of, made.step, known_at=made.step)
            is_pending = by is not None and ledger.calls[by].start == made.start
            return MissingFact(fact, lookup, "pending" if is_pending else "stale", step, decisive, words, by)
        return MissingFact(fact, lookup, "never_seen" if step is None else "claimed", step, decisive, words)

    def _look_up(self, entity: Entity, key: Key, field: str, *, again: bool) -> tuple[str, dict[str, Any]] | None:
        """Return a look-up that shows the field: the entity's own or, if that was made and failed to show it, another
        one.
        """
        named = dict(zip(entity.key, key, strict=False))
        first: tuple[str, dict[str, Any]] | None = None
        for way in self._ledger.schema.ways[entity.name, field]:
            arguments = way.given(named)
            if again or not self._ledger.answers.was_asked(way.tool, arguments, self._made):
                return way.tool, arguments
            first = first or (way.tool, arguments)
        return first

    def _value(self, entity: Entity, key: Key, field: Field) -> Any:
        if self._truth is None:
            return UNSEEN
        try:
            value = self._truth.read(entity, key, field)
            return value if is_known(value) else UNSEEN
        except ValueError:
            return UNSEEN

    def _named(self, fact: Fact) -> tuple[Entity, Field]:
        entity = self._entities[fact.entity]
        return entity, entity.named(fact.field)


def is_equal(one: Any, other: Any) -> bool:
    """Whether two values are equal for guards. `1`, `1.0` and `True` are different, even inside lists and records."""
    kind = one.__class__
    if kind is not other.__class__:
        return False
    if kind in NOT_KNOWN:
        return one is other is ABSENT
    if kind is list or kind is dict or kind is tuple:
        return one is other or (one == other and encode(one) == encode(other))
    return one == other


Part = Callable[[int], tuple[Ledger, Mapping[str, Any]]]
"""Returns the ledger and the context for the part of the conversation (before or after a handover) that contains a
step.
"""


class PolicyVerdict(Struct, frozen=True):
    """The verdict from one policy on a call."""

    policy: Policy
    strict: Verdict
    determined: Verdict
    evidence: Half
    world: Half
    missing: tuple[MissingFact, ...] = ()
    asks: tuple[Fact, ...] = ()
    known: tuple[KnownFact, ...] = ()
    depends_on_user: bool = False
    reason: Reason = Reason()
    could_deny: bool = False
    """Whether a fact denied the call or could have denied it. False if the call alone determined the verdict."""
    is_plain: bool = False
    """Whether the facts that were seen permit the call and there is nothing else to report."""

    @property
    def because(self) -> str:
        missing = [fact_record(missing.fact) for missing in self.missing]
        return policy_words({"reason": self.reason.record(), "missing": missing})


class CallVerdict(Struct, frozen=True):
    """The verdicts from all policies on a call, and the most severe of them."""

    made: CallRecord
    strict: Verdict
    determined: Verdict
    """The guards' verdict under the determined criterion, computed like `strict` and `policies`."""
    policies: tuple[PolicyVerdict, ...]
    fault: str = ""
    rules: tuple[RuleFinding, ...] = ()
    open_rules: tuple[RuleFinding, ...] = ()
    """The rules that the call may have broken. Whether it broke them depends on unknown values."""
    origins: tuple[ArgumentOrigin, ...] = ()
    """The origins of the arguments. Set if the pack uses origins and a policy or rule objects to the call."""


class Settling:
    """Settles the calls in one conversation against the ground-truth database, and applies their writes to it."""

    world: World | None = None
    """The ground-truth database as last read, without writes after the most recently judged call."""

    def __init__(self, pack: Pack, world: World | None, *, by_hindsight: bool) -> None:
        self._pack = pack
        self._start = world
        self._by_hindsight = by_hindsight
        self._unmoved: list[CallRecord] = []

    def moved(self) -> World | None:
        world, unmoved = self.world, self._unmoved
        if world is not None and unmoved:
            for made in unmoved:
                if made.is_perhaps_done():
                    world.unsettle(made.call)
                else:
                    world.apply(made.call, made.result)
            unmoved.clear()
        return world

    def settle(
        self, judgements: Sequence[Judgement], part: Part, note: Callable[[Exception, CallRecord], Fault]
    ) -> list[CallVerdict]:
        """Return the verdicts on these calls, in order. `note` is called to record an internal error."""
        world = self.world = self._start.fork() if self._start is not None else None
        self._unmoved.clear()
        verdicts: list[CallVerdict] = []
        # A generic tool's call may perform several actions.
        judged, writes = defaultdict[int, list[Judgement]](list), defaultdict[int, list[CallRecord]](list)
        for judgement in judgements:
            judged[judgement.made.step].append(judgement)
        for made in part(0)[0].writes:
            writes[made.step].append(made)
        for step in sorted(judged.keys() | writes.keys()):
            for judgement in judged.get(step, ()):
                ledger, context = part(step)
                truth = self._truth(ledger, judgement.made, context)
                try:
                    verdicts.append(settle_call(self._pack, ledger, judgement, truth))
                except Exception as error:
                    fault = note(error, judgement.made).because
                    verdicts.append(settle_call(self._pack, ledger, replace(judgement, fault=fault), truth))
            if world is not None:
                self._unmoved += [made for made in writes.get(step, ()) if made.counts()]
        return verdicts

    def _truth(self, ledger: Ledger, made: CallRecord, context: Mapping[str, Any]) -> TrueFacts | None:
        world = self.moved()
        is_known = world is not None or self._by_hindsight
        return TrueFacts(ledger, made, context, world) if is_known else None


def settle_call(pack: Pack, ledger: Ledger, judgement: Judgement, truth: FactSource | None) -> CallVerdict:
    """Return the verdict on one judged call. `truth` is None if there is no ground truth."""
    if judgement.fault:
        unjudged = tuple(
            PolicyVerdict(
                policy, "inconclusive", "inconclusive", "failed", "failed", reason=Reason("unjudged", judgement.fault)
            )
            for policy, _ in pack.by_tool.get(judgement.made.call.tool, ())
        )
        return CallVerdict(
            judgement.made,
            "inconclusive",
            "inconclusive",
            unjudged,
            judgement.fault,
            judgement.rules,
            judgement.open_rules,
        )
    case = _CallCase(ledger, judgement, truth)
    policies = tuple([case.settle(evidence) for evidence in judgement.evidence])
    case.close()
    open_rules, approved = judgement.open_rules, judgement.made.call.approved
    if approved is not None:
        policies = tuple([_answered(policy, approved) for policy in policies])
        open_rules = tuple([each for each in open_rules if each.rule.policy not in approved.policies])
    strict = worst([policy.strict for policy in policies])
    determined = worst([policy.determined for policy in policies])
    is_clean = determined == strict == "compliant" and not judgement.rules and not open_rules
    origins = () if is_clean or not pack.traces_values else tuple(judgement.seen.origins())
    return CallVerdict(judgement.made, strict, determined, policies, "", judgement.rules, open_rules, origins)


def _answered(said: PolicyVerdict, approved: Approved) -> PolicyVerdict:
    """Return a policy's verdict after a person has decided what it left undecided. A denial remains a denial."""
    if said.policy.id not in approved.policies or "deny" in (said.evidence, said.world):
        return said
    strict, determined = (_or_compliant(each) for each in (said.strict, said.determined))
    if (strict, determined) == (said.strict, said.determined):
        return said
    reason = Reason("approved", str(approved))
    return replace(said, strict=strict, determined=determined, asks=(), missing=(), reason=reason)


def _or_compliant(verdict: Verdict) -> Verdict:
    return verdict if verdict == "violation" else "compliant"


class _Completed(Struct, frozen=True):
    evidence: Completion
    world: Half
    because: str
    missing: tuple[Fact, ...]
    unread: tuple[Fact, ...]
    """Facts that the agent looked up but whose results were unreadable."""
    reads: tuple[Fact, ...]
    asked: tuple[Fact, ...]

    def is_clean(self) -> bool:
        return (
            self.evidence.outcome == "permit"
            and self.world in ("permit", "undetermined")
            and not self.missing
            and not self.asked
        )


class _CallCase:
    """One call with all its policies. A fact needed by several policies is looked up only once."""

    def __init__(self, ledger: Ledger, judgement: Judgement, truth: FactSource | None) -> None:
        self._made = judgement.made
        self._now = judgement.now
        self._truth = truth
        self._needed = NeededFacts(ledger, judgement, truth)
        self._inquiry: Inquiry | None = None
        """Holds the answers of the ground truth, shared by all guards that are evaluated on it."""

    def close(self) -> None:
        """Break a reference cycle after all policies are settled, so that the memory can be freed."""
        if self._inquiry is not None:
            self._inquiry.close()
            self._inquiry = None

    def settle(self, evidence: PolicyEvidence) -> PolicyVerdict:
        only = evidence.completions[0]
        if only.plain and only.outcome == "permit" and self._truth is not None and self._holds(only):
            # No fact from the user was needed, so there is only one combination.
            return _plain(evidence.policy, "permit", bool(only.reads))
        completed = [done for each in evidence.completions for done in self._complete(evidence.guard, each)]
        first = completed[0]
        if len(completed) == 1 and first.is_clean():
            return _plain(evidence.policy, first.world, bool(first.reads))
        lacks = self._needed.lacks
        hangs = any(is_hosts(str(fact)) for c in completed for fact in c.asked)
        determined = combine(
            [Cell(c.evidence.outcome, c.world, lacks(c.evidence.lacking)) for c in completed], hangs_on_host=hangs
        )
        strict = combine(
            [
                Cell("undetermined" if c.missing or c.unread else c.evidence.outcome, c.world, bool(c.missing))
                for c in completed
            ],
            hangs_on_host=hangs,
        )
        spoken = [completed[index] for index in strict.speaks_of]
        lacking = {fact for c in spoken for fact in c.evidence.lacking}
        missing = _unique([c.missing for c in spoken])
        return PolicyVerdict(
            evidence.policy,
            strict.verdict,
            determined.verdict,
            _agreed([c.evidence.outcome for c in completed]),
            _agreed([c.world for c in completed]),
            tuple([self._needed.missing(fact, fact in lacking, strict.verdict == "violation") for fact in missing]),
            _unique([c.asked for c in completed]),
            self._needed.known([fact for fact in _unique([c.reads for c in completed]) if fact not in missing]),
            strict.depends_on_user or determined.depends_on_user,
            self._or_unread(_reason(strict, completed, missing, first), strict, completed),
            any(c.reads or c.asked or "deny" in (c.evidence.outcome, c.world) for c in completed),
        )

    def _or_unread(self, reason: Reason, strict: CriterionVerdict, completed: Sequence[_Completed]) -> Reason:
        """Return the reason. If it contains no text, return the facts that the agent looked up but whose results were
        unreadable.
        """
        if strict.verdict != "inconclusive" or reason.words:
            return reason
        unread: list[UnreadFact] = []
        for fact in dict.fromkeys(_unique([c.unread for c in completed])):
            why = self._needed.standing(fact)
            if why not in ("seen", "missing"):
                tool = self._needed.asked(fact) if why == "not_mapped" else ""
                unread.append(UnreadFact(fact, why, tool))
        return Reason("unread", unread=tuple(unread)) if unread else reason

    def _complete(self, guard: Guard, completion: Completion) -> list[_Completed]:
        reads, because = completion.reads, completion.because
        is_same = completion.outcome == "failed" or (self._truth is not None and self._holds(completion))
        if is_same or self._truth is None:
            half: Half = completion.outcome if is_same else "undetermined"
            return [self._completed(completion, half, because, reads, completion.asked)]
        return [
            # If the guard reaches a fact that the ground truth does not contain, the strict criterion uses the guard's
            # path through the facts seen.
            self._completed(
                completion,
                world.outcome,
                world.because or because,
                world.reads if self._is_whole(world) else reads,
                _unique((completion.asked, world.asked)),
            )
            for world in self._ask_world(guard, completion.assume)
        ]

    def _completed(
        self, evidence: Completion, world: Half, because: str, reads: tuple[Fact, ...], asked: tuple[Fact, ...]
    ) -> _Completed:
        missing: list[Fact] = []
        unread: list[Fact] = []
        for fact in reads:
            standing = self._needed.standing(fact)
            if standing != "seen":
                (missing if standing == "missing" else unread).append(fact)
        unread += [fact for fact in evidence.lacking if self._needed.standing(fact) not in ("seen", "missing")]
        return _Completed(evidence, world, because, tuple(missing), tuple(unread), reads, asked)

    def _holds(self, completion: Completion) -> bool:
        """Whether the ground truth contradicts no value that the guard read, so that the guard need not run again."""
        needed = self._needed
        return (completion.plain and needed.are_so(completion.reads)) or needed.is_no_better_known()

    def _ask_world(self, guard: Guard, assume: Assumptions) -> tuple[Completion, ...]:
        if self._inquiry is None:
            call, tool, truth = self._made.call, self._made.tool, self._truth
            assert truth is not None
            arguments = tool.fitted(call.arguments) if tool is not None else call.arguments
            self._inquiry = Inquiry(arguments, truth, tool=call.tool, now=self._now, seen=self._needed.is_seen)
        return self._inquiry.ask(guard, assume)

    def _is_whole(self, world: Completion) -> bool:
        """Whether the ground truth contained every fact that the guard read. It stops at an unknown fact, so check the
        last one.
        """
        return not world.reads or self._inquiry is None or self._inquiry.knows(world.reads[-1])


_NO_REASON = Reason()
_MISSING = Reason("missing")


def _plain(policy: Policy, world: Half, could_deny: bool) -> PolicyVerdict:
    return PolicyVerdict(
        policy, "compliant", "compliant", "permit", world, (), (), (), False, _NO_REASON, could_deny, is_plain=True
    )


def _agreed(halves: Sequence[Half]) -> Half:
    return halves[0] if len(set(halves)) == 1 else "undetermined"


def _reason(
    strict: CriterionVerdict, completed: Sequence[_Completed], missing: Sequence[Fact], first: _Completed
) -> Reason:
    denials = [c.because for c in completed if c.because and "deny" in (c.world, c.evidence.outcome)]
    match strict.verdict:
        case "violation":
            return Reason("denied", denials[0] if denials else first.because)
        case "near_miss" | "uninformed":
            return _MISSING if missing else Reason("against_evidence", first.evidence.because)
        case "inconclusive":
            if failed := [c.because for c in completed if "failed" in (c.evidence.outcome, c.world)]:
                return Reason("failed", failed[0])
            return Reason("user", denials[0]) if denials else Reason("unjudged", first.because)
        case "compliant":
            return _NO_REASON


def _unique(parts: Sequence[tuple[Fact, ...]]) -> tuple[Fact, ...]:
    return parts[0] if len(parts) == 1 else tuple(dict.fromkeys(chain.from_iterable(parts)))
