"""A live conversation and what the log keeps of it: taken up from there, and written there before anyone hears of it.

Each entry has its place in the conversation: where another process has gone on with it meanwhile, what it wrote is read
first, and the call is decided anew.
"""

import time as clocks
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from bylaw.engine.context import AnotherPrincipal, goes_on, is_of_one
from bylaw.engine.conversation import Conversation
from bylaw.engine.judgement import Judgement
from bylaw.errors import BylawError, UsageError
from bylaw.record.approval import draft
from bylaw.record.entry import Conflict, Entry
from bylaw.record.journal import Answers, LogError
from bylaw.record.log import Log
from bylaw.record.stop import Stop
from bylaw.record.use import Use
from bylaw.shield.approving import Approvals, Ruling
from bylaw.shield.call_decisions import Attempt, CallDecisions, Happening, Host, Wanted
from bylaw.shield.decision import Decision, Ground
from bylaw.shield.drafting import Drafting, given_back
from bylaw.shield.history import History, Named, Opening, note_interruption, read_history
from bylaw.shield.limiting import LatestUses, latest_uses
from bylaw.shield.recalled_card import Recalled, confirmation_of, recalled
from bylaw.shield.stopping import stops_of
from bylaw.shield.taken_request import Repeated, sent_again, taken_of
from bylaw.trace.event import Call, Card

TRIES = 200
"""How often a call is decided anew because others have gone on with the conversation."""
MISFITS = 3
"""How often something may not fit a log in which nothing was added."""


class SessionState(CallDecisions):
    """How one live conversation stands here, and how much of it the log has."""

    is_unsettled = False
    """What was read of the log may not be on disk yet, and nothing was written after it."""
    _written = 0
    """How many events of the conversation are in the log."""
    _recalled: Recalled | None = None
    """The card that was last put before by a caller that keeps the history itself, or how to name the next."""
    _first: Entry | None = None
    """The first entry of it in the log. One that was removed may have been begun anew by somebody else."""
    _conflicts = (0, 0)
    """With how many entries here something last did not fit the log, and how many times in a row."""
    _approvals: Approvals
    _uses: dict[int, list[Use]]
    """By step of the call, the places that it took under limits."""
    requests: set[str]
    """The names that senders gave to requests which were taken."""

    def __init__(self, shield: Host, log: Log, id: str, context: Mapping[str, Any] | None, by: str, lacks: str) -> None:
        super().__init__(shield, id or uuid.uuid4().hex, context, by, lacks)
        self.log = log
        self.is_named = self._may_be_known = self._may_be_new = bool(id)
        """Whether the log may hold it, and whether it may not."""
        self._unvouched = context
        """What the host gave as it opened the conversation, until something is written."""

    @property
    def has_news(self) -> bool:
        """Whether something happened that the log does not have yet."""
        return self.live is not None and bool(self.live.since(self._written))

    @property
    def must_read(self) -> bool:
        """Whether the log has to be read before anything is decided."""
        if self.live is None:
            return self._may_be_known or self.length > 0
        return self._others_may_have_written() or self._must_read_stops

    @property
    def _must_read_stops(self) -> bool:
        return self.log.must_read_stops(self._shield.tenant)

    def _others_may_have_written(self) -> bool:
        return self.log.others_may_have_written(self._shield.tenant, self.id)

    def take_for_new(self) -> bool:
        """Begin it without a look at the log, where nothing speaks for its being there; whether it was begun.

        If it is there, what is decided does not fit it, and cannot be written.
        """
        is_known = self.length or self.unwritten or self.is_held or not self._may_be_new or self._must_read_stops
        if self.live is not None or is_known or self.log.was_written_to(self._shield.tenant, self.id):
            return False
        self._may_be_known = False
        self.open()
        return True

    def open(self, *, settled: bool = True) -> Conversation:
        """The conversation as it stands here: begun, or taken up where the log says it was left."""
        return self.live if self.live is not None else self._load(settled=settled)

    def catch_up(self, *, settled: bool = True) -> None:
        """Open it, and take in what other processes have written meanwhile: no more than that is read.

        Where it need not be `settled`, it is on disk once anything is written after it, or `settle` returns.
        """
        if self._must_read_stops:
            self.log.read_stops(self._shield.tenant)
        if self.live is None or not self._others_may_have_written():
            self.open(settled=settled)
            return
        entries = self._read(after=self.length, settled=settled)
        if entries and not self._go_on(self.live, entries):
            self.forget()
            self.open(settled=settled)

    def happen(self, happening: Happening) -> None:
        """Let something happen; it is written with the next decision."""
        if self._shield.is_closed:
            hint = "say it before `close()`, or before the `with` of the shield ends"
            raise UsageError("the shield is closed: what happens now would not be written down", hint=hint)
        if not self.unwritten:
            self.catch_up()
        try:
            happening(self.open())
        except UsageError:
            if not self.was_overtaken():
                raise
            happening(self.open())
        self.unwritten.append(happening)

    def was_overtaken(self) -> bool:
        """Whether the log has more than is known here: what did not fit may fit then. All is read again if so."""
        if not self._read(after=self.length, settled=False):
            return False
        self.forget()
        return True

    def _read(self, *, after: int = 0, settled: bool) -> list[Entry]:
        entries = self.log.conversation(self._shield.tenant, self.id, after=after, settled=settled)
        self.is_unsettled = self.is_unsettled or bool(entries and not settled)
        return entries

    def settle(self) -> None:
        """Wait until all that was read is on disk: nobody may be told of it before, nor may it be kept for later."""
        if self.is_unsettled:
            try:
                self.log.settle()
            except BaseException:
                self.forget()
                raise
            self.is_unsettled = False

    def _go_on(self, live: Conversation, entries: Sequence[Entry]) -> bool:
        """Take in entries that others wrote; False where all has to be read again."""
        if self.length == 0 or self.unwritten or self.is_held:
            # What happened here and is not written comes after them.
            return False
        pack = self.pack
        opening = Opening(pack.name, pack.version, pack.digest)
        known = History(opening, [], [], [], self.length, yeses=self._yeses)
        news = read_history(entries, known)
        if news is None or news.handed_over or any(each.answered or each.granted for each in news.decisions):
            return False
        for decision in news.decisions:
            note_interruption(self.interrupted, decision)
        self.asked |= news.asked
        live.resume(news.events)
        self._approvals.take(news.approvals)
        self._uses |= {self._written + step: uses for step, uses in news.uses.items()}
        self.requests |= news.requests.keys()
        self.length = news.length
        self._written += len(news.events)
        self._decided += len(news.decisions)
        return True

    def forget(self) -> None:
        """Read the conversation from the log before anything else: what is not in it has not happened."""
        self.live = None
        self._may_be_known, self._may_be_new = True, False
        self.is_unsettled = False

    def taken_before(self, wanted: Wanted) -> list[Repeated] | None:
        """What was answered to this request, where that still stands; None where none of its name was taken."""
        self.open()
        if wanted.named is None or wanted.named.name not in self.requests:
            return None
        # What was answered is in the log alone; and others may have told of its result since, or stopped it.
        self.log.read_stops(self._shield.tenant)
        self.forget()
        self.open()
        history = read_history(self._read(settled=False))
        found = taken_of(history, wanted.named) if history is not None else None
        return None if found is None else [sent_again(self, *each, wanted.by) for each in found[: len(wanted.asked)]]

    def settled(self, wanted: Wanted) -> list[Decision]:
        """Let things happen and decide; on disk when this returns."""
        for _ in range(TRIES):
            self.catch_up()
            try:
                attempt = self.attempt(wanted)
            except UsageError:
                if not self.was_overtaken():
                    raise
                continue
            if wanted.again is not None and not attempt.decisions:
                return []
            try:
                answers = self.log.append(attempt.drafts)
            except BaseException:
                self.forget()
                raise
            if self.is_written(attempt, answers):
                return attempt.decisions
        raise overtaken(self.id)

    def attempt(self, wanted: Wanted) -> Attempt:
        """Let things happen and decide; it holds once its drafts are written."""
        try:
            attempt = self._tried(wanted)
        except BaseException:
            # Part of it may have been done; what the log holds was done whole.
            self.forget()
            raise
        if wanted.named is not None and attempt.drafts:
            attempt.drafts[0] = replace(attempt.drafts[0], id=wanted.named.id(self.id))
        return attempt

    def is_written(self, attempt: Attempt, answers: Answers, named: Named | None = None) -> bool:
        """Whether the attempt holds; if others were faster, it has not happened."""
        conflict = next((answer for answer in answers if isinstance(answer, Conflict)), None)
        if conflict is not None:
            if conflict.about == "stops":
                self.log.stops_changed(self._shield.tenant)
            elif not conflict.about:
                self._refuse_misfit()
            self.forget()
            return False
        self._conflicts, self._unvouched = (0, 0), None
        if attempt.drafts:
            self.is_unsettled = False
            if attempt.drafts[0].kind == "opening" and isinstance(answers[0], Entry):
                self._first = answers[0]
        if self.live is attempt.conversation:
            self.length += sum(each.conversation == self.id for each in attempt.drafts)
            self._decided += len(attempt.decisions)
            self._written = attempt.events
            del self.unwritten[: attempt.happened]
        if named is not None:
            self.requests.add(named.name)
        if not self.unwritten:
            # Everything that happened is written: the shield need not remember the session.
            self._shield.unwritten.pop(id(self), None)
        return True

    def _refuse_misfit(self) -> None:
        """Others who are faster add to the conversation. Where nothing was added, another try would end as this one."""
        length, times = self._conflicts
        self._conflicts = (self.length, times + 1 if length == self.length else 1)
        if self._conflicts[1] > MISFITS:
            self._conflicts = (0, 0)
            self.forget()
            counts = f"{self.length} entries of it are there, and the log has counted others"
            raise LogError(f"conversation `{self.id}` is not whole: {counts}; see `bylaw log verify`")

    def _load(self, *, settled: bool) -> Conversation:
        """Begin the conversation, or take it up where the log says it was left."""
        history, before, first = None, self._first, None
        self._marks.clear()
        if self._may_be_known or self.length:
            entries = self._read(settled=settled)
            history, first = read_history(entries), entries[0] if entries else None
        if history is None:
            self._first = None
            self.length = self._written = 0
            self._approvals, self._uses, self._yeses, self.requests = Approvals(), {}, {}, set()
            self.interrupted, self.asked = {}, {}
            conversation = self.begin()
        else:
            opening, given = history.opening, self._unvouched
            self.pack, self.postures = self._shield.pinned(opening)
            if given is not None and not self.postures.handover and not goes_on(opening.context, given):
                raise AnotherPrincipal(self.id)
            is_another = before is not None and first is not None and before.digest != first.digest
            if is_another and not self.postures.handover and not is_of_one(opening.context, self.context or {}):
                raise AnotherPrincipal(self.id)
            self._first = first
            self.context = opening.context
            self.by = opening.agent
            self._approvals = Approvals(history.approvals, handed_over=history.handed_over, before=history.before)
            self._yeses, self._uses = history.yeses, history.uses
            self.requests, self.interrupted, self.asked = {*history.requests}, history.interrupted, history.asked
            self.length, self._written, self._decided = history.length, len(history.events), len(history.decisions)
            conversation = self.begin(
                [each for decision in history.decisions for each in decision.answered],
                [each for decision in history.decisions for each in decision.granted],
            )
            conversation.resume(history.events)
            if self._unvouched and not self.postures.handover:
                conversation.vouch(self._unvouched)
        requests = conversation.session.requests
        self._told, self._granted = len(conversation.session.answered), 0 if requests is None else len(requests.granted)
        self._repeat(conversation)
        self.live = conversation
        return conversation

    def _repeat(self, conversation: Conversation) -> None:
        """What happened here and is not written yet happens after all that was written elsewhere."""
        if self.is_held and self.held_by not in self.unwritten:
            conversation.hold_turn()
        happened, self.unwritten = self.unwritten, []
        wrong: BylawError | None = None
        for happening in happened:
            try:
                happening(conversation)
                self.unwritten.append(happening)
            except BylawError as error:
                wrong = wrong or error
        if wrong is not None:
            raise wrong

    def _tried(self, wanted: Wanted) -> Attempt:
        conversation, tenant = self._led_up_to(wanted), self._shield.tenant
        self._recalled = None
        decisions, taking = self._found_again(wanted), list[Use]()
        if wanted.again is not None and not decisions:
            return Attempt(conversation, [])
        stops = self.log.stops(tenant)
        drafting = Drafting(conversation, self.id, self._written, self._uses)
        if self.length == 0:
            drafting.open(self.pack, self.context, self.by)
        for place, asking in enumerate(wanted.asked):
            started = clocks.perf_counter()
            beside = wanted.beside[place] if wanted.beside else ()
            given = (self._decided + place + 1, started, beside, wanted.by, stops, taking)
            judgement = asking(conversation)
            decision, changes, uses = self.decide_call(conversation, judgement, *given)
            if (found := self._recalled) is not None and (said := confirmation_of(found)) is not None:
                # The user has said yes to this card, which another request of the same history put.
                conversation.confirm(said, time=found.yes.time if found.yes is not None else None)
                call = judgement.made.call
                judgement = conversation.call(call.tool, call.arguments, id=call.id, time=call.time)
                decision, more, uses = self.decide_call(conversation, judgement, *given)
                changes = [*changes, *more]
                if decision.allowed:
                    drafting.add(found.used(tenant, call, decision.id))
            if uses:
                self._uses[judgement.made.step] = list(uses)
                taking += uses
            decisions.append(decision)
            found = self._recalled
            drafting.decide(decision, found.name_of(decision) if found is not None else "", uses)
            for change in changes:
                step = draft(tenant, self._approvals.homes.get(change.approval, self.id), change)
                # Others may say the same of it at this moment, and that is not this once more.
                drafting.add(replace(step, id=f"{step.id}:{self.id}") if self.is_told_whole else step)
        if wanted.again is not None:
            drafting.decide(decisions[0])
        drafting.take_events()
        drafts = drafting.drafts(tenant, self.length, self._first, stops)
        return Attempt(conversation, decisions, drafts, len(self.unwritten), drafting.written)

    def _latest_uses(self, conversation: Conversation, taking: Sequence[Use]) -> LatestUses:
        """What tells the places that calls have taken, where others of the turn are about to take some."""
        # What comes back with the refusals that this decision will be written after.
        written = conversation.since(self._written)
        returned = [use.decision for event in written for use in given_back(conversation, event, self._uses)]
        return latest_uses(self.log, self._shield.tenant, taking, returned)

    def _rule(self, conversation: Conversation, judgement: Judgement, grounds: Sequence[Ground], name: str) -> Ruling:
        """The grounds after what persons have said of the call."""
        now, terms, asked = self._shield.clock(), self.postures.approval, ""
        self._approvals.pass_on(conversation.handed_over)
        if self.is_told_whole:
            find = partial(self.log.asked, self._shield.tenant)
            pin = self.pack.pin
            asked = self._approvals.recall(judgement, grounds, conversation.context, find, terms, now, pin)
        ruling = self._approvals.rule(judgement, grounds, asked or name, now, terms, decision=name)
        left = self._approvals.left_behind()
        return replace(ruling, changes=[*left, *ruling.changes]) if left else ruling

    def _put_before(self, conversation: Conversation, card: Card, step: int, now: float) -> Card:
        """The card that was put in place of this one by a caller that keeps the history itself; this one otherwise."""
        if not self.is_told_whole or self._recalled is not None:
            return card
        whose, before = conversation.context, conversation.since(0)[:step]
        self._recalled = recalled(self.log, self._shield.tenant, card, whose, self.pack.pin, before, now)
        return self._recalled.card or card

    def stop_on(self, call: Call, by: str) -> Stop | None:
        """What a person has stopped that a call would fall under now; None where nothing is known here."""
        stops, now = self.log.stops(self._shield.tenant), self._shield.clock()
        return next(iter(stops_of(stops, self.pack, call.tool, {self.by, by, call.agent}, now)), None)


def overtaken(id: str) -> LogError:
    """What is said where others have been faster each time."""
    return LogError(f"others keep writing to conversation `{id}`: tried {TRIES} times")
