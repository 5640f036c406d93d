"""One live conversation under a shield: what happens is said as it happens, and each call is decided before it runs.

With a log, a decision and all that led to it are on disk before its answer is given. What is said in between is written
with the next decision, by `flush`, or where the `with` of the session or of its shield ends.
"""

import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from types import TracebackType
from typing import Any, Self

from msgspec.structs import replace

from bylaw.engine import door
from bylaw.engine.context import goes_on
from bylaw.engine.conversation import Conversation
from bylaw.engine.request import Allowance
from bylaw.errors import UsageError
from bylaw.pack import Pack
from bylaw.shield.call_decisions import Arguments, Beside, Happening, Host, JudgeCall, Wanted
from bylaw.shield.decision import Decision
from bylaw.shield.event_loop import LoopSettling
from bylaw.shield.history import Named, note_interruption
from bylaw.shield.resuming import has_new_objection
from bylaw.shield.state import TRIES, SessionState
from bylaw.trace.event import Call, Card, Confirmation, Event, Message, Result
from bylaw.trace.trajectory import Trajectory

AskedCall = tuple[str, Arguments] | tuple[str, Arguments, str]


class LiveSession:
    """One live conversation under a shield."""

    def __init__(
        self,
        shield: Host,
        id: str = "",
        context: Mapping[str, Any] | None = None,
        by: str = "",
        *,
        lacks: str = "",
    ) -> None:
        self.shield = shield
        self._log = shield.log
        self._state = SessionState(shield, id, context, by, lacks)
        self._by = by
        """The agent that goes on with it here, whoever began it."""
        self._lock = threading.RLock()
        """One thing at a time: frameworks run tools in threads of their own."""
        self._handed_over = 0

    def user(self, text: str, *, time: float | None = None, whole: bool = True) -> None:
        """The user said something; not `whole` where there was more to it than text, such as a voice note or a file.

        What is no text, or an empty text, is nobody's yes, and what was agreed to before it is open.
        """
        said, at = door.text(text, "what the user said"), self._time(time)
        whole = door.yes_or_no(whole, "`whole`")
        self._happen(lambda conversation: conversation.user(said, time=at, whole=whole), is_said=True)

    def agent(self, text: str, *, time: float | None = None) -> None:
        """The agent said something."""
        said, at = door.text(text, "what the agent said"), self._time(time)
        self._happen(lambda conversation: conversation.agent(said, time=at), is_said=True)

    def vouch(self, context: Mapping[str, Any]) -> bool:
        """What the host vouches for from the next call on, beside what it vouched for before; whether that hands the
        conversation over.

        Another principal (`signed_in_as`) is refused, as they begin a conversation of their own, unless the pack lets
        them go on (`handover`). Who says nothing is refused where the conversation has been handed over.
        """
        given = door.context(context) or {}
        with self._lock:
            before = self._state.open().handed_over
            self._happen(lambda conversation: conversation.vouch(given))
            is_another = self._state.open().handed_over != before
            ours = self._state.speaks_for
            self._state.speaks_for = {**ours, **given} if goes_on(ours, given) else given
            return is_another

    @property
    def allowance(self) -> Allowance | None:
        """What the user's words so far allow; None where the pack holds no call to them, or nobody said anything."""
        with self._lock:
            requests = self._state.open().session.requests
            return None if requests is None else requests.latest()

    def unheard(self) -> None:
        """Agent and user may have talked, and nobody told: rules about their words are open from here on."""
        self._happen(Conversation.unheard)

    def catch_up(self) -> None:
        """Take in what others have written to the conversation meanwhile."""
        with self._lock:
            if not self._state.unwritten:
                self._state.catch_up()

    def resume_turn(self) -> None:
        """What is decided next is still of the agent's last turn, whatever tools have answered since."""
        self._happen(Conversation.resume_turn)

    def messages(self, messages: Iterable[Any]) -> None:
        """Messages of the conversation so far, calls and results among them: what happened, not to be decided."""
        given = door.messages(messages)
        self._happen(lambda conversation: conversation.messages(given), is_said=True)

    def result(
        self,
        content: Any,
        *,
        id: str = "",
        error: bool | None = None,
        captured: bool = True,
        time: float | None = None,
        tool: str = "",
        refused: bool | None = None,
    ) -> None:
        """What the tool answered; or, after a refusal, what the agent was told in its place.

        Without `id` it is the answer to the call that waits. Where several do, it needs one, or the `tool` whose only
        call it answers. `refused=True` says that it failed before the tool ran: a name or arguments that were turned
        down. Of any other error of a write nobody knows whether it came after the deed.
        """
        id, tool = door.text(id, "the id of a call"), door.text(tool, "a tool's name")
        error = None if error is None else door.yes_or_no(error, "`error`")
        captured = door.yes_or_no(captured, "`captured`")
        refused = True if refused is not None and door.yes_or_no(refused, "`refused`") else None
        shown, at = door.writable(content) if isinstance(content, str) else content, self._time(time)

        def answer(conversation: Conversation) -> None:
            if not id:
                door.one_waits(conversation.waiting(), tool)
            conversation.result(shown, id=id, error=error, captured=captured, time=at, tool=tool, refused=refused)

        self._happen(answer)

    def decide(
        self, tool: str, arguments: Arguments, *, id: str = "", time: float | None = None, agent: str = ""
    ) -> Decision:
        """Whether the agent may make a call now. A call that is not allowed counts as refused before it ran.

        `agent` names an inner agent that makes it for the main one: it has seen only what was shown to itself.
        """
        return self._settle([self._asking(tool, arguments, id, time=time, agent=agent)])[0]

    async def decide_async(
        self, tool: str, arguments: Arguments, *, id: str = "", time: float | None = None
    ) -> Decision:
        """The same, for a coroutine: only the log is waited for."""
        return (await self._loop.settle(Wanted([self._asking(tool, arguments, id, time=time)], by=self._by)))[0]

    def confirm(self, card: Card | str, yes: bool, *, by: str = "", time: float | None = None) -> None:
        """The user answered the card of a decision, which the host showed them; on disk when this returns.

        A yes lets the same call run once, until the card expires or the user says something else. `by` says how it was
        given, such as the button that was pressed. An answer to a card that is unknown, used, expired or was answered
        otherwise is refused; given again, the same answer changes nothing. A person's approval is no such answer.
        """
        self._happen(self._confirming(card, yes, by, time))
        self.flush()

    async def confirm_async(
        self,
        card: Card | str,
        yes: bool,
        *,
        by: str = "",
        time: float | None = None,
        named: Named | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> None:
        """The same, for a coroutine; a request with a name is taken once. `context` is what the host vouches for of
        whoever answers."""
        await self.take_async([self._confirming(card, yes, by, time)], named=named, context=context)

    def _confirming(self, card: Card | str, yes: bool, by: str, time: float | None) -> Happening:
        name = door.text(card.id if isinstance(card, Card) else card, "the id of a card")
        said = Confirmation(name, door.yes_or_no(yes, "the answer to a card"), door.text(by, "who answered"))
        at = self._time(time)
        return lambda conversation: conversation.confirm(said, time=at)

    def asked(self, id: str) -> Decision | None:
        """The decision on the call of this id, where it stopped the call and somebody was asked about it."""
        with self._lock:
            before = self._state.open().handed_over
            if before != self._handed_over:
                self._handed_over, self._state.asked = before, {}
            return self._state.asked.get(id)

    def interrupt(self, id: str, decision: Decision) -> None:
        """A call that was allowed stops before it is done, and may go on later, here or in another worker."""
        self._repeat(id, lambda: replace(decision, repeats="interrupted", call=id))

    def resume(self, id: str, tool: str, arguments: Mapping[str, Any]) -> Decision | None:
        """Go on with a call that was interrupted: the decision on it, once; None where no such call waits.

        Nor does one that was answered, or where the user has spoken since, a person has stopped such calls, or what was
        shown since, or is too old by now, speaks against it: it is to be decided anew.
        """

        def found() -> Decision | None:
            before = self._state.interrupted.get(id)
            if before is None or (before.tool, before.arguments) != (tool, dict(arguments)):
                return None
            if self._state.stop_on(tool, self._by) is not None:
                return None
            events = self._state.open().events
            made = max(
                (at for at, event in enumerate(events) if isinstance(event, Call) and event.id == id), default=-1
            )
            if made < 0 or any(isinstance(event, Message) and event.by == "user" for event in events[made:]):
                return None
            if any(isinstance(event, Result) and event.call == made for event in events[made:]):
                # It has been answered: to go on would make it twice.
                return None
            if has_new_objection(self._state.decider, events, made, self._state.open().context, self._time(None)):
                return None
            return replace(before, repeats="resumed")

        return self._repeat(id, found)

    def _repeat(self, id: str, find: Callable[[], Decision | None]) -> Decision | None:
        """Write down a decision from before, if it is still there to be found when that is done."""
        with self._lock:
            for _ in range(TRIES):
                self._state.catch_up()
                decision = find()
                if decision is None:
                    return None
                attempt = self._state.attempt(Wanted([], repeated=[decision]))
                if self._state.write(attempt):
                    note_interruption(self._state.interrupted, decision)
                    return decision
        raise self._state.overtaken()

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
            return await self._loop.settle(Wanted(asked, beside, by=self._by))

    def _turn_of(self, calls: Sequence[AskedCall], time: float | None) -> tuple[list[JudgeCall], list[Beside]]:
        calls = door.calls(calls)
        if self._log is None:
            # With a log, what was decided of a turn that went wrong is not written, and has not happened.
            with self._lock:
                door.none_waits(self._state.open().waiting(), [each[2] for each in calls if len(each) == 3])
        asked = [self._asking(tool, arguments, *id, time=time) for tool, arguments, *id in calls]
        later: list[Beside] = [
            [(tool, arguments) for tool, arguments, *_ in calls[place:]] for place in range(1, len(calls) + 1)
        ]
        return asked, later

    async def take_async(
        self,
        happenings: Sequence[Happening],
        calls: Sequence[AskedCall] = (),
        *,
        named: Named | None = None,
        agent: str = "",
        context: Mapping[str, Any] | None = None,
    ) -> list[Decision]:
        """Let things happen and then decide on calls of one turn, all of it or, where any of it is wrong, nothing.
        `agent` is whose calls they are, where another one has begun the conversation; `context` is what the host
        vouches for with them.

        A request with a name is taken once: sent again, nothing happens, and the same is answered. Another request of
        that name is refused.
        """
        asked, beside = self._turn_of(calls, None)
        by = door.text(agent, "the name of an agent").strip() or self._by
        if len(calls) > 1:
            self._refuse_nesting()
            hold: Happening = lambda conversation: conversation.hold()  # noqa: E731
            happenings = [*happenings, hold]
        try:
            wanted = Wanted(asked, beside, happenings, named, by=by, whose=door.context(context))
            return await self._loop.settle(wanted)
        finally:
            if len(calls) > 1:
                self._happen(Conversation.let_go)

    def decide_after(self, messages: Iterable[Any], tool: str, arguments: Arguments, *, id: str = "") -> Decision:
        """The same, after these messages, or for a call that the last of them asks for; `id` says which, of two."""
        return self._settle([self._asking_after(messages, tool, arguments, id)])[0]

    async def decide_after_async(
        self, messages: Iterable[Any], tool: str, arguments: Arguments, *, id: str = ""
    ) -> Decision:
        """The same, for a coroutine."""
        return (await self._loop.settle(Wanted([self._asking_after(messages, tool, arguments, id)], by=self._by)))[0]

    def _asking_after(self, messages: Iterable[Any], tool: str, arguments: Arguments, id: str) -> JudgeCall:
        given, at, called = door.messages(messages), self._time(None), door.text(id, "the id of a call")
        self._state.is_told_whole = not self._state.is_named
        return lambda conversation: conversation.asked(given, tool, arguments, id=called, time=at)

    @contextmanager
    def turn(self, text: str = "") -> Generator[Self]:
        """One turn of the agent: what is decided inside was asked for at once, whatever is answered in between."""
        said, at = door.text(text, "what the agent said"), self._time(None)
        with self._lock:
            self._refuse_nesting()
            begin: Happening = lambda conversation: conversation.hold(said, time=at)  # noqa: E731
            self._happen(begin)
            self._state.is_held, self._state.held_by = True, begin
        try:
            yield self
        finally:
            self._state.is_held, self._state.held_by = False, None
            self._happen(Conversation.let_go)

    def _refuse_nesting(self) -> None:
        """What is decided after the inner turn would no longer be of the outer one, and see what it was shown."""
        if self._state.is_held:
            hint = "end the first, or decide its calls with `decide(...)`"
            raise UsageError("a turn of the agent is still open: it must end before another begins", hint=hint)

    def flush(self) -> None:
        """Write what happened since the last decision; on disk when this returns."""
        if self._state.unwritten:
            self._settle([])

    @property
    def id(self) -> str:
        """The name of the conversation."""
        return self._state.id

    @property
    def lacks(self) -> str:
        """Why what happened before is not known here; empty where it is."""
        return self._state.lacks

    @lacks.setter
    def lacks(self, why: str) -> None:
        self._state.lacks = why

    @property
    def puts_cards(self) -> bool:
        """Whether the host puts cards and questions to the user itself, though it does not tell what else is said."""
        return self._state.puts_cards

    @puts_cards.setter
    def puts_cards(self, puts: bool) -> None:
        self._state.puts_cards = puts

    @property
    def hears_user(self) -> bool:
        """Whether the host tells what is said: then the user can be asked again, whatever was missed before."""
        return self._state.hears_user

    @hears_user.setter
    def hears_user(self, hears: bool) -> None:
        self._state.hears_user = hears

    @property
    def pack(self) -> Pack:
        """The pack that the conversation is under."""
        return self._state.decider.pack

    @property
    def has_begun(self) -> bool:
        """Whether anything of it was found in the log, or written there."""
        return self._state.has_begun

    @property
    def context(self) -> Mapping[str, Any]:
        """What the host vouches for by now."""
        return dict(self._state.vouched)

    @property
    def may_be_handed_over(self) -> bool:
        """Whether the pack lets another principal go on with it."""
        return self._state.decider.postures.handover

    @property
    def length(self) -> int:
        """How many events there were so far."""
        with self._lock:
            return self._state.open().length

    def since(self, step: int) -> Sequence[Event]:
        """What has happened from a step on."""
        with self._lock:
            return self._state.open().since(step)

    def __reduce__(self) -> Any:
        hint = "open it again with `shield.session(id)`: with a log it is taken up where it was left"
        raise UsageError("a session cannot be pickled or copied: it is one live conversation", hint=hint)

    def trajectory(self, agent: str = "") -> Trajectory:
        """The conversation so far as an audit reads it: refused calls are marked as such, and those that rest on a
        person's yes or on look-ups of the shield's own say so."""
        with self._lock:
            return self._state.trajectory(agent)

    @cached_property
    def _loop(self) -> LoopSettling:
        """How coroutines settle; few sessions have any."""
        return LoopSettling(self.shield, self._state, self._lock)

    def _time(self, given: float | None) -> float:
        return self.shield.clock() if given is None else door.seconds(given)

    def _asking(
        self, tool: str, arguments: Arguments, id: str = "", *, time: float | None, agent: str = ""
    ) -> JudgeCall:
        at, by = self._time(time), door.text(agent, "the name of an agent")
        name, called = door.tool_name(tool), door.text(id, "the id of a call")
        return lambda conversation: conversation.call(name, arguments, id=called, time=at, agent=by)

    def _happen(self, happening: Happening, *, is_said: bool = False) -> None:
        with self._lock:
            if is_said:
                happening = self._spoken(happening)
            if self._log is not None and self.shield.is_closed:
                hint = "say it before `close()`, or before the `with` of the shield ends"
                raise UsageError("the shield is closed: what happens now would not be written down", hint=hint)
            if not self._state.unwritten:
                self._state.catch_up()
            try:
                happening(self._state.open())
            except UsageError:
                if not self._state.was_overtaken():
                    raise
                happening(self._state.open())
            if self._log is not None:
                self._state.unwritten.append(happening)
                if self._state.has_news:
                    # What happened is written when the shield closes, even where nobody holds on to the session.
                    self.shield.unwritten[id(self._state)] = self

    def _spoken(self, happening: Happening) -> Happening:
        """The same, said by or to whoever is vouched for here."""

        def spoken(conversation: Conversation) -> None:
            self._state.speak(conversation)
            happening(conversation)

        return spoken

    def _settle(self, asked: Sequence[JudgeCall], beside: Sequence[Beside] = ()) -> list[Decision]:
        wanted = Wanted(asked, beside, by=self._by)
        with self._lock:
            if self._log is None:
                return self._state.attempt(wanted).decisions
            for _ in range(TRIES):
                self._state.catch_up()
                try:
                    attempt = self._state.attempt(wanted)
                except UsageError:
                    if not self._state.was_overtaken():
                        raise
                    continue
                if self._state.write(attempt):
                    return attempt.decisions
        raise self._state.overtaken()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.flush()

    def __repr__(self) -> str:
        live = self._state.live
        return f"<live {live!r}>" if live is not None else f"<live conversation `{self.id}`>"
