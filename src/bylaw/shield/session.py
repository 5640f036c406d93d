"""One live conversation under a shield: what happens is said as it happens, and each call is decided before it runs.

With a log, a decision and all that led to it are on disk before its answer is given. What is said in between is written
with the next decision, by `flush`, or where the `with` of the session or of its shield ends.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import Any, Self

from msgspec.structs import replace

from bylaw.engine import door
from bylaw.engine.conversation import Conversation
from bylaw.shield.call_decisions import Arguments, Beside, Happening, JudgeCall, Wanted
from bylaw.shield.decision import Decision
from bylaw.shield.event_loop import LoopSettling
from bylaw.shield.history import Named
from bylaw.shield.resuming import may_go_on
from bylaw.shield.telling import Telling
from bylaw.trace.event import Card, Confirmation

AskedCall = tuple[str, Arguments] | tuple[str, Arguments, str]


class LiveSession(Telling):
    """One live conversation under a shield."""

    def decide(
        self, tool: str, arguments: Arguments, *, id: str = "", time: float | None = None, agent: str = ""
    ) -> Decision:
        """Whether the agent may make a call now. A call that is not allowed counts as refused before it ran.

        `agent` names an inner agent that makes it for the main one: it has seen only what was shown to itself.
        """
        return self._settle(Wanted([self._asking(tool, arguments, id, time=time, agent=agent)], by=self._by))[0]

    async def decide_async(
        self, tool: str, arguments: Arguments, *, id: str = "", time: float | None = None
    ) -> Decision:
        """The same, for a coroutine: only the log is waited for."""
        return (await self._loop.settle(Wanted([self._asking(tool, arguments, id, time=time)], by=self._by)))[0]

    def confirm(
        self,
        card: Card | str,
        yes: bool,
        *,
        by: str = "",
        at: float | None = None,
        after: int | None = None,
        time: float | None = None,
    ) -> None:
        """Report the user's answer to the card of a decision; on disk when this returns.

        A yes lets the same call run once, until the card expires or the user writes something else. `by` says how it
        was given, such as the button. `at` is the time of the answer (`time` is its old name), and `after` is how many
        messages of the conversation the user had seen (`position`). If the user has written anything but a yes or a
        courtesy since the card was shown, a yes counts only with both. Raises `UsageError` for a yes that does not
        count, and for a card that is unknown, used, expired or answered otherwise. The same answer given again
        changes nothing. A person's approval is no such answer.
        """
        self._happen(self._confirming(card, yes, by, self._answered_at(at, time), after))
        self.flush()

    async def confirm_async(
        self,
        card: Card | str,
        yes: bool,
        *,
        by: str = "",
        at: float | None = None,
        after: int | None = None,
        time: float | None = None,
        named: Named | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> None:
        """The same, for a coroutine; a request with a name is taken once. `context` is what the host vouches for of
        whoever answers."""
        confirming = self._confirming(card, yes, by, self._answered_at(at, time), after)
        await self.take_async([confirming], named=named, context=context)

    def _answered_at(self, at: float | None, time: float | None) -> float | None:
        if time is not None:
            warnings.warn("`time` of `confirm` is called `at`", DeprecationWarning, stacklevel=3)
        return time if at is None else at

    def _confirming(self, card: Card | str, yes: bool, by: str, at: float | None, after: int | None) -> Happening:
        name = door.text(card.id if isinstance(card, Card) else card, "the id of a card")
        is_yes, reporter = door.yes_or_no(yes, "the answer to a card"), door.text(by, "who answered")
        said = Confirmation(name, is_yes, reporter, None if after is None else door.position(after))
        given, now = None if at is None else door.seconds(at), self.shield.clock()
        return lambda conversation: conversation.confirm(said, time=given, now=now)

    def asked(self, id: str) -> Decision | None:
        """The decision on the call of this id, where it stopped the call and somebody was asked about it."""
        with self._lock:
            before = self._state.open().handed_over
            if before != self._handed_over:
                self._handed_over, self._state.asked = before, {}
            return self._state.asked.get(id)

    def interrupt(self, id: str, decision: Decision) -> None:
        """A call that was allowed stops before it is done, and may go on later, here or in another worker."""
        self._settle(Wanted([], again=lambda: replace(decision, repeats="interrupted", call=id)))

    def resume(self, id: str, tool: str, arguments: Mapping[str, Any]) -> Decision | None:
        """Go on with a call that was interrupted: the decision on it, once; None where no such call waits.

        Nor does one that was answered, or where the user has spoken since, a person has stopped such calls, or a policy
        objects to it by what happened since, or what was shown is too old by now: it is to be decided anew.
        """
        found = lambda: may_go_on(self._state, id, tool, arguments, self._by)  # noqa: E731
        return next(iter(self._settle(Wanted([], again=found))), None)

    def decide_turn(self, text: str, calls: Sequence[AskedCall], *, time: float | None = None) -> list[Decision]:
        """Whether the agent may make the calls of a turn, `(tool, arguments)` or `(tool, arguments, id)` each.

        They are decided in their order, each for the turn as a whole: where a policy is about its shape, such as one
        call at a time, the first may be refused for what comes beside it.
        """
        asked, beside = self._turn_of(calls, time)
        with self.turn(text):
            return self._settle(Wanted(asked, beside, by=self._by))

    async def decide_turn_async(
        self, text: str, calls: Sequence[AskedCall], *, time: float | None = None
    ) -> list[Decision]:
        """The same, for a coroutine."""
        asked, beside = self._turn_of(calls, time)
        with self.turn(text):
            return await self._loop.settle(Wanted(asked, beside, by=self._by))

    def _turn_of(self, calls: Sequence[AskedCall], time: float | None) -> tuple[list[JudgeCall], list[Beside]]:
        calls = door.calls(calls)
        if self.shield.log is None:
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
            hold: Happening = lambda conversation: conversation.begin_turn()  # noqa: E731
            happenings = [*happenings, hold]
        try:
            wanted = Wanted(asked, beside, happenings, named, by=by, whose=door.context(context))
            return await self._loop.settle(wanted)
        finally:
            if len(calls) > 1:
                self._happen(Conversation.finish_turn)

    def decide_after(self, messages: Iterable[Any], tool: str, arguments: Arguments, *, id: str = "") -> Decision:
        """The same, after these messages, or for a call that the last of them asks for; `id` says which, of two."""
        return self._settle(Wanted([self._asking_after(messages, tool, arguments, id)], by=self._by))[0]

    async def decide_after_async(
        self, messages: Iterable[Any], tool: str, arguments: Arguments, *, id: str = ""
    ) -> Decision:
        """The same, for a coroutine."""
        return (await self._loop.settle(Wanted([self._asking_after(messages, tool, arguments, id)], by=self._by)))[0]

    def _asking_after(self, messages: Iterable[Any], tool: str, arguments: Arguments, id: str) -> JudgeCall:
        given, at, called = (
            door.messages(messages),
            self.shield.clock(),
            door.text(id, "the id of a call"),
        )
        self._state.is_told_whole = not self._state.is_named
        return lambda conversation: conversation.asked(given, tool, arguments, id=called, time=at)

    def flush(self) -> None:
        """Write what happened since the last decision; on disk when this returns."""
        if self._state.live is not None and self._state.live.has_undecided:
            self._happen(Conversation.assume_executed)
        if self._state.unwritten:
            self._settle(Wanted([], by=self._by))

    @cached_property
    def _loop(self) -> LoopSettling:
        """How coroutines settle; few sessions have any."""
        return LoopSettling(self.shield, self._state, self._lock)

    def _asking(
        self, tool: str, arguments: Arguments, id: str = "", *, time: float | None, agent: str = ""
    ) -> JudgeCall:
        at, by = door.moment(time, self.shield.clock), door.text(agent, "the name of an agent")
        name, called = door.tool_name(tool), door.text(id, "the id of a call")
        return lambda conversation: conversation.call(name, arguments, id=called, time=at, agent=by)

    def _settle(self, wanted: Wanted) -> list[Decision]:
        with self._lock:
            return self._state.settled(wanted)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.flush()

    def __repr__(self) -> str:
        live = self._state.live
        return f"<live {live!r}>" if live is not None else f"<live conversation `{self.id}`>"
