"""Evaluates predicates that depend on more than the act. Their values come from facts seen, a guard, the code that
checks consent, or an answerer (a model or a person).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from bylaw.consent import ConsentWitness, OpenConsent
from bylaw.engine.judgement import PolicyEvidence
from bylaw.engine.verdict import fact_record
from bylaw.facts.call_record import CallRecord, record_of
from bylaw.facts.entity import Field
from bylaw.facts.ledger import Ledger
from bylaw.facts.seen import SeenFacts, Testimony
from bylaw.facts.value import UNSEEN
from bylaw.guard import Completion, evaluate, evaluate_condition
from bylaw.pack import Pack
from bylaw.pack.predicate import Predicate, Witness
from bylaw.rule.monitor import Act
from bylaw.trace.event import Call, Event
from bylaw.trace.recorded_value import utc


class AnswerQuote(Struct, frozen=True):
    """A quote from the conversation that supports an answer."""

    step: int
    text: str


@runtime_checkable
class TellsUnanswered(Protocol):
    """An answerer that reports which questions it left unanswered, so that they are not mistaken for clean results."""

    def unanswered(self) -> list[str]:
        """Return one sentence per unanswered question. Empty if all questions were answered."""
        ...


class Answered(Struct, frozen=True, omit_defaults=True):
    """An answer about a predicate at an act, or about a fact that the user stated."""

    predicate: str
    """The predicate or the fact, such as `Request.reason`."""
    step: int
    value: bool | str | None
    queries: int = 0
    quotes: tuple[AnswerQuote, ...] = ()
    because: str = ""


UNSAID = "not stated"
"""The answer that the user stated no value for a fact that may be None. The value of the fact is then None."""

AnswerPredicate = Callable[[str, Act], "bool | Answered | None"]
"""Decides, by a model or a person, whether a predicate is true at an act. Used if code cannot decide."""


@runtime_checkable
class SettlesConsent(Protocol):
    """An answerer that can decide undecided consent, given the question and the user's reply."""

    def consented(self, predicate: Predicate, act: Act, question: OpenConsent) -> Answered:
        """Decide whether the user agreed to the act."""
        ...


@runtime_checkable
class ReadsStatements(Protocol):
    def stated(self, facts: Mapping[str, Field], act: Act) -> Mapping[str, Answered]:
        """Return the user's statements before the act about facts that only the user knows."""
        ...


class PredicateValues:
    """The values of predicates at the acts of one conversation. Each value is based on the events before the act."""

    waits = False
    """If True, no new question is asked. Earlier answers are still used."""
    record: CallRecord | None = None
    """The current call, with its guards' results if they have run."""
    evidence: tuple[PolicyEvidence, ...] = ()
    seen: SeenFacts | None = None
    """What the agent had seen before the current call. Set while the call is judged."""
    at = 0
    """The number of announced events that the rules have processed."""
    _coming: Sequence[Event] = ()
    """The announced events, the step of the first one, and the number of them that the ledger has processed."""
    _first = _taken = 0
    _made: CallRecord | None = None
    """The record of the ledger's next event, if that event is a judged call."""

    def __init__(
        self,
        pack: Pack,
        ledger: Ledger,
        context: Mapping[str, Any],
        answer: AnswerPredicate | None = None,
        *,
        known: Iterable[Answered] = (),
        is_live: bool = False,
    ) -> None:
        self._answer = answer
        # Checking for a protocol is slow, so it is done once per session.
        self._consented = answer.consented if answer is not None and isinstance(answer, SettlesConsent) else None
        self._reads = answer if answer is not None and isinstance(answer, ReadsStatements) else None
        self._is_live = is_live
        self._spares_calls = is_live and answer is not None
        self.answered: dict[tuple[str, int], Answered] = {}
        """Answers so far, keyed by predicate and step."""
        self._stated: dict[tuple[str, int], Answered] = {}
        """Answers about the user's statements, including facts that no guard has read yet."""
        for each in known:
            self.answered[each.predicate, each.step] = each
        self._pack = pack
        self._ledger = ledger
        self._context = context
        self._witnesses: dict[str, Witness] = {}
        if predicates := pack.book.predicates:
            for name, each in predicates.items():
                if each.witness is not None:
                    self._witnesses[name] = each.witness(ledger)

    def begin(self, step: int, events: Sequence[Event], made: CallRecord | None) -> None:
        """Announce events for the rules. The ledger and the witnesses process them when needed or in `finish`.

        A witness derives a predicate's value from the events, for example whether the user consented. If
        the first event is a judged call, `made` is its record.
        """
        self._coming, self._first, self._taken, self._made = events, step, 0, made

    def consider(
        self, made: CallRecord, evidence: tuple[PolicyEvidence, ...] = (), seen: SeenFacts | None = None
    ) -> None:
        """Make this call the current one. `evidence` and `seen` are set while the call is judged."""
        self.record, self.evidence, self.seen = made, evidence, seen

    def finish(self) -> None:
        """Pass the remaining announced events to the ledger and the witnesses. Called after the rules have processed
        the events.
        """
        self._take_in(len(self._coming))
        self._coming, self._made = (), None

    def witness(self, step: int, event: Event) -> None:
        """Pass an event that the ledger has already processed to the witnesses."""
        for witness in self._witnesses.values():
            witness.observe(step, event)

    def _take_in(self, until: int) -> None:
        start = self._taken
        if start < until:
            step = self._first + start
            events = self._coming if until - start == len(self._coming) else self._coming[start:until]
            self._ledger.observe_all(step, events, self._made)
            for witness in self._witnesses.values():
                for place, event in enumerate(events, step):
                    witness.observe(place, event)
            self._taken, self._made = until, None

    def _come_to(self, place: int) -> None:
        self._take_in(place)
        call = self._coming[place]
        if isinstance(call, Call):
            made = self._made = self._made or self._ledger.record(call, self._first + place)
            if self.record is not made:
                self.consider(made)

    def ask(self, predicate: Predicate, act: Act) -> bool | None:
        """Return the value of a predicate at an act, or None if unknown."""
        if self._coming:
            self._come_to(self.at)
        value = self._find(predicate, act)
        if value is not None:
            return value
        # A judgement looks ahead, so an act may be evaluated more than once.
        known = self.answered.get((predicate.name, act.step))
        if known is not None:
            return _truth(known) if self._counts(predicate) else None
        waits = self.waits or (self._spares_calls and act.tool is not None)
        return None if waits or not self.may_answer(predicate, act) else self.answer(predicate, act)

    def may_answer(self, predicate: Predicate, act: Act) -> bool:
        """Whether the answerer may be asked about this act and has not been asked yet."""
        is_new = (predicate.name, act.step) not in self.answered
        return self._answer is not None and is_new and self._counts(predicate)

    def _counts(self, predicate: Predicate) -> bool:
        """Whether answers count. Live, only the user can consent, unless the pack declares otherwise."""
        if predicate.way != "consented":
            return predicate.way == "question"
        return predicate.consent != "card" and (predicate.model_settles or not self._is_live)

    def answer(self, predicate: Predicate, act: Act) -> bool | None:
        """Return the answerer's value for a predicate. Each question is asked only once."""
        assert self._answer is not None
        question = self.question(predicate, act) if predicate.way == "consented" else None
        if question is not None and self._consented is not None:
            said = self._consented(predicate, act, question)
        else:
            # If the user was never asked, a model cannot decide that there was consent.
            said = self._answer(predicate.name, act) if question or predicate.way != "consented" else None
        found = said if isinstance(said, Answered) else Answered(predicate.name, act.step, said)
        self.answered[predicate.name, act.step] = found
        return _truth(found)

    @property
    def reads_statements(self) -> bool:
        """Whether a model reads the user's statements. A live shield asks the user instead of a model."""
        return self._reads is not None and not self._is_live

    def stated(self, name: str, field: Field, record: CallRecord) -> Any:
        """Return the value that a model finds in the user's statements before a call. UNSEEN if the statements are
        unclear.
        """
        assert self._reads is not None
        at = name, record.step
        found = self.answered.get(at)
        if found is None:
            if at not in self._stated:
                act = Act(record.step, record.call.tool, dict(record.call.arguments), "", (), (), 1, 0, False, "")
                facts = {name: field, **self._unread(record)}
                self._stated |= {(each, record.step): said for each, said in self._reads.stated(facts, act).items()}
            found = self.answered[at] = self._stated[at]
        if field.nullable and found.value == UNSAID:
            return None if self._ledger.has_heard_all(record.step) else UNSEEN
        return UNSEEN if found.value is None else found.value

    def _unread(self, record: CallRecord) -> dict[str, Field]:
        guards = self._pack.by_tool.get(record.call.tool, ())
        mentioned = frozenset[str]().union(*(guard.attributes for _, guard in guards))
        testimony = Testimony(self._ledger, record, self._context)
        return {
            f"{entity.name}.{field.name}": field
            for entity in self._pack.schema.entities.values()
            if not entity.key and entity.name in mentioned
            for field in entity.fields.values()
            if field.origin == "user" and field.name in mentioned and testimony.read(field, is_checked=True) is UNSEEN
        }

    @property
    def consents(self) -> list[ConsentWitness]:
        """The consents that the pack's predicates require."""
        return [each for each in self._witnesses.values() if isinstance(each, ConsentWitness)]

    def question(self, predicate: Predicate, act: Act) -> OpenConsent | None:
        """Return the question that a model or a person must answer about undecided consent to an act, or None if there
        is none.
        """
        witness = self._witnesses.get(predicate.name)
        return witness.question(act, self._record(act)) if isinstance(witness, ConsentWitness) else None

    def tell(self, predicate: Predicate, act: Act) -> Mapping[str, Any] | None:
        """Return details about the value of a predicate at an act, or None if there are none."""
        said = self.answered.get((predicate.name, act.step))
        if said is not None and said.value is not None and said.queries:
            told: dict[str, Any] = {"reason": "model", "holds": said.value}
            if said.because and not self._is_live:
                told["words"] = said.because
            return told | ({"answered_at": said.quotes[-1].step} if said.quotes else {})
        if predicate.witness is not None:
            return self._witnesses[predicate.name].tell(act, self._record(act))
        completions = self._completions(predicate, act)
        outcomes = {each.outcome for each in completions}
        if predicate.guard and outcomes == {"deny"}:
            return {"reason": "denied", "policy": predicate.guard, "words": completions[0].because}
        needed = dict.fromkeys(fact for each in completions for fact in (*each.lacking, *each.asked))
        return {"reason": "not_looked_up", "facts": [fact_record(fact) for fact in needed]} if needed else None

    def _find(self, predicate: Predicate, act: Act) -> bool | None:
        if predicate.witness is not None:
            return self._witnesses[predicate.name].ask(act, self._record(act))
        if predicate.code is not None:
            record = self._record(act)
            now = self._pack.now or utc(record.call.time)
            return evaluate_condition(predicate.code, {"act": act.record()}, self._facts_for(record), now=now)
        if predicate.guard in self._pack.guards and act.tool not in self._pack.policies[predicate.guard].tools:
            return False
        return _denies(self._completions(predicate, act))

    def _completions(self, predicate: Predicate, act: Act) -> Sequence[Completion]:
        record = self._record(act)
        call = record.call
        now = self._pack.now or utc(call.time)
        seen = self._facts_for(record)
        if predicate.code is not None:
            return evaluate(predicate.code.guard, {"act": act.record()}, seen, now=now)
        guard = self._pack.guards.get(predicate.guard)
        if guard is None or act.tool not in self._pack.policies[predicate.guard].tools:
            return ()
        if call.fault or record.tool is None:
            return ()
        for said in self.evidence if record is self.record else ():
            if said.policy.id == predicate.guard:
                return said.completions
        return evaluate(guard, record.tool.fitted(call.arguments), seen, tool=call.tool, now=now)

    def _facts_for(self, record: CallRecord) -> SeenFacts:
        if self.seen is not None and record is self.record:
            return self.seen
        return SeenFacts(self._ledger, record, self._context)

    def _record(self, act: Act) -> CallRecord:
        record = self.record
        # A message sees the same results as a call at the same position.
        return record if record is not None and record.step == act.step else record_of(_NONE, act.step, act.step, None)


_NONE = Call("", {})


def _denies(completions: Sequence[Completion]) -> bool | None:
    outcomes = {completion.outcome for completion in completions}
    return {frozenset({"deny"}): True, frozenset({"permit"}): False}.get(frozenset(outcomes))


def _truth(answered: Answered) -> bool | None:
    return answered.value if isinstance(answered.value, bool) else None
