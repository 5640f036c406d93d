"""One live conversation and its calls, decided one after the other: what guards and rules say, what persons have said,
stopped and limited, and what the user is to be shown. What a log adds to that is `SessionState`."""

import time as clocks
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from bylaw.consent import digest as card_digest
from bylaw.engine.conversation import Conversation, OpenAnswers, OpenRequests
from bylaw.engine.door import as_object
from bylaw.engine.judgement import Judgement
from bylaw.engine.predicate_values import Answered
from bylaw.engine.request import Granted, Requests
from bylaw.facts.call_record import CallRecord, could_be_same_call, may_have_run
from bylaw.facts.ledger import Ledger
from bylaw.pack import Pack
from bylaw.policy.posture import Postures
from bylaw.record.approval import Change
from bylaw.record.entry import Draft
from bylaw.record.log import Log
from bylaw.record.stop import NO_STOPS, Stop, Stops
from bylaw.record.use import Use
from bylaw.shield.approving import Ruling
from bylaw.shield.decision import Decision, Earlier, Ground, Text, gravest, outcome
from bylaw.shield.feedback import line
from bylaw.shield.grounds import decide, find_grounds, of_doubt, of_rule, weigh
from bylaw.shield.history import Named, Opening, marked, note_interruption
from bylaw.shield.limiting import NO_PLACES, LatestUses, places_for
from bylaw.shield.resolving import RunTool, resolve
from bylaw.shield.stopping import stop_grounds
from bylaw.shield.unheard import stood_in, told_until_when
from bylaw.trace.event import Approved, Call, Card, LookedUp
from bylaw.trace.trajectory import Trajectory

Arguments = Mapping[str, Any] | str
Beside = Sequence[tuple[str, Arguments]]
Happening = Callable[[Conversation], object]
JudgeCall = Callable[[Conversation], Judgement]


class Host(Protocol):
    """What the sessions of one shield share."""

    pack: Pack
    postures: Postures
    log: Log | None
    tenant: str
    clock: Callable[[], float]
    tools: RunTool | None
    answers: OpenAnswers | None
    requests: OpenRequests | None
    doubts: Mapping[str, str]
    is_closed: bool
    unwritten: dict[int, Any]

    def pinned(self, opening: Opening | None = None) -> tuple[Pack, Postures]:
        """The pack of now, or the one that a conversation began under, with its postures."""
        ...


class Wanted(Struct, frozen=True):
    """What is to happen and to be decided at once."""

    asked: Sequence[JudgeCall]
    beside: Sequence[Beside] = ()
    """For each call, those that its turn makes after it."""
    first: Sequence[Happening] = ()
    """What happens before."""
    named: Named | None = None
    """The request that it is, where its sender gave it a name."""
    again: Callable[[], Decision | None] | None = None
    """Finds a decision from before, on a call that is interrupted now, or goes on; None where there is none by then."""
    by: str = ""
    """The name of the agent that asks; another than the conversation began with, where one hands it to another."""
    whose: Mapping[str, Any] | None = None
    """What the host vouches for with it; None where that is what it vouched for last."""


class Attempt(Struct, frozen=True):
    """Decisions that hold once they are written."""

    conversation: Conversation
    decisions: list[Decision]
    drafts: list[Draft] = []
    happened: int = 0
    """How many of the happenings that were not written before are among the drafts."""
    events: int = 0
    """How many events of the conversation are then in the log."""


class CallDecisions:
    """How one live conversation stands, and what decisions leave behind for later ones; for one thread at a time."""

    live: Conversation | None = None
    """The conversation as it stands; None where it has to be begun first."""
    length = 0
    """Entries in the log so far."""
    has_news = False
    """Whether something happened that a log does not have yet."""
    is_held = False
    """A turn of the agent has begun and not ended."""
    held_by: Happening | None = None
    """How it began."""
    puts_cards = False
    """The host puts cards and questions to the user itself, though it does not tell what else is said."""
    files_unheard = False
    """The host neither tells what the user says nor asks them: a person answers in their place."""
    hears_user = False
    """The host tells what is said: where it could not be taken once, what the user says next will be."""
    is_told_whole = False
    """The caller keeps the history itself, and tells all of it each time, in a conversation of its own."""
    _decided = 0
    """How many decisions there were so far."""
    _told = _granted = 0
    """How many answers of a model decisions have told of."""
    _is_last = False
    """Nothing comes after the decision: the conversation is dropped with it."""

    def __init__(self, shield: Host, id: str, context: Mapping[str, Any] | None, by: str, lacks: str) -> None:
        self._shield = shield
        self.id = id
        self.is_named = bool(id)
        self.context = context
        """What the host vouched for as it began."""
        self.speaks_for: Mapping[str, Any] = context or {}
        """What the host vouches for here: elsewhere somebody else may have gone on with the conversation."""
        self.by = by
        """The name that the agent's runs are counted under."""
        self.lacks = lacks
        self.pack, self.postures = shield.pinned()
        self.asked: dict[str, Decision] = {}
        """Decisions on calls, by their ids, that somebody was asked about."""
        self.interrupted: dict[str, Decision] = {}
        """Calls, by id, that were allowed, interrupted, and not taken up again yet."""
        self.unwritten: list[Happening] = []
        """What happened since the last entry in the log."""
        self._marks: dict[int, Decision] = {}
        """By step, decisions made here that rest on more than what the agent had seen."""
        self._yeses: dict[str, Approved] = {}
        """What persons said yes to, by approval."""

    def begin(self, known: Iterable[Answered] = (), granted: Iterable[Granted] = ()) -> Conversation:
        """A conversation in which nothing has happened yet."""
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
        conversation.interrupted = self.interrupted
        return conversation

    def open(self) -> Conversation:
        """The conversation as it stands here."""
        if self.live is None:
            self.live = self.begin()
        return self.live

    def catch_up(self) -> None:
        """Take in what others have done in it meanwhile: without a log, nobody has."""

    def happen(self, happening: Happening) -> None:
        """Let something happen."""
        happening(self.open())

    def speak(self, conversation: Conversation) -> None:
        """Whoever is vouched for here speaks, where somebody else may have gone on elsewhere."""
        if self.postures.handover:
            conversation.vouch(self.speaks_for)

    def settled(self, wanted: Wanted) -> list[Decision]:
        """Let things happen and decide."""
        return self.attempt(wanted).decisions

    @property
    def vouched(self) -> Mapping[str, Any]:
        """What the host vouches for by now."""
        return self.live.context if self.live is not None else self.context or {}

    def trajectory(self, agent: str) -> Trajectory:
        """The conversation so far, as its export tells it."""
        events = list(self.open().events)
        for step, decision in self._marks.items():
            events[step] = marked(events[step], decision, self._yeses)
        return Trajectory(self.id, events, agent or self.by, context=dict(self.context or {}))

    def attempt(self, wanted: Wanted) -> Attempt:
        """The same; it holds once it is written."""
        conversation, decisions = self._led_up_to(wanted), self._found_again(wanted)
        for place, asking in enumerate(wanted.asked):
            started = clocks.perf_counter()
            given = (self._decided + place + 1, started, wanted.beside[place] if wanted.beside else (), wanted.by)
            decisions.append(self.decide_call(conversation, asking(conversation), *given)[0])
        self._decided += len(decisions)
        return Attempt(conversation, decisions)

    def _found_again(self, wanted: Wanted) -> list[Decision]:
        """The decision from before that is wanted once more, if it is still there to be found."""
        found = wanted.again() if wanted.again is not None else None
        if found is None:
            return []
        note_interruption(self.interrupted, found)
        return [found]

    def _led_up_to(self, wanted: Wanted) -> Conversation:
        """The conversation after what is to happen before calls are decided."""
        conversation = self.open()
        if wanted.whose is not None:
            conversation.vouch(wanted.whose)
        elif wanted.asked and self.postures.handover:
            conversation.vouch(self.speaks_for)
        for happening in wanted.first:
            happening(conversation)
        return conversation

    def decide_alone(self, messages: Sequence[Any], tool: str, arguments: Arguments, id: str) -> Decision:
        """The one decision of a caller that keeps the history itself, where no log is kept: what `attempt` comes to."""
        self.is_told_whole = self._is_last = True
        conversation, started = self.begin(), clocks.perf_counter()
        judgement = conversation.asked(messages, tool, arguments, id=id, time=self._shield.clock())
        return self.decide_call(conversation, judgement, 1, started)[0]

    def decide_call(
        self,
        conversation: Conversation,
        judgement: Judgement,
        number: int,
        started: float,
        beside: Beside = (),
        by: str = "",
        stops: Stops = NO_STOPS,
        taking: Sequence[Use] = (),
    ) -> tuple[Decision, Sequence[Change], Sequence[Use]]:
        """The decision on a judged call, what is to be written of approvals, and the places that it takes."""
        call, session, pack, postures = judgement.made.call, conversation.session, self.pack, self.postures
        name = f"{self.id}/{number}" if self.id else str(number)
        weighed = weigh(session, judgement)
        grounds: Sequence[Ground] = find_grounds(session, postures, judgement, self.lacks, weighed)
        resolved: tuple[LookedUp, ...] = ()
        evidence = grounds
        shows = postures.resolve == "show"
        may_resolve = postures.resolve != "agent" and not self.lacks and not self._cannot_show
        if may_resolve and self._shield.tools is not None:
            grounds, resolved = resolve(postures, conversation, judgement, grounds, self._shield.tools)
            if shows and gravest([ground.answer for ground in grounds]) != "deny":
                # The agent is shown it, and decides anew.
                grounds = evidence
        if beside:
            others = [Call(tool, as_object(arguments)[0], turn=call.turn) for tool, arguments in beside]
            shape = session.beside(judgement, others)
            grounds = [*(of_rule(pack, postures, each, call.tool, "deny") for each in shape), *grounds]
        if stops.standing:
            now = self._shield.clock()
            grounds = [*stop_grounds(stops, pack, judgement, {self.by, by}, now), *grounds]
        if because := self._shield.doubts.get(call.tool):
            grounds = [of_doubt(postures, call.tool, because), *grounds]
        places = NO_PLACES
        if pack.book.limits:
            now, latest = clocks.time(), self._latest_uses(conversation, taking)
            asked = (call, name, by or self.by, conversation.context, latest, now)
            places = places_for(pack, postures, *asked)
            grounds = [*places.grounds, *grounds]
        if not grounds or grounds[0].answer == "allow":
            # Those that object come first.
            pass
        elif self.puts_cards:
            if not self.hears_user:
                grounds = told_until_when(grounds, conversation.since(0), card_digest(call.tool, call.arguments))
        elif session.ledger.is_last_unheard():
            grounds = stood_in(grounds, postures.approval, hears=self.hears_user, files=self.files_unheard)
        ruling = self._rule(conversation, judgement, grounds, name)
        earlier: Earlier = "" if outcome(ruling.grounds)[1] else earlier_run(session.ledger, judgement.made)
        card = self._card(conversation, judgement, ruling, name, is_repeated=earlier == "perhaps")
        failures = conversation.cards.failures(card.digest, judgement.made.step) if card is not None else 0
        shown = tuple([replace(each, shown=True) for each in resolved]) if shows else ()
        decision = decide(
            pack, judgement, ruling.grounds, name, ruling.approval, weighed, card, shown, earlier, failures
        )
        if resolved:
            # What runs all the same, under a softer posture, the agent has made without them.
            resolved = resolved if decision.allowed else shown or resolved
            decision = replace(decision, resolved=resolved, evidence=tuple(evidence))
        if not decision.allowed and not self._is_last:
            conversation.refuse(card, shown)
        if decision.resolved or decision.approval:
            self._marks[judgement.made.step] = decision
        if len(session.answered) > self._told:
            answered = (*session.answered,)[self._told :]
            self._told += len(answered)
            decision = replace(decision, answered=answered, model_queries=sum(each.queries for each in answered))
        if session.requests is not None:
            decision = self._requested(session.requests, judgement, decision)
        if decision.is_put:
            self.asked[call.id] = decision
        # Nobody has seen it yet.
        force_setattr(decision, "seconds", clocks.perf_counter() - started)
        changes = [_for_person(change, decision) for change in ruling.changes] if ruling.changes else ()
        return decision, changes, places.uses if decision.allowed else ()

    @property
    def _cannot_show(self) -> bool:
        """Where the caller tells the history each time, what was shown with a refusal would be forgotten."""
        return self.postures.resolve == "show" and self.is_told_whole

    def _latest_uses(self, conversation: Conversation, taking: Sequence[Use]) -> LatestUses | None:
        """What tells the places that calls have taken under the pack's limits; None where nobody counts them."""
        return None

    def _rule(self, conversation: Conversation, judgement: Judgement, grounds: Sequence[Ground], name: str) -> Ruling:
        """The grounds after what persons have said of the call."""
        return Ruling(grounds)

    def _card(
        self, conversation: Conversation, judgement: Judgement, ruling: Ruling, name: str, *, is_repeated: bool
    ) -> Card | None:
        """The card to show the user, if the call waits for nothing but their yes, or for that and an approval.

        Look-ups and other questions come first. A call that nobody can allow gets no card.
        """
        firm = [each for each in ruling.grounds if each.answer != "allow" and each.posture == "enforce"]
        if not firm or not any(each.puts_card for each in firm) or any(map(_comes_first, firm)):
            return None
        if not ruling.approval and not all(each.puts_card for each in firm):
            return None
        text = conversation.cards.text(judgement.made, is_repeated=is_repeated)
        if not text:
            return None
        call = judgement.made.call
        now = call.time if call.time is not None else self._shield.clock()
        digest, step = card_digest(call.tool, call.arguments), judgement.made.step
        if conversation.cards.is_declined_otherwise(judgement.made, digest, now):
            return None
        # One prompt for one write: the card that waits is not put a second time.
        card = conversation.cards.waiting(digest, step)
        if card is not None and card.text == text and card.expires is not None and now < card.expires:
            return card
        return self._put_before(conversation, Card(name, digest, text, now + conversation.cards.lifetime), step, now)

    def _put_before(self, conversation: Conversation, card: Card, step: int, now: float) -> Card:
        """The card that was put in place of this one by a caller that keeps the history itself; this one otherwise."""
        return card

    def _requested(self, requests: Requests, judgement: Judgement, decision: Decision) -> Decision:
        """A decision with what the request allows that the call was held to."""
        granted = tuple(requests.granted[self._granted :])
        self._granted += len(granted)
        queries = decision.model_queries + len(granted)
        person = decision.to_person
        if decision.answer == "ask":
            lines, first = requests.told(judgement.made.start), person
            person = Text(lambda: "\n".join([str(first), *(line(each) for each in lines)]))
        digest = requests.digest(judgement.made.start)
        return replace(decision, request=digest, granted=granted, model_queries=queries, to_person=person)

    @property
    def now(self) -> float:
        """What the shield's clock says."""
        return self._shield.clock()

    def has_new_doubt(self, decision: Decision) -> bool:
        """Whether the host has something against a tool that it had not when a call of it was decided on."""
        return decision.tool in self._shield.doubts and all(each.kind != "doubt" for each in decision.grounds)

    def stop_on(self, call: Call, by: str) -> Stop | None:
        """What a person has stopped that a call would fall under now; None where nothing is known here."""
        return None


def earlier_run(ledger: Ledger, made: CallRecord) -> Earlier:
    """Whether the same call was carried out since the user last wrote something."""
    since = ledger.said[-1][0] if ledger.said else -1
    found: Earlier = ""
    for write in reversed(ledger.writes):
        if write.step <= since:
            break
        if write.step < made.step and may_have_run(write, made.step) and could_be_same_call(write, made):
            is_known = write.accepted and write.is_answered_at(made.step) and not write.is_doubtful()
            if not is_known:
                return "perhaps"
            found = "done"
    return found


def _comes_first(ground: Ground) -> bool:
    """Whether what a ground says has to be settled before the call is put to the user."""
    return not ground.puts_card and (ground.answer != "ask" or any(each.whom == "user" for each in ground.questions))


def _for_person(change: Change, decision: Decision) -> Change:
    """What is to be written about an approval; a question goes with what the decision says to a person."""
    return replace(change, for_person=decision.for_person) if change.status == "waiting" else change
