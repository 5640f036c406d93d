"""A live conversation and what the log keeps of it: taken up from there, and written there before anyone hears of it.

Each entry has its place in the conversation: where another process has gone on with it meanwhile, what it wrote is read
first, and the call is decided anew.
"""

import time as clocks
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from bylaw.engine.context import AnotherPrincipal, goes_on, is_of_one
from bylaw.engine.conversation import Conversation
from bylaw.errors import BylawError, UsageError
from bylaw.record.approval import draft
from bylaw.record.entry import Conflict, Entry
from bylaw.record.journal import Answers, LogError
from bylaw.record.log import Log
from bylaw.record.stop import NO_STOPS
from bylaw.record.use import Use
from bylaw.shield.approving import Approvals
from bylaw.shield.call_decisions import Attempt, CallDecisions, Happening, Host, Wanted
from bylaw.shield.decision import Decision
from bylaw.shield.drafting import Drafting
from bylaw.shield.history import History, Named, Opening, marked, note_interruption, read_history
from bylaw.shield.recalled_card import confirmation_of
from bylaw.shield.stopping import told
from bylaw.trace.event import Approved, Call
from bylaw.trace.trajectory import Trajectory

TRIES = 200
"""How often a call is decided anew because others have gone on with the conversation."""
MISFITS = 3
"""How often something may not fit a log in which nothing was added."""

DONE_BEFORE = "Made before, and its result is known: do not make it again"
"""What is told of a call whose request comes again after its result."""


class SessionState(CallDecisions):
    """How one live conversation stands here, and how much of it the log has; for one thread at a time."""

    live: Conversation | None = None
    """The conversation as it stands; None where it has to be read from the log first."""
    is_held = False
    """A turn of the agent has begun and not ended."""
    held_by: Happening | None = None
    """How it began."""
    is_unsettled = False
    """What was read of the log may not be on disk yet, and nothing was written after it."""
    _length = _decided = 0
    """Entries and decisions in the log so far."""
    _first: Entry | None = None
    """The first entry of it in the log. One that was removed may have been begun anew by somebody else."""
    _conflicts = (0, 0)
    """With how many entries here something last did not fit the log, and how many times in a row."""
    _yeses: dict[str, Approved]
    """What persons said yes to, by approval."""
    _requests: dict[str, tuple[str, list[Decision] | None]]
    """Requests that were taken, by the names their senders gave them: the digest of each, and what was answered;
    None where the log has to be asked."""

    def __init__(self, shield: Host, id: str, context: Mapping[str, Any] | None, by: str, lacks: str) -> None:
        super().__init__(shield, id or (uuid.uuid4().hex if shield.log is not None else ""), by, lacks)
        self._may_be_known = self._may_be_new = bool(id)
        """Whether the log may hold it, and whether it may not."""
        self.is_named = bool(id)
        self.context = context
        self.speaks_for: Mapping[str, Any] = dict(context or {})
        """What the host vouches for here: elsewhere somebody else may have gone on with the conversation."""
        self._unvouched = context
        """What the host gave as it opened the conversation, until something is written."""
        self.unwritten: list[Happening] = []
        """What happened since the last entry in the log."""
        self.interrupted: dict[str, Decision] = {}
        """Calls, by id, that were allowed, interrupted, and not taken up again yet."""

    @property
    def has_begun(self) -> bool:
        """Whether anything of it was found in the log, or written there."""
        return self._length > 0

    @property
    def has_news(self) -> bool:
        """Whether something happened that the log does not have yet."""
        return self.live is not None and bool(self.live.since(self._written))

    @property
    def must_read(self) -> bool:
        """Whether the log has to be read before anything is decided."""
        if self.live is None:
            return self._log is not None and (self._may_be_known or self._length > 0)
        return self._others_may_have_written() or self._must_read_stops

    @property
    def _must_read_stops(self) -> bool:
        return self._log is not None and self._log.must_read_stops(self._shield.tenant)

    def _others_may_have_written(self) -> bool:
        return self._log is not None and self._log.others_may_have_written(self._shield.tenant, self.id)

    def take_for_new(self) -> bool:
        """Begin it without a look at the log, where nothing speaks for its being there; whether it was begun.

        If it is there, what is decided does not fit it, and cannot be written.
        """
        log = self._log
        is_known = self._length or self.unwritten or self.is_held or not self._may_be_new
        is_known = is_known or self._must_read_stops
        if log is None or self.live is not None or is_known or log.was_written_to(self._shield.tenant, self.id):
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
        log = self._log
        if log is not None and self._must_read_stops:
            log.read_stops(self._shield.tenant)
        if self.live is None or log is None or not self._others_may_have_written():
            self.open(settled=settled)
            return
        entries = self._read(log, after=self._length, settled=settled)
        if entries and not self._go_on(self.live, entries):
            self.forget()
            self.open(settled=settled)

    def was_overtaken(self) -> bool:
        """Whether the log has more than is known here: what did not fit may fit then. All is read again if so."""
        log = self._log
        if log is None or not self._read(log, after=self._length, settled=False):
            return False
        self.forget()
        return True

    def _read(self, log: Log, *, after: int = 0, settled: bool) -> list[Entry]:
        entries = log.conversation(self._shield.tenant, self.id, after=after, settled=settled)
        self.is_unsettled = self.is_unsettled or bool(entries and not settled)
        return entries

    def settle(self) -> None:
        """Wait until all that was read is on disk: nobody may be told of it before, nor may it be kept for later."""
        if self.is_unsettled and self._log is not None:
            try:
                self._log.settle()
            except BaseException:
                self.forget()
                raise
            self.is_unsettled = False

    def _go_on(self, live: Conversation, entries: Sequence[Entry]) -> bool:
        """Take in entries that others wrote; False where all has to be read again."""
        if self._length == 0 or self.unwritten or self.is_held:
            # What happened here and is not written comes after them.
            return False
        pack = self.decider.pack
        opening = Opening(pack.name, pack.version, pack.digest)
        known = History(opening, [], [], [], self._length, yeses=self._yeses)
        news = read_history(entries, known)
        if (
            news is None
            or news.handed_over
            or any(decision.answered or decision.granted for decision in news.decisions)
        ):
            return False
        for decision in news.decisions:
            note_interruption(self.interrupted, decision)
        self.asked |= news.asked
        live.resume(news.events)
        self._approvals.take(news.approvals)
        self._uses |= {self._written + step: uses for step, uses in news.uses.items()}
        self._requests |= _answered(news)
        self._length = news.length
        self._written += len(news.events)
        self._decided += len(news.decisions)
        return True

    def trajectory(self, agent: str) -> Trajectory:
        """The conversation so far, as its export tells it."""
        events = list(self.open().events)
        for step, decision in self._marks.items():
            events[step] = marked(events[step], decision, self._yeses)
        return Trajectory(self.id, events, agent or self.by, context=dict(self.context or {}))

    @property
    def vouched(self) -> Mapping[str, Any]:
        """What the host vouches for by now."""
        return self.live.context if self.live is not None else self.context or {}

    def forget(self) -> None:
        """Read the conversation from the log before anything else: what is not in it has not happened."""
        self.live = None
        self._may_be_known, self._may_be_new = True, False
        self.is_unsettled = False

    def taken_before(self, named: Named, calls: int, by: str = "") -> list[Decision] | None:
        """What was answered to this request; None where none of its name was taken."""
        self.open()
        digest, found = self._requests.get(named.name, ("", None))
        if digest:
            # What was answered may be in the log alone; and others may have told of its result since, or stopped it.
            if self._log is not None:
                self._log.read_stops(self._shield.tenant)
            self.forget()
            self.open()
            digest, found = self._requests.get(named.name, ("", None))
        if digest and digest != named.digest:
            raise UsageError(
                f"request `{named.name}` was used for something else", hint="give each request a name of its own"
            )
        return [self._sent_again(each, by) for each in found[:calls]] if found is not None else None

    def _sent_again(self, decision: Decision, by: str) -> Decision:
        """What was decided; and whether the call has been answered since, so that nobody makes it a second time."""
        if not decision.allowed:
            return decision
        conversation = self.open()
        made = [
            event
            for event in conversation.events
            if isinstance(event, Call) and not event.refused and _is_of(event, decision)
        ]
        waiting = [call for call in conversation.waiting() if _is_of(call, decision)]
        if len(waiting) == len(made):
            stop = self.stop_on(decision.tool, by)
            return decision if stop is None else replace(decision, allowed=False, to_agent=f"{told(stop)}.")
        tool = self.decider.pack.schema.tools.get(decision.tool)
        if tool is not None and tool.effect != "write":
            return replace(decision, is_over=True)
        return replace(decision, is_over=True, allowed=False, to_agent=f"{DONE_BEFORE} ({decision.tool}).")

    def attempt(self, wanted: Wanted) -> Attempt:
        """Let things happen and decide; it holds once its drafts are written."""
        try:
            attempt = self._tried(wanted)
        except BaseException:
            if self._log is not None:
                # Part of it may have been done; what the log holds was done whole.
                self.forget()
            raise
        if wanted.named is not None and attempt.drafts:
            attempt.drafts[0] = replace(attempt.drafts[0], id=wanted.named.id(self.id))
        return attempt

    def write(self, attempt: Attempt) -> bool:
        """Write an attempt to the log, where there is one; False where others were faster."""
        if self._log is None:
            return True
        try:
            answers = self._log.append(attempt.drafts)
        except BaseException:
            self.forget()
            raise
        return self.is_written(attempt, answers)

    def overtaken(self) -> LogError:
        """What is said where others have been faster each time."""
        return LogError(f"others keep writing to conversation `{self.id}`: tried {TRIES} times")

    def is_written(self, attempt: Attempt, answers: Answers, named: Named | None = None) -> bool:
        """Whether the attempt holds; if others were faster, it has not happened."""
        conflict = next((answer for answer in answers if isinstance(answer, Conflict)), None)
        if conflict is not None:
            if conflict.about == "stops" and self._log is not None:
                self._log.stops_changed(self._shield.tenant)
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
            self._length += sum(each.conversation == self.id for each in attempt.drafts)
            self._decided += len(attempt.decisions)
            self._written = attempt.events
            del self.unwritten[: attempt.happened]
        if named is not None:
            # The answer to the last request alone is kept at hand.
            if self._requests:
                last = next(reversed(self._requests))
                self._requests[last] = (self._requests[last][0], None)
            self._requests[named.name] = (named.digest, attempt.decisions)
        if not self.unwritten:
            # Everything that happened is written: the shield need not remember the session.
            self._shield.unwritten.pop(id(self), None)
        return True

    def _refuse_misfit(self) -> None:
        """Others who are faster add to the conversation. Where nothing was added, another try would end as this one."""
        length, times = self._conflicts
        self._conflicts = (self._length, times + 1 if length == self._length else 1)
        if self._conflicts[1] > MISFITS:
            self._conflicts = (0, 0)
            self.forget()
            counts = f"{self._length} entries of it are there, and the log has counted others"
            raise LogError(f"conversation `{self.id}` is not whole: {counts}; see `bylaw log verify`")

    def _load(self, *, settled: bool) -> Conversation:
        """Begin the conversation, or take it up where the log says it was left."""
        history, before, first = None, self._first, None
        self._marks.clear()
        if self._log is not None and (self._may_be_known or self._length):
            entries = self._read(self._log, settled=settled)
            history, first = read_history(entries), entries[0] if entries else None
        if history is None:
            self._first = None
            self._length = self._written = 0
            self._approvals, self._requests, self._yeses, self._uses = Approvals(), {}, {}, {}
            if self._log is not None:
                self.interrupted, self.asked = {}, {}
            conversation = self.begin(self.context)
        else:
            opening, given = history.opening, self._unvouched
            self.decider = self._shield.decider(opening)
            if given is not None and not self.decider.postures.handover and not goes_on(opening.context, given):
                raise AnotherPrincipal(self.id)
            is_another = before is not None and first is not None and before.digest != first.digest
            if is_another and not self.decider.postures.handover and not is_of_one(opening.context, self.context or {}):
                raise AnotherPrincipal(self.id)
            self._first = first
            self.context = opening.context
            self.by = opening.agent
            self._approvals = Approvals(history.approvals, handed_over=history.handed_over, before=history.before)
            self._yeses, self._uses = history.yeses, history.uses
            self._requests, self.interrupted, self.asked = _answered(history), history.interrupted, history.asked
            self._length, self._written, self._decided = history.length, len(history.events), len(history.decisions)
            conversation = self.begin(
                self.context,
                [each for decision in history.decisions for each in decision.answered],
                [each for decision in history.decisions for each in decision.granted],
            )
            conversation.resume(history.events)
            if self._unvouched and not self.decider.postures.handover:
                conversation.vouch(self._unvouched)
        requests = conversation.session.requests
        self._told, self._granted = len(conversation.session.answered), 0 if requests is None else len(requests.granted)
        self._repeat(conversation)
        self.live = conversation
        return conversation

    def speak(self, conversation: Conversation) -> None:
        """Whoever is vouched for here speaks, where somebody else may have gone on elsewhere."""
        if self.decider.postures.handover:
            conversation.vouch(self.speaks_for)

    def _repeat(self, conversation: Conversation) -> None:
        """What happened here and is not written yet happens after all that was written elsewhere."""
        if self.is_held and self.held_by not in self.unwritten:
            conversation.hold_on()
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
        conversation, beside, log, tenant = self.open(), wanted.beside, self._log, self._shield.tenant
        self._recalled = None
        if wanted.whose is not None:
            conversation.vouch(wanted.whose)
        elif wanted.asked:
            self.speak(conversation)
        for happening in wanted.first:
            happening(conversation)
        decisions: list[Decision] = []
        taking: list[Use] = []
        stops = log.stops(tenant) if log is not None else NO_STOPS
        drafting = Drafting(conversation, self.id, self._written, self._uses) if log is not None else None
        if drafting is not None and self._length == 0:
            drafting.open(self.decider.pack, self.context, self.by)
        for place, asking in enumerate(wanted.asked):
            started = clocks.perf_counter()
            number = self._decided + len(decisions) + 1
            given = (number, started, beside[place] if beside else (), stops, taking, wanted.by)
            judgement = asking(conversation)
            decision, changes, uses = self.decide_call(conversation, judgement, *given)
            if (found := self._recalled) is not None and (said := confirmation_of(found)) is not None:
                # The user has said yes to this card, which another request of the same history put.
                conversation.confirm(said, time=found.yes.time if found.yes is not None else None)
                call = judgement.made.call
                again = conversation.call(call.tool, call.arguments, id=call.id, time=call.time)
                decision, more, uses = self.decide_call(conversation, again, *given)
                changes = [*changes, *more]
                if decision.allowed and drafting is not None:
                    drafting.add(found.used(tenant, call, decision.id))
            taking += uses
            decisions.append(decision)
            if drafting is not None:
                drafting.decide(decision, self._card_name(decision), uses)
                for change in changes:
                    step = draft(tenant, self._approvals.homes.get(change.approval, self.id), change)
                    # Others may say the same of it at this moment, and that is not this once more.
                    drafting.add(replace(step, id=f"{step.id}:{self.id}") if self.is_told_whole else step)
        if drafting is None:
            self._decided += len(decisions) + len(wanted.repeated)
            return Attempt(conversation, 0, [*decisions, *wanted.repeated], [], 0)
        for decision in wanted.repeated:
            decisions.append(decision)
            drafting.decide(decision)
        drafting.take_events()
        drafts = drafting.drafts(tenant, self._length, self._first, stops)
        return Attempt(conversation, len(self.unwritten), decisions, drafts, drafting.written)


def _is_of(call: Call, decision: Decision) -> bool:
    return call.tool == decision.tool and call.arguments == decision.arguments


def _answered(history: History) -> dict[str, tuple[str, list[Decision] | None]]:
    """The requests of a history by name, each with its digest and what was answered from it on."""
    return {name: (digest, history.decisions[start:]) for name, (digest, start) in history.requests.items()}
