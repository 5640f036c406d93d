"""Decides the calls of one live conversation, in order.

A decision combines guards, rules, the shield's own look-ups, approvals, stops, limits and cards. With a log, a decision
becomes valid once the log contains it and all earlier entries.
"""

import time as clocks
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from bylaw.engine.conversation import AskedCall, Conversation, Mutation
from bylaw.engine.door import AnotherPrincipal, as_object, goes_on, is_of_one
from bylaw.engine.judgement import Judgement
from bylaw.engine.predicate_values import Answered
from bylaw.engine.request import Granted, Requests
from bylaw.errors import BylawError, UsageError
from bylaw.pack import Pack
from bylaw.record.approval import Approval, Change, draft
from bylaw.record.entry import Entry
from bylaw.record.journal import Answers
from bylaw.record.use import Use
from bylaw.rule.circuit import Assessment
from bylaw.shield.approving import ApprovalRuling, Approvals
from bylaw.shield.decision import Decision, Earlier, Ground, PerformedAction, gravest, outcome
from bylaw.shield.feedback import feedback
from bylaw.shield.for_person import for_person, line
from bylaw.shield.grounds import (
    Binding,
    after_no,
    earlier_run,
    find_grounds,
    is_unguarded,
    stood_in,
    until_when,
    weigh,
)
from bylaw.shield.history import (
    Attempt,
    ConversationJournal,
    History,
    LiveState,
    Named,
    given_back,
    marked,
    opening_of,
    read_history,
)
from bylaw.shield.host import Channel, Host, RunScheduled
from bylaw.shield.limiting import NO_PLACES, LatestUses, latest_uses, places_beside, places_for
from bylaw.shield.recalled_card import EarlierCards, Recalled, is_of_one_chat, is_signed_in
from bylaw.shield.repeating import DONE_BEFORE, Repeated, has_result, still_allowed, taken_of
from bylaw.shield.resolving import Resolved, resolve, shows_the_same
from bylaw.shield.retelling import without_repetitions
from bylaw.shield.stopping import stop_grounds, stops_of
from bylaw.text.cost import check as check_cost
from bylaw.trace.event import Call, Card, Event, LookedUp, Trajectory


class WantedDecisions(Struct, frozen=True):
    """A request: mutations to apply and calls to decide. Either all of it takes effect, or none."""

    asked: Sequence[AskedCall] = ()
    first: Sequence[Mutation] = ()
    """Mutations to apply before deciding the calls."""
    named: Named | None = None
    """The request's idempotency key."""
    again: "Callable[[DecisionService], Decision | None] | None" = None
    """Returns the earlier decision on an interrupted or resumed call. None if the call must be decided again."""
    by: str = ""
    """The name of the calling agent, if it is not the agent that began the conversation."""
    context: Mapping[str, Any] | None = None
    """The host's context. None if it has not changed."""
    is_turn: bool = False
    """Whether the calls form one turn. If they do, the decision on each call considers the other calls."""
    places: Sequence[int] | None = None
    """The indices of the calls to decide. None means all calls."""


class DecisionService:
    """The state of a live conversation, and the decisions on its calls. Only one thread may use it at a time."""

    live: Conversation | None = None
    """The conversation. None until it is started or read from the log."""
    caller_keeps_history = False
    """Whether the caller keeps the history and sends all of it with each request. Each request then begins a new
    conversation.
    """
    open_turn: Mutation | None = None
    _answers = _granted = 0
    """The number of model answers used in earlier decisions."""
    _recalled: Recalled | None = None
    """If the caller keeps the history: the earlier card, and the name for the next card."""

    def __init__(self, shield: Host, id: str, context: Mapping[str, Any] | None, by: str, lacks: str) -> None:
        self._shield = shield
        self.journal = ConversationJournal(shield.log, shield.tenant, id)
        self.id = self.journal.id
        self.context = context
        self.speaks_for: Mapping[str, Any] = context or {}
        """The host's context in this process. In another process, another principal may have continued the
        conversation.
        """
        self._unvouched = context
        """The initial context of the conversation. None once an entry has been written."""
        self.by = by
        self.lacks = lacks
        self.channel = Channel()
        self.pack, self.postures = shield.pinned()
        self.unwritten: list[Mutation] = []
        self._before_unwritten = 0
        """The number of events already in the log when the first unwritten mutation was made."""
        self._marks: dict[int, Decision] = {}
        """Decisions of this process that used facts which the agent had not seen, keyed by step."""
        self._approvals = Approvals()

    @property
    def state(self) -> LiveState:
        """The state of the conversation according to the log entries so far."""
        return self.journal.state

    def _begin(self, known: Sequence[Answered] = (), granted: Sequence[Granted] = ()) -> Conversation:
        conversation = Conversation(
            self.pack,
            id=self.id,
            context=self.context,
            doubts=True,
            answers=self._shield.answers,
            known=known,
            requests=self._shield.requests,
            granted=granted,
            delegation=self._shield.postures.delegation,
            handover=self.postures.handover,
        )
        conversation.interrupted = self.state.interrupted
        return conversation

    @property
    def has_news(self) -> bool:
        return self._shield.log is not None and self.live is not None and self.live.length > self.state.events

    @property
    def must_read(self) -> bool:
        may_have_news = self.journal.may_be_known if self.live is None else self.journal.others_may_have_written
        return may_have_news or self.journal.must_read_stops

    @property
    def vouched(self) -> Mapping[str, Any]:
        """The context values that the host has confirmed."""
        return self.live.context if self.live is not None else self.context or {}

    @property
    def scheduled(self) -> RunScheduled | None:
        """Runs quick work of coroutines, in the event loop or in a thread. If None, it runs in the loop."""
        return self._shield.scheduled

    def may_wait(self, wanted: WantedDecisions) -> bool:
        """Whether a decision may wait for a model, a host tool or a database server."""
        host, log = self._shield, self.journal.log
        if host.answers is not None or host.requests is not None or self.postures.resolve != "agent":
            return True
        if log is None or log.reads_at_once:
            return False
        is_repeated = wanted.named is not None and wanted.named.name in self.state.requests
        return self.must_read or is_repeated or self.caller_keeps_history or bool(self.pack.book.limits)

    def open(self) -> Conversation:
        """Return the conversation, new or continued from the log. Entries that were read may not be on disk until
        `settle_reading` returns.
        """
        return self.live if self.live is not None else self._load()

    def opened(self) -> Conversation:
        """Return the conversation, once all entries that were read are on disk."""
        conversation = self.open()
        self.settle_reading()
        return conversation

    def catch_up(self) -> None:
        """Open the conversation and read entries from other writers, which may not be on disk yet."""
        if self.live is None or not self.journal.others_may_have_written:
            self.open()
            return
        entries = self.journal.read(after=self.state.length)
        if entries and not self._continue(self.live, entries):
            self.forget()
            self.open()

    def apply(self, mutation: Mutation) -> None:
        """Apply a mutation. It is written to the log with the next decision."""
        if self._shield.log is None:
            self._apply_all(self._spoken(mutation))
            return
        if self._shield.is_closed:
            hint = "report events before `close()`, or before the shield's `with` block ends"
            raise UsageError("the shield is closed, so it can no longer log events", hint=hint)
        if not self.unwritten:
            self.catch_up()
        self.opened()
        if not self.unwritten:
            self._before_unwritten = self.state.events
        mutations = self._spoken(mutation)
        try:
            self._apply_all(mutations)
        except UsageError:
            if not self.was_overtaken():
                raise
            self.open()
            self._apply_all(mutations)
        self.unwritten += mutations

    def _apply_all(self, mutations: Sequence[Mutation]) -> None:
        for mutation in mutations:
            mutation.apply(self.open())

    def _spoken(self, mutation: Mutation) -> list[Mutation]:
        """Add the principal known to this process, because elsewhere another principal may have continued the
        conversation.
        """
        if self.postures.handover and mutation.is_spoken:
            return [Mutation("vouch", {"context": self.speaks_for}), mutation]
        return [mutation]

    def aligned(self, wanted: WantedDecisions, known: int) -> WantedDecisions:
        """Adapt a request to the entries that other writers added after the first `known` events.

        An event that is in both the entries and the request counts once. If `known` is 0, the caller did not know any
        entries.
        """
        if not wanted.first or not known or self.state.events <= known:
            return wanted
        return replace(wanted, first=without_repetitions(wanted.first, self.open().since(known), self._reads))

    def was_overtaken(self) -> bool:
        """Whether the log has unread entries, so that a rejected request may now succeed. If it does, the log is read
        again.
        """
        if not self.journal.read(after=self.state.length):
            return False
        self.forget()
        return True

    @property
    def _reads(self) -> Collection[str]:
        return {name for name, tool in self.pack.schema.tools.items() if tool.effect == "read"}

    def settle_reading(self) -> None:
        """Wait until every entry read so far is on disk."""
        try:
            self.journal.settle()
        except BaseException:
            self.forget()
            raise

    def forget(self) -> None:
        """Discard the state, so that the log is read again next time. Unwritten events are lost."""
        if self._shield.log is not None:
            self.live = None
            self.journal.forget()

    def _load(self) -> Conversation:
        history, journal, before = None, self.journal, self.journal.first
        self._marks.clear()
        if journal.may_be_known:
            entries = journal.read()
            history = read_history(entries)
            journal.first = entries[0] if entries else None
        if history is None:
            journal.first, journal.state, self._approvals = None, LiveState(), Approvals()
            conversation = self._begin()
        else:
            conversation = self._restore(history, before)
        requests = conversation.session.requests
        self._answers = len(conversation.session.answered)
        self._granted = 0 if requests is None else len(requests.granted)
        self._replay(conversation)
        self.live = conversation
        return conversation

    def _restore(self, history: History, before: Entry | None) -> Conversation:
        """Rebuild the conversation from the log. `before` was the first entry when the log was last read."""
        first, opening, given = self.journal.first, history.opening, self._unvouched
        self.pack, self.postures = self._shield.pinned(opening)
        is_another = before is not None and first is not None and before.digest != first.digest
        if not self.postures.handover:
            if given is not None and not goes_on(opening.context, given):
                raise AnotherPrincipal(self.id)
            if is_another and not is_of_one(opening.context, self.context or {}):
                raise AnotherPrincipal(self.id)
        self.context, self.by = opening.context, opening.agent
        self.journal.state = history.state
        self._approvals = Approvals(history.approvals, handed_over=history.state.handed_over, before=history.before)
        conversation = self._begin(
            [each for decision in history.decisions for each in decision.answered],
            [each for decision in history.decisions for each in decision.granted],
        )
        conversation.resume(history.events, history.steps)
        if given and not self.postures.handover:
            conversation.vouch(given)
        return conversation

    def _continue(self, live: Conversation, entries: Sequence[Entry]) -> bool:
        """Apply entries from other writers. Return False if everything must be read again."""
        state, handed_over = self.state, self.state.handed_over
        if state.length == 0 or self.unwritten or self.open_turn is not None:
            # Other writers' entries come first, then the unwritten mutations.
            return False
        try:
            news = read_history(entries, History(opening_of(self.pack, None, ""), state=state))
        except BaseException:
            self.forget()
            raise
        is_another = state.handed_over != handed_over
        if news is None or is_another or any(each.answered or each.granted for each in news.decisions):
            return False
        live.resume(news.events, news.steps)
        self._approvals.take(news.approvals)
        return True

    def _replay(self, conversation: Conversation) -> None:
        """Apply the unwritten mutations again, after all entries from other writers. These may contain some of the same
        events.
        """
        if self.open_turn is not None and not any(each is self.open_turn for each in self.unwritten):
            conversation.hold_turn()
        news = conversation.since(self._before_unwritten) if self.unwritten else ()
        mutations = without_repetitions(self.unwritten, news, self._reads)
        self.unwritten, self._before_unwritten = [], self.state.events
        wrong: BylawError | None = None
        for mutation in mutations:
            try:
                mutation.apply(conversation)
                self.unwritten.append(mutation)
            except BylawError as error:
                wrong = wrong or error
        if wrong is not None:
            raise wrong

    def trajectory(self, agent: str) -> Trajectory:
        events = list(self.opened().events)
        for step, decision in self._marks.items():
            events[step] = marked(events[step], decision, self.state.yeses)
        return Trajectory(self.id, events, agent or self.by, context=dict(self.context or {}))

    def attempt(self, wanted: WantedDecisions) -> Attempt:
        """Apply mutations and decide calls. The decisions become valid when the attempt is written."""
        try:
            attempt = self._attempt(wanted)
            check_cost()
            return attempt
        except BaseException:
            # The attempt may be half applied. The log contains only complete attempts, so read the log again.
            self.forget()
            raise

    def _attempt(self, wanted: WantedDecisions) -> Attempt:
        conversation = self.open()
        if wanted.context is not None:
            conversation.vouch(wanted.context)
        elif wanted.asked and self.postures.handover:
            conversation.vouch(self.speaks_for)
        for mutation in wanted.first:
            mutation.apply(conversation)
        attempt = Attempt(self.journal, conversation)
        if self._shield.log is not None and self.state.length == 0:
            attempt.open(opening_of(self.pack, self.context, self.by))
        if wanted.again is not None:
            found = wanted.again(self)
            if found is None:
                return attempt
            attempt.decide(found)
        else:
            for place in range(len(wanted.asked)) if wanted.places is None else wanted.places:
                self._decide(attempt, wanted, place)
        attempt.mutations = len(self.unwritten)
        attempt.close(wanted.named)
        return attempt

    def is_written(self, attempt: Attempt, answers: Answers, named: Named | None = None) -> bool:
        """Return whether the attempt was written. If another writer wrote first, the attempt has no effect."""
        is_accepted = False
        try:
            is_accepted = self.journal.accepts(attempt.drafts, answers)
        finally:
            if not is_accepted:
                self.forget()
        if not is_accepted:
            return False
        self._unvouched = None
        if named is not None:
            self.state.requests[named.name] = (named.digest, self.state.decided)
        if self.live is attempt.conversation:
            attempt.note()
            del self.unwritten[: attempt.mutations]
            self._before_unwritten = self.state.events
        if not self.unwritten:
            # Everything is written, so the shield need not keep the session.
            self._shield.unwritten.pop(id(self), None)
        return True

    def resumed(self, id: str, tool: str, arguments: Mapping[str, Any], by: str) -> Decision | None:
        """Return the decision on an interrupted call that may continue, or None if the call must be decided again."""
        before, events = self.state.interrupted.get(id), self.open().events
        if before is None or (before.tool, before.arguments) != (tool, dict(arguments)):
            return None
        step = max((at for at, event in enumerate(events) if isinstance(event, Call) and event.id == id), default=-1)
        if step < 0 or has_result(events, step) or not self._still_stands(before, step, by):
            return None
        return replace(before, repeats="resumed")

    def _still_stands(self, decision: Decision, step: int, by: str) -> bool:
        if not goes_on(self.open().context, self.speaks_for):
            # The call was allowed for another principal.
            return False
        call, now = self.open().events[step], self._shield.clock()
        agents = {self.by, by, call.agent} if isinstance(call, Call) else {self.by, by}
        tools = (decision.tool, *(each.name for each in decision.actions))
        if stops_of(self.journal.stops, self.pack, tools, agents, now):
            return False
        if decision.tool in self._shield.doubts and all(each.kind != "doubt" for each in decision.grounds):
            return False
        if self._approvals.has_ended(decision.approval, now):
            return False
        tools = self._shield.tools
        if decision.resolved and (tools is None or not shows_the_same(decision.resolved, tools)):
            return False
        is_rejected, is_approved, look_ups = self._approvals.is_rejected, bool(decision.approval), decision.resolved
        return still_allowed(
            self.open(), self.postures, step, now, self.lacks, is_rejected, look_ups, is_approved=is_approved
        )

    def taken_before(self, wanted: WantedDecisions) -> list[Repeated] | None:
        """Return the earlier answers to a repeated request that are still valid, or None if the request is new."""
        self.open()
        if wanted.named is None or wanted.named.name not in self.state.requests:
            return None
        # Read the log again, because another worker may have reported a result or stopped the call.
        self.journal.forget_stops()
        self.forget()
        self.open()
        history = read_history(self.journal.read())
        found = taken_of(history, wanted.named) if history is not None else None
        return None if found is None else [self._sent_again(*each, wanted.by) for each in found[: len(wanted.asked)]]

    def _sent_again(self, decision: Decision, step: int, by: str) -> Repeated:
        """Return the decision if it is still valid. A call that has a result must not be made again."""
        if not decision.allowed:
            return decision
        if not has_result(self.open().events, step):
            return decision if self._still_stands(decision, step, by) else step
        tool = self.pack.schema.tools.get(decision.tool)
        if tool is not None and tool.effect != "write":
            return replace(decision, is_over=True)
        return replace(decision, is_over=True, allowed=False, feedback=f"{DONE_BEFORE} ({decision.tool}).")

    def _decide(self, attempt: Attempt, wanted: WantedDecisions, place: int) -> None:
        self._recalled, started = None, clocks.perf_counter()
        judgement = wanted.asked[place].judge(attempt.conversation)
        decision, changes, uses = self._decide_judged(attempt, wanted, place, judgement, started)
        call, found = judgement.call, self._recalled
        if found is not None and (said := found.confirmation) is not None:
            # The user confirmed this card in an earlier request with the same history.
            attempt.conversation.confirm(said, time=found.yes.time if found.yes is not None else None)
            judgement = attempt.conversation.call(call.tool, call.arguments, id=call.id, time=call.time)
            decision, more, uses = self._decide_judged(attempt, wanted, place, judgement, started)
            changes = [*changes, *more]
            if decision.allowed:
                attempt.add(found.used(self.journal.tenant, judgement.made.call, decision.id))
        attempt.decide(decision, found.name_of(decision) if found is not None else "", uses)
        for change in changes:
            entry = draft(self.journal.tenant, self._approvals.homes.get(change.approval, self.id), change)
            # The id is unique, so that a similar entry from another worker counts separately.
            attempt.add(replace(entry, id=f"{entry.id}:{self.id}") if self.caller_keeps_history else entry)

    def _decide_judged(
        self, attempt: Attempt, wanted: WantedDecisions, place: int, judgement: Judgement, started: float
    ) -> tuple[Decision, Sequence[Change], Sequence[Use]]:
        """Return the decision on a judged call, with the approval changes and the uses of limits to write."""
        conversation, call = attempt.conversation, judgement.made.call
        session, number = conversation.session, self.state.decided + len(attempt.decisions) + 1
        name = f"{self.id}/{number}" if self.id else str(number)
        binding, by = Binding(self.pack, self.postures, call.tool, judgement.call.tool), wanted.by or self.by
        weighed = weigh(session, judgement)
        evidence: Sequence[Ground] = find_grounds(session, self.postures, judgement, self.lacks, weighed)
        if judgement.parts:
            evidence = after_no(evidence, conversation.since(0), judgement.call.tool)
        looked = self._look_up(conversation, judgement, evidence)
        grounds = [*self._objections(binding, attempt, wanted, place, judgement), *looked.grounds]
        places = NO_PLACES
        if self.pack.book.limits:
            latest = self._latest_uses(attempt)
            now, context = clocks.time(), conversation.context
            made = [each.made.call for each in judgement.parts or (judgement,)]
            whole = [judgement.call] if all(each.tool != judgement.call.tool for each in made) else []
            for each in (*whole, *made):
                binding = Binding(self.pack, self.postures, each.tool)
                needed = places_for(binding, each, name, by, context, latest, now)
                places = places_beside(binding, places, needed) if places is not NO_PLACES else needed
            grounds = [*places.grounds, *grounds]
        if grounds and grounds[0].answer != "allow":
            # Objections come first.
            grounds = self._for_channel(grounds, conversation, judgement)
        ruling = self._rule(conversation, judgement, grounds, name, looked)
        earlier: Earlier = "" if outcome(ruling.grounds)[1] else earlier_run(session.ledger, judgement.made)
        card = self._card(conversation, judgement, ruling, name, is_repeated=earlier == "perhaps")
        failures = conversation.cards.failures(card.digest, judgement.made.step) if card is not None else 0
        resolved = looked.look_ups
        shown = tuple(replace(each, shown=True) for each in resolved) if self.postures.resolve == "show" else ()
        decision = _decision(self.pack, judgement, name, ruling, weighed, card, shown, earlier, failures, looked)
        if resolved:
            # If a softer posture allowed the call, it has run without the results of these look-ups.
            resolved = resolved if decision.allowed else shown or resolved
            decision = replace(decision, resolved=resolved, evidence=tuple(evidence))
        if not decision.allowed:
            conversation.refuse(card, shown)
        if decision.resolved or decision.approval:
            self._marks[judgement.made.step] = decision
        decision = self._with_model_answers(conversation, judgement, decision)
        # The decision can still be changed, because nothing has used it yet.
        force_setattr(decision, "seconds", clocks.perf_counter() - started)
        # The approval request contains the decision's message for reviewers.
        changes = [
            replace(each, for_person=decision.for_person) if each.status == "waiting" else each
            for each in ruling.changes
        ]
        return decision, changes, places.uses if decision.allowed else ()

    def _look_up(self, conversation: Conversation, judgement: Judgement, grounds: Sequence[Ground]) -> Resolved:
        """Make the look-ups that the shield is allowed to make itself."""
        how, tools = self.postures.resolve, self._shield.tools
        if (
            judgement.parts
            or judgement.otherwise
            or how == "agent"
            or tools is None
            or self.lacks
            or (how == "show" and self.caller_keeps_history)
        ):
            # If the caller keeps the history, it would not contain results that are shown with a refusal.
            return Resolved(grounds, judgement)
        found = resolve(self.postures, conversation, judgement, grounds, tools)
        if how == "show" and gravest([ground.answer for ground in found.grounds]) != "deny":
            # The agent sees the results and can then repeat the call.
            return Resolved(grounds, judgement, look_ups=found.look_ups)
        return found

    def _objections(
        self, binding: Binding, attempt: Attempt, wanted: WantedDecisions, place: int, judgement: Judgement
    ) -> list[Ground]:
        """Return the objections that come from no policy: the host's doubts, stops, and other calls in the turn."""
        call, found = judgement.call, list[Ground]()
        if because := self._shield.doubts.get(call.tool):
            found.append(binding.of_doubt(because))
        if attempt.stops.standing:
            found += stop_grounds(attempt.stops, self.pack, judgement, {self.by, wanted.by}, self._shield.clock())
        if wanted.is_turn:
            later = wanted.asked[place + 1 :]
            others = [Call(each.tool, as_object(each.arguments)[0], turn=call.turn) for each in later]
            shape = attempt.conversation.session.beside(judgement, others)
            found += [binding.of_rule(each, "deny") for each in shape]
        if self._is_declined(attempt.conversation, judgement):
            found.append(binding.of_declined())
        return found

    def _is_declined(self, conversation: Conversation, judgement: Judgement) -> bool:
        """Whether the user declined the call with a button. Needed if the caller keeps the history, which does not show
        this.
        """
        if judgement.parts:
            return any(self._is_declined(conversation, part) for part in judgement.parts)
        made = judgement.made
        is_read = made.tool is not None and made.tool.effect != "write"
        if is_read or not conversation.cards.lifetime:
            return False
        cards = self._earlier_cards(conversation, made.call)
        return cards is not None and cards.was_declined(conversation.since(0)[: made.step], self._time_of(made.call))

    def _earlier_cards(self, conversation: Conversation, call: Call) -> EarlierCards | None:
        """Return the cards for this call in earlier requests, if the caller keeps the history."""
        log = self.journal.log
        if log is None or not self.caller_keeps_history:
            return None
        terms = conversation.cards.shown_terms(call)
        return EarlierCards(log, self.journal.tenant, terms, conversation.context, self.pack.pin)

    def _time_of(self, call: Call) -> float:
        return call.time if call.time is not None else self._shield.clock()

    def _for_channel(
        self, grounds: Sequence[Ground], conversation: Conversation, judgement: Judgement
    ) -> Sequence[Ground]:
        """Redirect questions for the user if the host does not report the user's answers."""
        channel = self.channel
        if channel.puts_cards:
            digest = conversation.cards.digest(judgement.made)
            return grounds if channel.reports_user else until_when(grounds, conversation.since(0), digest)
        if conversation.session.ledger.is_last_unheard():
            terms = self.postures.approval
            return stood_in(grounds, terms, hears=channel.reports_user, files=channel.files_questions)
        return grounds

    def _latest_uses(self, attempt: Attempt) -> LatestUses | None:
        """Return a function that finds earlier uses of the pack's limits. None if uses are not counted."""
        log, conversation, uses = self.journal.log, attempt.conversation, self.state.uses
        if log is None:
            return None
        # A refused call no longer counts towards the limits. The refusal may be among the unwritten events.
        unwritten = conversation.since(self.state.events)
        returned = [use.decision for event in unwritten for use in given_back(conversation, event, uses)]
        return latest_uses(log, self.journal.tenant, attempt.uses, returned)

    def _rule(
        self,
        conversation: Conversation,
        judgement: Judgement,
        grounds: Sequence[Ground],
        name: str,
        looked: Resolved,
    ) -> ApprovalRuling:
        log = self.journal.log
        if log is None or (self.caller_keeps_history and not is_signed_in(conversation.context)):
            # Request no approval here, because no later call could find it.
            return ApprovalRuling(grounds)
        now, terms, asked = self._shield.clock(), self.postures.approval, ""
        self._approvals.pass_on(conversation.handed_over)
        if self.caller_keeps_history:
            find, before = partial(log.asked, self.journal.tenant), conversation.since(0)[: judgement.made.step]
            is_ours = partial(self._continues, before)
            asked = self._approvals.recall(
                judgement, grounds, conversation.context, find, is_ours, terms, now, self.pack.pin
            )
        read = unused_arguments(judgement)
        ruling = self._approvals.rule(
            judgement, grounds, asked or name, now, terms, known=looked.known, decision=name, read=read
        )
        left = self._approvals.left_behind()
        return replace(ruling, changes=[*left, *ruling.changes]) if left else ruling

    def _continues(self, before: Sequence[Event], asked: Approval) -> bool:
        """Whether the history continues the conversation in which the approval was requested."""
        log = self.journal.log
        home = read_history(log.conversation(self.journal.tenant, asked.conversation)) if log is not None else None
        if home is None:
            return False
        asking = zip(home.steps, home.decisions, strict=True)
        step = next((step for step, made in asking if made.approval == asked.id), None)
        return step is not None and is_of_one_chat(home.events[:step], before)

    def _card(
        self, conversation: Conversation, judgement: Judgement, ruling: ApprovalRuling, name: str, *, is_repeated: bool
    ) -> Card | None:
        """Return the card if nothing but the user's confirmation, and possibly an approval, is missing.

        Look-ups and other questions come before the card. A call that cannot be allowed gets no card.
        """
        firm = [each for each in ruling.grounds if each.answer != "allow" and each.posture == "enforce"]
        if not any(each.puts_card for each in firm) or any(map(_comes_first, firm)):
            return None
        if not ruling.approval and not all(each.puts_card for each in firm):
            return None
        text = conversation.cards.text(judgement.made, is_repeated=is_repeated)
        if not text:
            return None
        call, step = judgement.made.call, judgement.made.step
        now, digest = self._time_of(call), conversation.cards.digest(judgement.made)
        if conversation.cards.is_declined_otherwise(judgement.made, digest, now):
            return None
        # Each write gets only one prompt, so a waiting card is not shown again.
        card = conversation.cards.waiting(digest, step)
        if card is not None and card.text == text and card.expires is not None and now < card.expires:
            return card
        card = Card(name, digest, text, now + conversation.cards.lifetime)
        cards = self._earlier_cards(conversation, call) if self._recalled is None else None
        if cards is None:
            return card
        may_be_made = partial(conversation.cards.may_be_made, judgement.made)
        self._recalled = cards.recalled(card, conversation.since(0)[:step], now, may_be_made)
        return self._recalled.card or card

    def _with_model_answers(self, conversation: Conversation, judgement: Judgement, decision: Decision) -> Decision:
        session = conversation.session
        if len(session.answered) > self._answers:
            answered = (*session.answered,)[self._answers :]
            self._answers += len(answered)
            decision = replace(decision, answered=answered, model_queries=sum(each.queries for each in answered))
        requests: Requests | None = session.requests
        if requests is None:
            return decision
        granted = tuple(requests.granted[self._granted :])
        self._granted += len(granted)
        person = decision.for_person
        if decision.answer == "ask":
            person = "\n".join([person, *map(line, requests.told(judgement.made.start))])
        queries, digest = decision.model_queries + len(granted), requests.digest(judgement.made.start)
        return replace(decision, request=digest, granted=granted, model_queries=queries, for_person=person)


def _decision(
    pack: Pack,
    judgement: Judgement,
    name: str,
    ruling: ApprovalRuling,
    weighed: Assessment | None,
    card: Card | None,
    shown: Sequence[LookedUp],
    earlier: Earlier,
    failures: int,
    looked: Resolved,
) -> Decision:
    """Build the decision on a judged call.

    `shown` contains results for the agent. `earlier` says whether the same call ran before. `failures` is the number of
    unclear answers to the call's card. `looked` contains the facts behind the decision.
    """
    call, grounds, approval = judgement.call, tuple(ruling.grounds), ruling.approval
    made, actions = judgement.made.call, performed_actions(judgement)
    answer, allowed, enforced = outcome(grounds)
    text = person = ""
    if answer != "allow":
        said = [ground for ground in grounds if ground.posture != "shadow"]
        worst, shows_card = gravest([ground.answer for ground in said]), card.text if card is not None else ""
        named = f"{call.tool}: {', '.join(each.name for each in actions)}" if actions else call.tool
        about: dict[str, Any] = {"card": shows_card, "shown": shown, "earlier": earlier, "failures": failures}
        text = feedback(pack, named, worst, said, runs=allowed, approval=approval, **about)
        shown_call = replace(made, arguments={**made.arguments, **unused_arguments(judgement)})
        person = for_person(shown_call, grounds, looked.known() if answer == "ask" else ())
    unguarded = not judgement.fault and is_unguarded(pack, judgement, grounds)
    parts = (answer, allowed, enforced, grounds, unguarded, text, person, approval)
    found = Decision(name, call.tool, dict(call.arguments), *parts, card=card, earlier=earlier)
    found = replace(found, actions=actions) if actions else found
    return found if weighed is None else replace(found, probability=weighed.p_action, interval=weighed.interval)


def unused_arguments(judgement: Judgement) -> dict[str, Any]:
    """Return the arguments of a generic call that none of its actions use."""
    return {name: value for part in judgement.parts or (judgement,) for name, value in part.made.untold.items()}


def performed_actions(judgement: Judgement) -> tuple[PerformedAction, ...]:
    if judgement.asked is None or judgement.otherwise:
        return ()
    made = [part.made.call for part in judgement.parts or (judgement,)]
    return tuple(PerformedAction(each.tool, each.arguments) for each in made if each.tool != judgement.asked.tool)


def _comes_first(ground: Ground) -> bool:
    return not ground.puts_card and (ground.answer != "ask" or any(each.whom == "user" for each in ground.questions))
