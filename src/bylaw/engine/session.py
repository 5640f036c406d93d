"""One conversation under one pack, processed event by event. Audit and shield share this engine.

`judge(call)` returns the final judgement by guards and rules, based on what was seen before the call. `settle()`
compares all judged calls with the ground truth, which the strict criterion needs. `findings()` lists the rules broken
so far by any act.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from bylaw.consent import card_facts
from bylaw.engine.conduct import ActFindings, Conduct, RuleFinding
from bylaw.engine.handover import Former, HandedConduct, silenced
from bylaw.engine.judgement import Fault, Judgement, PolicyEvidence, SeenTogether, fault_of
from bylaw.engine.predicate_values import Answered, AnswerPredicate, PredicateValues
from bylaw.engine.request import Delegating, Granted, RequestModel, Requests
from bylaw.engine.settlement import CallVerdict, Settling
from bylaw.facts.call_record import CallRecord, record_of
from bylaw.facts.ledger import Ledger
from bylaw.facts.seen import SeenFacts
from bylaw.facts.world import World
from bylaw.guard import Inquiry
from bylaw.pack import Pack
from bylaw.policy.tool import Tool
from bylaw.rule.circuit import Assessment, Evidence
from bylaw.rule.monitor import Act
from bylaw.text.condition import takes_back
from bylaw.text.cost import spend
from bylaw.trace.event import Call, Card, Event, LookedUp, Message, Result
from bylaw.trace.recorded_value import utc

if TYPE_CHECKING:
    from bylaw.engine.acting import ActedCall, Acting

Mode = Literal["snapshot", "hindsight", "none"]
OBSERVING = 20
"""The cost, in evaluation steps, of processing one event."""
JUDGING = 300
"""The cost, in evaluation steps, of judging one call without its guards."""
BESIDE = 60
"""The additional cost, in evaluation steps, of deciding a call. It is added for each other call in the turn."""


class Ahead(Struct, frozen=True):
    call: Call
    conduct: Conduct | HandedConduct
    said: list[ActFindings]


class Session:
    _step = 0
    _conduct: Conduct | HandedConduct | None = None
    _ahead: Ahead | None = None
    """The state of the rules as it would be after the most recently judged call."""
    _disbelieved: Call | None = None
    """The most recently judged call, if its result claims a refusal although every policy permits it."""
    requests: Requests | None = None
    """What the user's words allow. Set if the pack uses requests."""
    acting: "Acting | None" = None

    def __init__(
        self,
        pack: Pack,
        *,
        world: World | None = None,
        mode: Mode = "hindsight",
        context: Mapping[str, Any] | None = None,
        answer: AnswerPredicate | None = None,
        is_live: bool = False,
        known: Iterable[Answered] = (),
        read_request: RequestModel | None = None,
        granted: Iterable[Granted] = (),
        delegation: Delegating | None = None,
    ) -> None:
        """`answer` decides the predicates that code cannot decide, at every act where a rule depends on one. `known`
        contains its earlier answers.

        `read_request` determines what the user's words allow, and `granted` contains its earlier answers. Without
        `read_request`, requests are undecided. `delegation` overrides the pack's setting for actions that a document
        requests.

        A live session asks only the questions on which its decision depends, the most decisive one first. It asks about
        consent only if the pack lets a model decide consent.
        """
        self.pack = pack
        self._start, self._mode = world, mode
        self._answer, self._is_live = answer, is_live
        self._read_request = read_request
        self._delegation: Delegating = delegation or pack.postures.delegation
        self._judged: list[Judgement] = []
        self._sparing = is_live and answer is not None
        self._former: list[Former] = []
        """The parts of the conversation with earlier principals."""
        self._begin(dict(context) if context else {}, known, granted)
        if pack.schema.actions is not None:
            from bylaw.engine.acting import Acting

            by_name = [each for each in pack.book.predicates.values() if each.way == "tool"]
            named = {tool for tool in pack.schema.actions.by_tool if any(each.names(tool, "") for each in by_name)}
            self.acting = Acting(pack.schema.actions, pack.schema, named)
        if pack.book.rules:
            self._conduct = Conduct(pack.ready_rules, self.values.ask, self.values.tell)
        self.faults: list[Fault] = []
        """Internal errors, each recorded at the call that it made inconclusive."""
        self._said: list[ActFindings] = []

    def _begin(self, context: dict[str, Any], known: Iterable[Answered], granted: Iterable[Granted]) -> None:
        pack, self._context = self.pack, context
        self.ledger = Ledger(pack.schema, context)
        if pack.reads_requests:
            read, delegation = self._read_request, self._delegation
            self.requests = Requests(self.ledger, context, read, delegation=delegation, known=granted)
            self.ledger.requests = self.requests
        elif pack.traces_values:
            self.ledger.provenance(context)
        self.values = PredicateValues(pack, self.ledger, context, self._answer, known=known, is_live=self._is_live)
        if self.values.reads_statements:
            self.ledger.stated = self.values.stated

    def observe(self, event: Event) -> None:
        """Process the next event of a live agent. It is parsed immediately, because no call is waiting for a decision
        now.
        """
        self.observe_all((event,))
        # An error in parsing is ignored here. It is raised again and reported when a guard or rule needs the result.
        if isinstance(event, Result):
            with suppress(Exception):
                self.ledger.read_ahead(event)
            if self.acting is not None:
                self.acting.read_ahead()
        elif event.by == "user":
            if isinstance(event, Message) and self.pack.schema.is_told:
                takes_back(event.text)
            if self.requests is not None:
                with suppress(Exception):
                    self.requests.latest()

    def observe_all(self, events: Sequence[Event]) -> None:
        """Process the next events. Only the first event can be a judged call."""
        if self.acting is None and not any(map(_is_hosts_word, events)):
            if events:
                self._take(events)
            return
        for event in events:
            self._observe(event)

    def _observe(self, event: Event) -> None:
        step, acting = self._step, self.acting
        if isinstance(event, Call) and event.context:
            self._vouch(event.context)
        acted = (
            acting.of(event, step, self._start_of(event)) if acting is not None and isinstance(event, Call) else None
        )
        if acted is None:
            self._take((event,))
        else:
            self._take_acts(acted)
            event = acted.call
        if acting is not None:
            acting.observe(step, event)
        if isinstance(event, Message) and event.handover is not None:
            self._hand_over(event.handover)

    def follow(self, events: Sequence[Event], steps: Iterable[int]) -> Iterator[Judgement]:
        """Process a whole conversation. The agent's calls at these steps are judged when they are reached."""
        observed = 0
        for step in steps:
            call = events[step]
            if isinstance(call, Call) and call.by == "agent":
                self.observe_all(events[observed:step])
                yield self.judge(call)
                observed = step
        self.observe_all(events[observed:])

    def _vouch(self, context: Mapping[str, Any]) -> None:
        """Apply the host's context from the next call on."""
        self._context.update(context)
        self.ledger.vouch(self._context)

    def _hand_over(self, context: Mapping[str, Any]) -> None:
        former, waits = self.ledger, self.values.waits
        self._former.append(Former(self._step, former, self._context))
        granted = self.requests.granted if self.requests is not None else ()
        self._begin(dict(context), self.answered, granted)
        self.values.waits = waits
        heard = silenced(former.events, self.pack.schema)
        if self.acting is None:
            self.values.begin(0, heard, None)
            self.values.finish()
        else:
            self._hear_acts(heard, self.acting)
        if self._conduct is not None:
            self._conduct = HandedConduct.after(self._conduct, self.values.ask, self.values.tell)

    def heard(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return the events in this conversation as the current principal sees them."""
        if not self._former:
            return events
        end = self._former[-1].end
        return [*self.ledger.events[:end], *events[end:]]

    def _part(self, step: int) -> tuple[Ledger, Mapping[str, Any]]:
        found = next((each for each in self._former if step < each.end), None)
        return (self.ledger, self._context) if found is None else (found.ledger, found.context)

    def _take(self, events: Sequence[Event]) -> None:
        step, asking, start = self._step, self.values, 0
        last = self._judged[-1].made if self._judged else None
        if last and last.step == step and self._disbelieved is events[0]:
            events = (last.call, *events[1:])
        made = last if last and last.step == step and last.call is events[0] else None
        if self._conduct is None:
            self.ledger.observe_all(step, events, made)
        else:
            asking.begin(step, events, made)
            if self._ahead is not None and self._ahead.call is events[0]:
                self._conduct, start = self._ahead.conduct, 1
                self._said += self._ahead.said
            for place in range(start, len(events)):
                spend(OBSERVING)
                asking.at = place
                self._conduct.observe(step + place, events[place], self._said)
            asking.finish()
        for former in self._former:
            former.ledger.observe_all(step, events)
        self._step, self._ahead, self._disbelieved = step + len(events), None, None

    def resume(self, events: Sequence[Event]) -> None:
        """Process events that another session has already judged. No questions are asked about them."""
        self.values.waits = True
        try:
            self.observe_all(events)
        finally:
            self.values.waits = False

    @property
    def answered(self) -> Collection[Answered]:
        """The answers about predicates that code could not decide, in the order of the questions."""
        return self.values.answered.values()

    def refuse(self, call: Call, card: Card | None = None, shown: tuple[LookedUp, ...] = ()) -> Call:
        """Refuse a planned call. It is recorded as an attempt that never ran."""
        refused = replace(call, refused=True, card=card, looked_up=shown)
        if self._judged and self._judged[-1].made.call is call:
            self._judged[-1].made.call = refused
        self.observe_all((refused,))
        return refused

    def findings(self, *, ended: bool = False) -> list[RuleFinding]:
        """The rules broken so far, each at most once per turn. If the conversation has `ended`, include the rules still
        waiting.
        """
        said = self._said
        if ended and self._conduct is not None:
            said = [*said, *self._conduct.fork().finish()]
        found: dict[tuple[int, str, str], RuleFinding] = {}
        for each in said:
            for finding in each.broken:
                found.setdefault((each.turn, finding.rule.name, finding.binding), finding)
        return list(found.values())

    @property
    def open_rules(self) -> frozenset[str]:
        """The rules that were undecided at some act so far."""
        return frozenset(finding.rule.name for each in self._said for finding in each.open)

    def acts(self, events: Sequence[Event]) -> list[tuple[Act, dict[str, bool | None]]]:
        """Process the rest of a conversation. Return its acts with the values of all predicates in rules."""
        conduct = self._conduct
        if conduct is None:
            return []
        conduct.acts = []
        self.observe_all(events)
        conduct.finish()
        return conduct.acts

    def judge(self, call: Call) -> Judgement:
        """Judge a call. It must then be observed as the next event."""
        if call.context:
            self._vouch(call.context)
        acted = self.acting.of(call, self._step, self._start_of(call)) if self.acting is not None else None
        if acted is not None:
            return self._judge_acts(acted)
        judgement = self._judge(self.ledger.record(call, self._step))
        if call.refused_by_result and judgement.is_permitted:
            # If every policy permits a call, no shield can have refused it, regardless of what its result claims.
            judgement.made.call = replace(call, refused=False, refused_by_result=False)
            self._disbelieved = call
        self._keep((judgement,))
        return judgement

    def _keep(self, judgements: Iterable[Judgement]) -> None:
        while self._judged and self._judged[-1].made.step == self._step:
            self._judged.pop()
        self._judged += judgements

    def _judge(self, made: CallRecord) -> Judgement:
        spend(JUDGING)
        call, tool = made.call, made.tool
        seen = SeenFacts(self.ledger, made, self._context)
        fault = call.fault if tool is not None else f"unknown tool `{call.tool}`"
        now = self.pack.now or utc(call.time)
        evidence: tuple[PolicyEvidence, ...] = ()
        broken: tuple[RuleFinding, ...] = ()
        open: tuple[RuleFinding, ...] = ()
        shown: Mapping[str, Any] = {}
        try:
            evidence = self._ask_guards(call, tool, seen, now) if tool is not None and not fault else ()
            broken, open = self._ask_rules(made, evidence, seen)
            if self._sparing and open and not _is_denied(evidence):
                broken, open = self._ask_on(made, evidence, seen, broken, open)
            if call.tool in self.pack.schema.card_facts:
                facts = card_facts(made, self.ledger).plain()
                shown = {name: value for name, value in facts.items() if name not in made.untold}
        except Exception as error:
            fault = self._fault(error, made).because
        return Judgement(made, seen, now, evidence, fault, broken, open, shown=shown)

    def _start_of(self, event: Event) -> int:
        return self.ledger.turn_start if isinstance(event, Call) and event.turn == self.ledger.turn else self._step

    def _judge_acts(self, acted: "ActedCall") -> Judgement:
        call, performed, plain = acted.call, acted.performed, acted.plain
        if performed.unresolved or not acted.actions:
            judged = [self._judge(plain)]
            if performed.unresolved:
                # Guards for the generic tool itself judge the original call.
                told = self._judge(self.ledger.record(call, self._step)) if performed.shown is not call else judged[0]
                found = replace(told, made=plain, fault=told.fault or performed.unresolved)
                found = replace(found, look_up=performed.look_up, instead=performed.instead)
                judged = [replace(found, otherwise=performed.otherwise)]
        else:
            bound = (plain,) if acted.is_named or call.tool in self.pack.by_tool else ()
            judged = self._judge_all((*bound, *acted.actions))
        if len(judged) != 1:
            self._ahead = None
        acted.ahead = self._ahead
        whole = replace(judged[0], asked=call)
        if len(judged) > 1:
            listed = [{each.call.tool: each.call.arguments} for each in acted.actions]
            shown = replace(call, arguments={"actions": listed}, fault="")
            whole = Judgement(record_of(shown, self._step, plain.start, plain.tool), *_evidence_of(judged), asked=call)
            whole = replace(whole, parts=tuple(replace(each, asked=call) for each in judged))
        if call.refused_by_result and whole.is_permitted:
            acted.become(replace(call, refused=False, refused_by_result=False))
            self._disbelieved, whole = call, replace(whole, asked=acted.call)
        by_tool = self.pack.by_tool
        self._keep(
            replace(each, asked=acted.call)
            for each in judged
            if each.fault
            or each.made.tool is None
            or each.made.tool.effect == "write"
            or each.made.call.tool in by_tool
            or (acted.is_named and each.made is plain)
        )
        acted.judged = tuple(judged)
        return whole

    def _judge_all(self, actions: Sequence[CallRecord]) -> list[Judgement]:
        conduct, waits, step, judged = self._conduct, self.values.waits, self._step, list[Judgement]()
        supposed: list[CallRecord] = []
        # Model answers are stored by step, but all these actions have the same step.
        self.values.waits = waits or len(actions) > 1
        try:
            for place, made in enumerate(actions):
                made.step = step + place
                said = self._judge(made)
                rules, open = ([replace(each, step=step) for each in found] for found in (said.rules, said.open_rules))
                weighed = self._weighed(said) if len(actions) > 1 else None
                judged.append(replace(said, rules=tuple(rules), open_rules=tuple(open), weighed=weighed))
                if place + 1 < len(actions):
                    supposed.append(self.ledger.suppose(made))
                    self._conduct = self._ahead.conduct if self._ahead is not None else self._conduct
        finally:
            self._conduct, self.values.waits = conduct, waits
            for made in supposed:
                self.ledger.withdraw(made)
            for made in actions:
                made.step = step
        return judged

    def _take_acts(self, acted: "ActedCall") -> None:
        step, call, acting = self._step, acted.call, self.acting
        assert acting is not None
        ahead = acted.ahead if not call.refused else None
        if ahead is not None and ahead is self._ahead:
            self._conduct = ahead.conduct
            self._said += ahead.said
            said = None
        else:
            said = self._said
        self._note_acts(self.ledger, acted, said)
        self.values.witness(step, acted.put)
        for former in self._former:
            self._note_acts(former.ledger, acting.afresh(acted, call, acted.plain.start), None)
        acting.note(acted)
        self._step, self._ahead, self._disbelieved = step + 1, None, None

    def _note_acts(self, ledger: Ledger, acted: "ActedCall", said: list[ActFindings] | None) -> None:
        """Record a call and its actions in a ledger. If `said` is given, the rules process them too and append findings
        to it.
        """
        spend(OBSERVING)
        ledger.observe(acted.step, acted.call, acted.plain)
        waits, self.values.waits = self.values.waits, self.values.waits or len(acted.actions) > 1
        for made in acted.acts:
            if said is not None and self._conduct is not None:
                self.values.consider(made)
                self._conduct.observe(acted.step, made.call, said, is_beside=made.is_beside)
            if made is not acted.plain:
                ledger.perform(acted.plain, made)
        self.values.waits = waits

    def _hear_acts(self, events: Sequence[Event], acting: "Acting") -> None:
        for step, event in enumerate(events):
            made = acting.made.get(step)
            if made is None or not isinstance(event, Call):
                self.values.begin(step, (event,), None)
                self.values.finish()
                continue
            acted = acting.afresh(made, event, made.plain.start)
            self._note_acts(self.ledger, acted, None)
            self.values.witness(step, acted.put)

    def put_event(self, step: int, event: Event) -> Event:
        """Return the event as a card shows it. A generic call that writes through exactly one action is shown as that
        action.
        """
        return event if self.acting is None else self.acting.put.get(step, event)

    def weigh(self, call: Call, *, answers: Evidence | None = None) -> Assessment | None:
        """The rules' combined assessment of a planned call, computed when needed. None if no rule applies.

        `answers` contains values or probabilities for predicates that the conversation does not determine.
        """
        if self._conduct is None:
            return None
        last = next((each for each in reversed(self._judged) if each.made.call is call), None)
        if last is not None and last.made.step == self._step:
            self.values.consider(last.made, last.evidence)
        else:
            self.values.consider(self._record_of(call))
        return self._conduct.weigh(self._step, call, answers or {})

    def _weighed(self, judgement: Judgement) -> Assessment | None:
        if self._conduct is None:
            return None
        self.values.consider(judgement.made, judgement.evidence)
        return self._conduct.weigh(judgement.made.step, judgement.made.call, {})

    def _record_of(self, call: Call) -> CallRecord:
        return record_of(call, self._step, self._start_of(call), self.pack.schema.tools.get(call.tool))

    def beside(self, judgement: Judgement, others: Sequence[Call]) -> tuple[RuleFinding, ...]:
        """Return the turn-shape rules that the last judged call breaks because `others` are in the same turn."""
        if self._conduct is None or not others:
            return ()
        made = judgement.made
        conduct = self._conduct.fork()
        said: list[ActFindings] = []
        acting = self.acting
        beside = others if acting is None else [each for call in others for each in acting.calls(call)]
        spend(BESIDE * len(beside))
        judged = {id(part.made.call): part for part in judgement.parts or (judgement,)}
        for call in (*beside, *(part.made.call for part in judgement.parts or (judgement,))):
            part = judged.get(id(call))
            record = part.made if part is not None else self._record_of(call)
            self.values.consider(record, part.evidence if part is not None else ())
            said = []
            conduct.observe(made.step, call, said, is_beside=record.is_beside)
        shaped = self.pack.ready_rules.shaped
        known = {finding.rule.name for finding in judgement.rules}
        broken = said[-1].broken if said else ()
        return tuple(each for each in broken if each.rule.name in shaped and each.rule.name not in known)

    def _ask_rules(
        self, made: CallRecord, evidence: tuple[PolicyEvidence, ...], seen: SeenFacts
    ) -> tuple[tuple[RuleFinding, ...], tuple[RuleFinding, ...]]:
        if self._conduct is None:
            return (), ()
        self.values.consider(made, evidence, seen)
        # A call that was refused later is judged as if it had not been. Whether it ran is a separate question.
        call = replace(made.call, refused=False) if made.call.refused else made.call
        conduct = self._conduct.fork()
        said: list[ActFindings] = []
        conduct.observe(made.step, call, said, is_beside=made.is_beside)
        self._ahead = Ahead(call, conduct, said)
        last = said[-1] if said and said[-1].step == made.step else None
        return (last.broken, last.open) if last is not None else ((), ())

    def _ask_on(
        self,
        made: CallRecord,
        evidence: tuple[PolicyEvidence, ...],
        seen: SeenFacts,
        broken: tuple[RuleFinding, ...],
        open: tuple[RuleFinding, ...],
    ) -> tuple[tuple[RuleFinding, ...], tuple[RuleFinding, ...]]:
        """Ask about the most decisive predicate, then about the next one, until the rules are decided."""
        conduct, predicates = self._conduct, self.pack.book.predicates
        act = conduct.act_of(made.step, made.call) if conduct is not None else None
        while open and conduct is not None and act is not None:
            weighed = conduct.weigh(made.step, made.call, {})
            if weighed is None or weighed.decision != "ask":
                break
            by_influence = sorted(weighed.influence.items(), key=lambda each: (-each[1], each[0]))
            name = next((name for name, _ in by_influence if self.values.may_answer(predicates[name], act)), None)
            if name is None:
                break
            self.values.answer(predicates[name], act)
            broken, open = self._ask_rules(made, evidence, seen)
        return broken, open

    def _ask_guards(
        self, call: Call, tool: Tool, source: SeenFacts, now: datetime | None
    ) -> tuple[PolicyEvidence, ...]:
        guards = self.pack.by_tool.get(call.tool, ())
        inquiry = Inquiry(tool.fitted(call.arguments), source, tool=call.tool, now=now)
        said = tuple([PolicyEvidence(policy, guard, inquiry.ask(guard)) for policy, guard in guards])
        inquiry.close()
        return said

    @cached_property
    def _settling(self) -> Settling:
        return Settling(self.pack, self._start, by_hindsight=self._mode == "hindsight")

    @property
    def world(self) -> World | None:
        """The ground-truth database after the settled writes."""
        return self._settling.moved()

    @property
    def judged_world(self) -> World | None:
        """The ground-truth database as last read for settling, without writes after the most recently judged call."""
        return self._settling.world

    def settle(self) -> list[CallVerdict]:
        """Return the verdicts on all calls judged so far, in order. Their writes are applied to the ground-truth
        database.
        """
        return self._settling.settle(self._judged, self._part, self._fault)

    def _fault(self, error: Exception, made: CallRecord) -> Fault:
        """Record an internal error. The verdict on the call is inconclusive, and the conversation continues."""
        self.faults.append(fault_of(error, made.step))
        return self.faults[-1]


def _is_hosts_word(event: Event) -> bool:
    """Whether an event contains the host's context or a handover."""
    if type(event) is Call:
        return bool(event.context)
    return type(event) is Message and event.handover is not None


def _evidence_of(judged: Sequence[Judgement]) -> tuple[Any, ...]:
    evidence = tuple(said for each in judged for said in each.evidence)
    rules = tuple(found for each in judged for found in each.rules)
    open = tuple(found for each in judged for found in each.open_rules)
    return (
        SeenTogether([each.seen for each in judged]),
        judged[0].now,
        evidence,
        next((each.fault for each in judged if each.fault), ""),
        rules,
        open,
    )


def _is_denied(evidence: Iterable[PolicyEvidence]) -> bool:
    return any({each.outcome for each in said.completions} == {"deny"} for said in evidence)
