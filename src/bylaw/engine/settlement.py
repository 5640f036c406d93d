"""Settles one judged call: the world half, both criteria, the missing facts and why they were missing."""

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import replace

from bylaw.engine.claim import claim
from bylaw.engine.conduct import RuleFinding
from bylaw.engine.judgement import Judgement, PolicyEvidence
from bylaw.engine.pack import Pack
from bylaw.engine.reason import Reason, fact_record
from bylaw.engine.verdict import Cell, Half, Ruling, Verdict, combine, worst
from bylaw.engine.wording import policy_words
from bylaw.facts.call_record import CallRecord
from bylaw.facts.entity import EXISTS, UNSEEN, Entity, Fact, FactSource, Field, Key, is_known
from bylaw.facts.ledger import Ledger
from bylaw.facts.observation import Unread
from bylaw.facts.unread import why_unread
from bylaw.facts.value import key_of
from bylaw.guard import Assumptions, Completion, Guard, Inquiry
from bylaw.policy.statement import Policy

WhyMissing = Literal["never_seen", "stale", "pending", "claimed"]


class MissingFact(Struct, frozen=True):
    """A system fact the call needed and the agent had not seen."""

    fact: Fact
    lookup: tuple[str, dict[str, Any]] | None
    """The read call that would have shown it."""
    reason: WhyMissing
    claimed_at: int | None
    decisive: bool = False
    """The determined criterion lacks it too."""
    claim: str = ""
    """The words of the user's message that state its value."""
    stale_by: int | None = None
    """Step of the write that changed it after it was seen; None where it had only grown old."""


class KnownFact(Struct, frozen=True):
    """A system fact the call needed and the agent had seen."""

    fact: Fact
    shown_at: int
    value: Any


class PolicyVerdict(Struct, frozen=True):
    """One policy's word on a call."""

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
    """The call alone did not settle it: some fact could have made it deny, or something did."""
    is_plain: bool = False
    """Permitted on what was seen, with nothing more to tell."""

    @property
    def because(self) -> str:
        """The reason in words."""
        missing = [fact_record(missing.fact) for missing in self.missing]
        return policy_words({"reason": self.reason.record(), "missing": missing})


class CallVerdict(Struct, frozen=True):
    """Every policy's word on a call, and the gravest of them."""

    made: CallRecord
    strict: Verdict
    determined: Verdict
    """Of the guards alone, like `strict` and `policies`."""
    policies: tuple[PolicyVerdict, ...]
    fault: str = ""
    rules: tuple[RuleFinding, ...] = ()
    """The rules that the call broke."""
    open_rules: tuple[RuleFinding, ...] = ()
    """The rules that it broke or not, hanging on what is not known."""


def settle_call(pack: Pack, ledger: Ledger, judgement: Judgement, truth: FactSource | None) -> CallVerdict:
    """The verdict on one judged call. `truth` is None where nothing is known of the world."""
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
    case = _CallCase(pack, ledger, judgement, truth)
    policies = tuple([case.settle(evidence) for evidence in judgement.evidence])
    case.close()
    strict = worst([policy.strict for policy in policies])
    determined = worst([policy.determined for policy in policies])
    return CallVerdict(judgement.made, strict, determined, policies, "", judgement.rules, judgement.open_rules)


class _Completed(Struct, frozen=True):
    """One completion of the user facts, with both halves run."""

    evidence: Completion
    world: Half
    because: str
    missing: tuple[Fact, ...]
    reads: tuple[Fact, ...]
    asked: tuple[Fact, ...]

    def is_clean(self) -> bool:
        """Permitted on what was seen, nothing missing, and not denied by what is true."""
        return (
            self.evidence.outcome == "permit"
            and self.world in ("permit", "undetermined")
            and not self.missing
            and not self.asked
        )


class _CallCase:
    """One call and all its policies; what they ask for together is found once."""

    def __init__(self, pack: Pack, ledger: Ledger, judgement: Judgement, truth: FactSource | None) -> None:
        self._entities = pack.schema.entities
        self._ledger = ledger
        self._made = judgement.made
        self._seen = judgement.seen
        self._now = judgement.now
        self._truth = truth
        self._inquiry: Inquiry | None = None
        """The guards that are run over the world share what it says."""
        self._agreed: dict[Fact, bool] = {}
        self._sight: dict[Fact, bool] = {}
        self._read: dict[Fact, Unread | None] = {}
        self._found: dict[Fact, KnownFact | None] = {}
        self._lost: dict[Fact, MissingFact] = {}

    def close(self) -> None:
        """All policies are settled: what asks back is let go, or all would wait to be collected."""
        if self._inquiry is not None:
            self._inquiry.close()
            self._inquiry = None

    def settle(self, evidence: PolicyEvidence) -> PolicyVerdict:
        """Both criteria over every completion."""
        only = evidence.completions[0]
        if only.outcome == "permit" and self._holds(only):
            # Nothing was asked of the user, so there is no other completion.
            return _plain(evidence.policy, "permit", bool(only.reads))
        completed = [done for completion in evidence.completions for done in self._complete(evidence.guard, completion)]
        if len(completed) == 1 and completed[0].is_clean():
            return _plain(evidence.policy, completed[0].world, bool(completed[0].reads))
        determined = combine([Cell(c.evidence.outcome, c.world, self._lacks(c.evidence)) for c in completed])
        strict = combine(
            [
                Cell(
                    "undetermined" if c.missing or self._unread_of(c) else c.evidence.outcome,
                    c.world,
                    bool(c.missing),
                )
                for c in completed
            ]
        )
        spoken = [completed[index] for index in strict.speaks_of]
        lacking = {fact for c in spoken for fact in c.evidence.lacking}
        missing = _unique(fact for c in spoken for fact in c.missing)
        gone = set(missing)
        reads = _unique(fact for c in completed for fact in c.reads if fact not in gone)
        first = completed[0]
        return PolicyVerdict(
            evidence.policy,
            strict.verdict,
            determined.verdict,
            _agreed([c.evidence.outcome for c in completed]),
            _agreed([c.world for c in completed]),
            tuple(self._missing(fact, fact in lacking) for fact in missing),
            _unique(fact for c in completed for fact in c.asked),
            tuple(known for fact in reads if (known := self._known(fact)) is not None),
            strict.depends_on_user or determined.depends_on_user,
            self._or_unread(_reason(strict, completed, missing, first), strict, completed),
            any(c.reads or c.asked or "deny" in (c.evidence.outcome, c.world) for c in completed),
        )

    def _or_unread(self, reason: Reason, strict: Ruling, completed: Sequence[_Completed]) -> Reason:
        """The reason; where it has no words, the facts that were looked up in answers that we cannot read."""
        if strict.verdict != "inconclusive" or reason.words:
            return reason
        lost = _unique(fact for c in completed for fact in self._unread_of(c))
        gone = tuple([fact for fact in lost if self._unread(fact) == "not_captured"])
        odd = tuple([fact for fact in lost if self._unread(fact) != "not_captured"])
        return Reason("unread", not_captured=gone, not_readable=odd) if lost else reason

    def _unread_of(self, completed: _Completed) -> list[Fact]:
        """The facts of a completion that the agent looked up, in answers that we cannot read."""
        facts = (*completed.reads, *completed.evidence.lacking)
        return [fact for fact in facts if not self._is_seen(fact) and self._is_unread(fact)]

    def _complete(self, guard: Guard, completion: Completion) -> list[_Completed]:
        if self._truth is None or completion.outcome == "failed":
            missing = tuple(fact for fact in completion.reads if self._is_missing(fact))
            half: Half = "failed" if completion.outcome == "failed" else "undetermined"
            return [_Completed(completion, half, completion.because, missing, completion.reads, completion.asked)]
        if self._holds(completion):
            return [_Completed(completion, completion.outcome, completion.because, (), completion.reads, ())]
        return [self._completed(completion, world) for world in self._ask_world(guard, completion.assume)]

    def _holds(self, completion: Completion) -> bool:
        """Whether the guard would go the same way over the world: all it read is so. Then it need not be run again."""
        return completion.plain and self._truth is not None and all(map(self._agrees, completion.reads))

    def _agrees(self, fact: Fact) -> bool:
        agreed = self._agreed.get(fact)
        if agreed is None:
            assert self._truth is not None
            name, key, of = fact
            entity = self._entities[name]
            field, key = EXISTS if of == "exists" else entity.fields[of], key or ()
            try:
                agreed = is_equal(self._seen.read(entity, key, field), self._truth.read(entity, key, field))
            except ValueError:
                agreed = False
            self._agreed[fact] = agreed
        return agreed

    def _ask_world(self, guard: Guard, assume: Assumptions) -> tuple[Completion, ...]:
        if self._inquiry is None:
            call, tool, truth = self._made.call, self._made.tool, self._truth
            assert truth is not None
            arguments = tool.fitted(call.arguments) if tool is not None else call.arguments
            self._inquiry = Inquiry(arguments, truth, tool=call.tool, now=self._now, seen=self._is_seen)
        return self._inquiry.ask(guard, assume)

    def _completed(self, evidence: Completion, world: Completion) -> _Completed:
        # Where the world run itself meets an unknown, strict falls back on the path over what was seen.
        reads = world.reads if self._is_whole(world) else evidence.reads
        missing = tuple(fact for fact in reads if self._is_missing(fact))
        asked = _unique((*evidence.asked, *world.asked))
        return _Completed(evidence, world.outcome, world.because or evidence.because, missing, reads, asked)

    def _is_whole(self, world: Completion) -> bool:
        """Whether the world knew every fact on its path; an unknown one is always the last read."""
        return not world.reads or self._inquiry is None or self._inquiry.knows(world.reads[-1])

    def _lacks(self, evidence: Completion) -> bool:
        """Whether something is lacking that the agent did not look up."""
        return any(not self._is_unread(fact) for fact in evidence.lacking)

    def _is_missing(self, fact: Fact) -> bool:
        return not self._is_seen(fact) and not self._is_unread(fact)

    def _is_unread(self, fact: Fact) -> bool:
        """Whether the agent looked the fact up and was answered, in a way that was not recorded or cannot be read."""
        return self._unread(fact) is not None

    def _unread(self, fact: Fact) -> Unread | None:
        if fact.key is None:
            return None
        if fact not in self._read:
            entity, _ = self._named(fact)
            self._read[fact] = why_unread(self._ledger, entity, key_of(fact.key), fact.field, self._made)
        return self._read[fact]

    def _is_seen(self, fact: Fact) -> bool:
        seen = self._sight.get(fact)
        if seen is None:
            seen = self._sight[fact] = self._look(fact)
        return seen

    def _look(self, fact: Fact) -> bool:
        if fact.key is None:
            return False
        entity, field = self._named(fact)
        try:
            return is_known(self._seen.read(entity, fact.key, field))
        except ValueError:
            return True

    def _named(self, fact: Fact) -> tuple[Entity, Field]:
        entity = self._entities[fact.entity]
        return entity, EXISTS if fact.field == "exists" else entity.fields[fact.field]

    def _missing(self, fact: Fact, decisive: bool) -> MissingFact:
        missing = self._lost.get(fact)
        if missing is None:
            missing = self._lost[fact] = self._lack(fact)
        return replace(missing, decisive=True) if decisive else missing

    def _lack(self, fact: Fact) -> MissingFact:
        entity, field = self._named(fact)
        if fact.key is None:
            return MissingFact(fact, None, "never_seen", None)
        key = key_of(fact.key)
        made = self._made
        step, words = claim(field, self._value(entity, fact, field), self._ledger.said, made.step) or (None, "")
        shown = self._ledger.ever_visible(entity, key, fact.field, made)
        lookup = self._look_up(entity, key, fact.field, again=shown is not None)
        if shown is not None:
            by = self._ledger.changes.last(entity.name, key, fact.field, shown.as_of, made.step, known_at=made.step)
            is_pending = by is not None and self._ledger.calls[by].start == made.start
            return MissingFact(fact, lookup, "pending" if is_pending else "stale", step, claim=words, stale_by=by)
        return MissingFact(fact, lookup, "never_seen" if step is None else "claimed", step, claim=words)

    def _look_up(self, entity: Entity, key: Key, field: str, *, again: bool) -> tuple[str, dict[str, Any]] | None:
        """The read call to make: the entity's own, unless that was made and did not show the field and another may."""
        named = dict(zip(entity.key, key, strict=False))
        ways = [
            (way.tool, {argument: named.get(part) for argument, part in way.arguments.items()})
            for way in self._ledger.schema.ways_to(entity, field)
        ]
        fresh = (way for way in ways if again or not self._ledger.answers.was_asked(*way, self._made))
        return next(fresh, ways[0] if ways else None)

    def _value(self, entity: Entity, fact: Fact, field: Field) -> Any:
        if self._truth is None or fact.key is None:
            return UNSEEN
        try:
            value = self._truth.read(entity, fact.key, field)
            return value if is_known(value) else UNSEEN
        except ValueError:
            return UNSEEN

    def _known(self, fact: Fact) -> KnownFact | None:
        if fact not in self._found:
            self._found[fact] = self._find(fact)
        return self._found[fact]

    def _find(self, fact: Fact) -> KnownFact | None:
        if fact.key is None:
            return None
        entity, field = self._named(fact)
        shown = self._seen.shown_at(entity, fact.key, field)
        return None if shown is None else KnownFact(fact, shown.delivered, shown.value)


def is_equal(one: Any, other: Any) -> bool:
    """Whether no guard can tell the two values apart: `1`, `1.0` and `True` are three values, at any depth."""
    if one.__class__ is not other.__class__ or not is_known(one):
        return False
    if isinstance(one, (list, dict, tuple)):
        return one is other or (one == other and encode(one) == encode(other))
    return one == other


_NO_REASON = Reason()


def _plain(policy: Policy, world: Half, could_deny: bool) -> PolicyVerdict:
    return PolicyVerdict(
        policy, "compliant", "compliant", "permit", world, (), (), (), False, _NO_REASON, could_deny, is_plain=True
    )


def _agreed(halves: Sequence[Half]) -> Half:
    return halves[0] if all(half == halves[0] for half in halves) else "undetermined"


def _reason(strict: Ruling, completed: Sequence[_Completed], missing: Sequence[Fact], first: _Completed) -> Reason:
    denials = [c.because for c in completed if c.because and "deny" in (c.world, c.evidence.outcome)]
    match strict.verdict:
        case "violation":
            return Reason("denied", denials[0] if denials else first.because)
        case "near_miss" | "uninformed":
            return Reason("missing") if missing else Reason("against_evidence", first.evidence.because)
        case "inconclusive":
            if failed := [c.because for c in completed if "failed" in (c.evidence.outcome, c.world)]:
                return Reason("failed", failed[0])
            return Reason("user", denials[0]) if denials else Reason("unjudged", first.because)
        case "compliant":
            return Reason()


def _unique(facts: Any) -> tuple[Fact, ...]:
    return tuple(dict.fromkeys(facts))
