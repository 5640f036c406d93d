"""One live conversation under a shield: what happens is said as it happens, and each call is decided before it runs.

With a log, a decision and all that led to it are on disk before its answer is given. What is said in between is written
with the next decision, by `flush`, or where the `with` ends. Each entry has its place in the conversation: where
another worker has gone on with it meanwhile, it is read again from the log and the call is decided anew.
"""

import asyncio
import threading
import time as clocks
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from msgspec import Struct
from msgspec.structs import replace

from bylaw.engine.asking import Answered
from bylaw.engine.conversation import Conversation
from bylaw.engine.judgement import Judgement
from bylaw.engine.pack import Pack
from bylaw.errors import BylawError, UsageError
from bylaw.record.approval import Change, draft
from bylaw.record.entry import Conflict, Draft, Kind
from bylaw.record.journal import Answers, LogError
from bylaw.shield import door
from bylaw.shield.approving import Approvals, Ruling
from bylaw.shield.deciding import Decider
from bylaw.shield.decision import Decision, Ground, Resolved
from bylaw.shield.history import Named, decision_body, encode, event_body, opening_of, read_history, writable
from bylaw.shield.lost import is_lost
from bylaw.shield.resolving import resolve
from bylaw.trace.event import Event
from bylaw.trace.trajectory import Trajectory

if TYPE_CHECKING:
    from bylaw.shield.shield import Shield

TRIES = 20
"""How often a call is decided anew because others have gone on with the conversation."""

Happening = Callable[[Conversation], object]
Asking = Callable[[Conversation], Judgement]
Arguments = Mapping[str, Any] | str
AskedCall = tuple[str, Arguments] | tuple[str, Arguments, str]
Beside = Sequence[tuple[str, Arguments]]


class Attempt(Struct, frozen=True):
    """Decisions that hold once they are written."""

    conversation: Conversation
    happened: int
    """How many of the happenings that were not written before are among the drafts."""
    decisions: list[Decision]
    drafts: list[Draft]
    events: int
    """How many events of the conversation are then in the log."""


class Guarded:
    """One live conversation under a shield."""

    def __init__(
        self,
        shield: "Shield",
        id: str = "",
        context: Mapping[str, Any] | None = None,
        by: str = "",
        *,
        lacks: str = "",
    ) -> None:
        self.shield = shield
        self.lacks = lacks
        self._log = shield.log
        self._may_be_known = bool(id)
        self.id = id or (uuid.uuid4().hex if self._log is not None else "")
        self._context = context
        self._by = by
        """The name that the agent's runs are counted under."""
        self._live: Conversation | None = None
        """The conversation as it stands; None where it has to be read from the log first."""
        self._decider: Decider = shield.decider()
        self._unwritten: list[Happening] = []
        """What happened since the last entry in the log."""
        self._length = self._written = self._decided = 0
        """Entries, events and decisions in the log so far."""
        self._told = 0
        """How many answers of a model decisions have told of."""
        self._approvals = Approvals()
        self._requests: dict[str, tuple[str, list[Decision] | None]] = {}
        """Requests that were taken, by the names their senders gave them: the digest of each, and what was answered;
        None where the log has to be asked."""
        self._is_held = False
        self._lock = threading.RLock()
        """One thing at a time: frameworks run tools in threads of their own."""
        self._queue: asyncio.Lock | None = None

    def user(self, text: str, *, time: float | None = None) -> None:
        """The user said something."""
        said, at = door.text(text, "what the user said"), self._time(time)
        self._happen(lambda conversation: conversation.user(said, time=at))

    def agent(self, text: str, *, time: float | None = None) -> None:
        """The agent said something."""
        said, at = door.text(text, "what the agent said"), self._time(time)
        self._happen(lambda conversation: conversation.agent(said, time=at))

    def unheard(self) -> None:
        """Agent and user may have talked, and nobody told: rules about their words are open from here on."""
        self._happen(Conversation.unheard)

    def resume_turn(self) -> None:
        """What is decided next is still of the agent's last turn, whatever tools have answered since."""
        self._happen(Conversation.resume_turn)

    def messages(self, messages: Iterable[Any]) -> None:
        """Messages of the conversation so far, calls and results among them: what happened, not to be decided."""
        given = door.messages(messages)
        self._happen(lambda conversation: conversation.messages(given))

    def result(
        self,
        content: Any,
        *,
        id: str = "",
        error: bool | None = None,
        captured: bool = True,
        time: float | None = None,
    ) -> None:
        """What the tool answered; or, after a refusal, what the agent was told in its place.

        Without `id` it is the answer to the earliest call that waits: where several calls of one tool do, it needs one.
        """
        id = door.text(id, "the id of a call")
        error = None if error is None else door.yes_or_no(error, "`error`")
        captured = door.yes_or_no(captured, "`captured`")
        shown, at = writable(content) if isinstance(content, str) else content, self._time(time)

        def answer(conversation: Conversation) -> None:
            if not id:
                door.one_waits(conversation.waiting())
            conversation.result(shown, id=id, error=error, captured=captured, time=at)

        self._happen(answer)

    def decide(self, tool: str, arguments: Arguments, *, id: str = "", time: float | None = None) -> Decision:
        """Whether the agent may make a call now. A call that is not allowed counts as refused before it ran."""
        return self._settle([self._asking(tool, arguments, id, time=time)])[0]

    async def decide_async(
        self, tool: str, arguments: Arguments, *, id: str = "", time: float | None = None
    ) -> Decision:
        """The same, for a coroutine: only the log is waited for."""
        return (await self._settle_async([self._asking(tool, arguments, id, time=time)]))[0]

    def decide_turn(self, text: str, calls: Sequence[AskedCall], *, time: float | None = None) -> list[Decision]:
        """Whether the agent may make the calls of a turn, `(tool, arguments)` or `(tool, arguments, id)` each.

        They are decided in their order, each for the turn as a whole: where a policy is about its shape, such as one
        call at a time, the first may be refused for what comes beside it.
        """
        asked, beside = self._turn_of(calls, time)
        with self.turn(text):
            return self._settle(asked, beside)

    async def decide_turn_async(
        self, text: str, calls: Sequence[AskedCall], *, time: float | None = None
    ) -> list[Decision]:
        """The same, for a coroutine."""
        asked, beside = self._turn_of(calls, time)
        with self.turn(text):
            return await self._settle_async(asked, beside)

    def _turn_of(self, calls: Sequence[AskedCall], time: float | None) -> tuple[list[Asking], list[Beside]]:
        calls = door.calls(calls)
        asked = [self._asking(tool, arguments, *id, time=time) for tool, arguments, *id in calls]
        later: list[Beside] = [
            [(tool, arguments) for tool, arguments, *_ in calls[place:]] for place in range(1, len(calls) + 1)
        ]
        return asked, later

    async def take_async(
        self, happenings: Sequence[Happening], calls: Sequence[AskedCall] = (), *, named: Named | None = None
    ) -> list[Decision]:
        """Let things happen and then decide on calls of one turn, all of it or, where any of it is wrong, nothing.

        A request with a name is taken once: sent again, nothing happens, and the same is answered. Another request of
        that name is refused.
        """
        if self._live is None and self._log is not None:
            await asyncio.to_thread(self._ready)
        asked, beside = self._turn_of(calls, None)
        if len(calls) > 1:
            self._refuse_nesting()
            hold: Happening = lambda conversation: conversation.hold()  # noqa: E731
            happenings = [*happenings, hold]
        try:
            return await self._settle_async(asked, beside, happenings, named)
        finally:
            if len(calls) > 1:
                self._happen(Conversation.let_go)

    def _taken_before(self, named: Named, calls: int) -> list[Decision] | None:
        """What was answered to this request; None where none of its name was taken."""
        with self._lock:
            self._open()
            digest, found = self._requests.get(named.name, ("", None))
            if digest and found is None:
                self._forget()
                self._open()
                digest, found = self._requests.get(named.name, ("", None))
        if digest and digest != named.digest:
            raise UsageError(f"request `{named.name}` was another one", hint="give each request a name of its own")
        return found[:calls] if found is not None else None

    def _ready(self) -> None:
        with self._lock:
            self._open()

    def decide_after(self, messages: Iterable[Any], tool: str, arguments: Arguments) -> Decision:
        """The same, after these messages, or for a call that the last of them asks for."""
        return self._settle([self._asking_after(messages, tool, arguments)])[0]

    async def decide_after_async(self, messages: Iterable[Any], tool: str, arguments: Arguments) -> Decision:
        """The same, for a coroutine."""
        return (await self._settle_async([self._asking_after(messages, tool, arguments)]))[0]

    def _asking_after(self, messages: Iterable[Any], tool: str, arguments: Arguments) -> Asking:
        given, at = door.messages(messages), self._time(None)
        return lambda conversation: conversation.asked(given, tool, arguments, time=at)

    @contextmanager
    def turn(self, text: str = "") -> Generator[Self]:
        """One turn of the agent: what is decided inside was asked for at once, whatever is answered in between."""
        said, at = door.text(text, "what the agent said"), self._time(None)
        with self._lock:
            self._refuse_nesting()
            self._happen(lambda conversation: conversation.hold(said, time=at))
            self._is_held = True
        try:
            yield self
        finally:
            self._is_held = False
            self._happen(Conversation.let_go)

    def _refuse_nesting(self) -> None:
        """What is decided after the inner turn would no longer be of the outer one, and see what it was shown."""
        if self._is_held:
            hint = "end the first, or decide its calls with `decide(...)`"
            raise UsageError("a turn of the agent has begun and not ended: no other begins inside it", hint=hint)

    def flush(self) -> None:
        """Write what happened since the last decision; on disk when this returns."""
        if self._unwritten:
            self._settle([])

    async def flush_async(self) -> None:
        """The same, for a coroutine."""
        if self._unwritten:
            await self._settle_async([])

    @property
    def pack(self) -> Pack:
        """The pack that the conversation is under."""
        return self._decider.pack

    def is_under(self, context: Mapping[str, Any] | None) -> bool:
        """Whether it was opened with this context, or nothing is said of one."""
        return context is None or (self._context is not None and dict(context) == dict(self._context))

    def trajectory(self, agent: str = "") -> Trajectory:
        """The conversation so far, refused calls marked as such, as an audit reads it."""
        with self._lock:
            return self._open().trajectory(agent or self._by)

    def _time(self, given: float | None) -> float:
        return self.shield.clock() if given is None else door.seconds(given)

    def _asking(self, tool: str, arguments: Arguments, id: str = "", *, time: float | None) -> Asking:
        at = self._time(time)
        name, called = door.tool_name(tool), door.text(id, "the id of a call")
        return lambda conversation: conversation.call(name, arguments, id=called, time=at)

    def _happen(self, happening: Happening) -> None:
        with self._lock:
            happening(self._open())
            if self._log is not None:
                self._unwritten.append(happening)

    def _settle(
        self, asked: Sequence[Asking], beside: Sequence[Beside] = (), first: Sequence[Happening] = ()
    ) -> list[Decision]:
        with self._lock:
            for _ in range(TRIES):
                attempt = self._attempt(asked, beside, first)
                if self._log is None or self._is_written(attempt, self._append(attempt)):
                    return attempt.decisions
        raise self._overtaken()

    async def _settle_async(
        self,
        asked: Sequence[Asking],
        beside: Sequence[Beside] = (),
        first: Sequence[Happening] = (),
        named: Named | None = None,
    ) -> list[Decision]:
        if self._log is None:
            if self.shield.answers is None:
                return self._settle(asked, beside, first)
            return await asyncio.to_thread(self._settle, asked, beside, first)
        self._queue = self._queue or asyncio.Lock()
        async with self._queue:
            for _ in range(TRIES):
                if named is not None and (before := self._taken_before(named, len(asked))) is not None:
                    return before
                if self._decider.resolves or self.shield.answers is not None:
                    # The host's tools, or a model, may take their time.
                    attempt = await asyncio.to_thread(self._attempt_alone, asked, beside, first)
                else:
                    attempt = self._attempt_alone(asked, beside, first)
                if named is not None and attempt.drafts:
                    attempt.drafts[0] = replace(attempt.drafts[0], id=named.id(self.id))
                try:
                    answers = await self._log.append_async(attempt.drafts)
                except BaseException:
                    self._forget()
                    raise
                with self._lock:
                    if self._is_written(attempt, answers):
                        if named is not None:
                            known = {name: (digest, None) for name, (digest, _) in self._requests.items()}
                            self._requests = {**known, named.name: (named.digest, attempt.decisions)}
                        return attempt.decisions
        raise self._overtaken()

    def _attempt_alone(self, asked: Sequence[Asking], beside: Sequence[Beside], first: Sequence[Happening]) -> Attempt:
        with self._lock:
            return self._attempt(asked, beside, first)

    def _overtaken(self) -> LogError:
        return LogError(f"others keep writing to conversation `{self.id}`: tried {TRIES} times")

    def _append(self, attempt: Attempt) -> Answers:
        assert self._log is not None
        try:
            return self._log.append(attempt.drafts)
        except BaseException:
            # What is not in the log has not happened.
            self._forget()
            raise

    def _forget(self) -> None:
        """Read the conversation from the log before anything else."""
        self._live = None

    def _is_written(self, attempt: Attempt, answers: Answers) -> bool:
        if any(isinstance(answer, Conflict) for answer in answers):
            self._forget()
            return False
        if self._live is attempt.conversation:
            self._length += len(attempt.drafts)
            self._decided += len(attempt.decisions)
            self._written = attempt.events
            del self._unwritten[: attempt.happened]
        return True

    def _open(self) -> Conversation:
        return self._live if self._live is not None else self._load()

    def _load(self) -> Conversation:
        """Begin the conversation, or take it up where the log says it was left."""
        history = None
        if self._log is not None and (self._may_be_known or self._length):
            history = read_history(self._log.conversation(self.shield.tenant, self.id))
        if history is None:
            self._length = self._written = 0
            self._approvals, self._requests = Approvals(), {}
            conversation = self._conversation()
        else:
            opening = history.opening
            if self._context is not None and dict(self._context) != opening.context:
                raise UsageError(
                    f"conversation `{self.id}` was opened with another context: what a host vouches for stays so",
                    hint="open a new conversation, or leave `context` out",
                )
            self._context = opening.context
            self._decider = self.shield.decider(opening)
            self._by = opening.agent
            self._approvals = Approvals(history.approvals)
            self._requests = {
                name: (digest, history.decisions[start:]) for name, (digest, start) in history.requests.items()
            }
            self._length, self._written, self._decided = history.length, len(history.events), len(history.decisions)
            conversation = self._conversation([each for decision in history.decisions for each in decision.answered])
            conversation.resume(history.events)
        self._told = len(conversation.answered)
        self._repeat(conversation)
        self._live = conversation
        return conversation

    def _conversation(self, known: Iterable[Answered] = ()) -> Conversation:
        answers = self.shield.answers
        pack = self._decider.pack
        return Conversation(pack, id=self.id, context=self._context, doubts=is_lost, answers=answers, known=known)

    def _repeat(self, conversation: Conversation) -> None:
        """What happened here and is not written yet happens after all that was written elsewhere."""
        if self._is_held:
            conversation.hold_on()
        happened, self._unwritten = self._unwritten, []
        wrong: BylawError | None = None
        for happening in happened:
            try:
                happening(conversation)
                self._unwritten.append(happening)
            except BylawError as error:
                wrong = wrong or error
        if wrong is not None:
            raise wrong

    def _attempt(self, asked: Sequence[Asking], beside: Sequence[Beside], first: Sequence[Happening]) -> Attempt:
        try:
            return self._tried(asked, beside, first)
        except BaseException:
            if self._log is not None:
                # Part of it may have been done; what the log holds was done whole.
                self._forget()
            raise

    def _tried(self, asked: Sequence[Asking], beside: Sequence[Beside], first: Sequence[Happening]) -> Attempt:
        conversation = self._open()
        for happening in first:
            happening(conversation)
        bodies: list[tuple[Kind, bytes, str]] = []
        decisions: list[Decision] = []
        if self._log is not None and self._length == 0:
            bodies.append(("opening", encode(opening_of(self._decider.pack, self._context, self._by)), ""))
        written = self._written
        for place, asking in enumerate(asked):
            started = clocks.perf_counter()
            number = self._decided + len(decisions) + 1
            decision, changes = self._decide(
                conversation, asking(conversation), number, started, beside[place] if beside else ()
            )
            decisions.append(decision)
            if self._log is not None:
                events = conversation.since(written)
                bodies.extend(_event_bodies(events))
                written += len(events)
                bodies.append(("decision", decision_body(decision), f"decision:{decision.id}"))
                drafts = (draft(self.shield.tenant, self.id, change) for change in changes)
                bodies.extend((each.kind, each.body, each.id) for each in drafts)
        if self._log is None:
            self._decided += len(decisions)
            return Attempt(conversation, 0, decisions, [], 0)
        rest = conversation.since(written)
        bodies.extend(_event_bodies(rest))
        tenant = self.shield.tenant
        drafts = [
            Draft(tenant, self.id, kind, body, name, place)
            for place, (kind, body, name) in enumerate(bodies, self._length)
        ]
        return Attempt(conversation, len(self._unwritten), decisions, drafts, written + len(rest))

    def _decide(
        self, conversation: Conversation, judgement: Judgement, number: int, started: float, beside: Beside
    ) -> tuple[Decision, Sequence[Change]]:
        name = f"{self.id}/{number}" if self.id else str(number)
        weighed = conversation.weigh() if self._decider.must_weigh(judgement) else None
        grounds = self._decider.grounds(judgement, conversation.ledger, self.lacks, weighed)
        evidence: Sequence[Ground] = ()
        resolved: tuple[Resolved, ...] = ()
        tools = self.shield.tools
        if self._decider.resolves and tools is not None and not self.lacks:
            found = resolve(self._decider, judgement, grounds, conversation.since(0), self._context, tools)
            evidence, (grounds, resolved) = grounds, found
        if beside:
            tool = judgement.made.call.tool
            grounds = [*(self._decider.of_shape(each, tool) for each in conversation.beside(beside)), *grounds]
        ruling = Ruling(grounds)
        if self._log is not None:
            now, terms = self.shield.clock(), self._decider.terms
            ruling = self._approvals.rule(judgement, ruling.grounds, name, now, terms)
        decision = self._decider.decide(judgement, ruling.grounds, name, ruling.approval, weighed)
        if not decision.allowed:
            conversation.refuse()
        if resolved:
            decision = replace(decision, resolved=resolved, evidence=tuple(evidence))
        if answered := conversation.answered[self._told :]:
            self._told += len(answered)
            decision = replace(decision, answered=answered, model_queries=sum(each.queries for each in answered))
        return replace(decision, seconds=clocks.perf_counter() - started), ruling.changes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.flush()

    def __repr__(self) -> str:
        return f"<guarded {self._live!r}>" if self._live is not None else f"<guarded conversation `{self.id}`>"


def _event_bodies(events: Sequence[Event]) -> Generator[tuple[Kind, bytes, str]]:
    for event in events:
        yield "event", event_body(event), ""
