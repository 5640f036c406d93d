"""One live conversation under a shield. The host reports events, and each call is decided before it runs.

With a log, a decision and all events before it are on disk before the decision is returned. Later messages are written
with the next decision, by `flush`, or at the end of a `with` block.
"""

import threading
import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any, Self

from msgspec.structs import replace

from bylaw.consent import is_message
from bylaw.engine import door
from bylaw.engine.conversation import AskedCall, Mutation
from bylaw.engine.door import goes_on
from bylaw.engine.request import Allowance
from bylaw.errors import UsageError
from bylaw.pack import Pack
from bylaw.shield.decision import Decision
from bylaw.shield.decision_service import DecisionService, WantedDecisions
from bylaw.shield.history import Named
from bylaw.shield.host import Channel, Host
from bylaw.shield.settling import LoopSettling, settle
from bylaw.trace.event import Card, Confirmation, Event, Trajectory

Arguments = Mapping[str, Any] | str
TurnCall = tuple[str, Arguments] | tuple[str, Arguments, str]


class LiveSession:
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
        self.is_named = bool(id)
        """Whether the host chose the id of the conversation."""
        self._service = DecisionService(shield, id, context, by, lacks)
        self._by = by
        self._lock = threading.RLock()
        """Allows one thread at a time, because frameworks run tools in several threads."""
        self._loop = LoopSettling(self._service, self._lock)

    def user(self, text: str, *, time: float | None = None, whole: bool = True) -> None:
        """Report a user message. Set `whole=False` if it contained anything besides text, such as a voice note or a
        file.

        A message without text confirms nothing. It makes earlier consent undecided, because it may withdraw the
        consent.
        """
        said, at = door.text(text, "the user's message"), door.moment(time, self.shield.clock)
        self._apply(Mutation("user", {"text": said, "time": at, "whole": door.yes_or_no(whole, "`whole`")}))

    def agent(self, text: str, *, time: float | None = None) -> None:
        said, at = door.text(text, "the agent's message"), door.moment(time, self.shield.clock)
        self._apply(Mutation("agent", {"text": said, "time": at}))

    def messages(self, messages: Iterable[Any]) -> None:
        """Report all messages so far, or only the new ones, with calls and results. No call is decided.

        To decide a call in the last message, request a decision on it. Until then, the call is treated as not yet made.
        """
        given = {"messages": door.messages(messages), "asks": True, "time": self.shield.clock()}
        self._apply(Mutation("messages", given))

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
        """Report a tool's result, or the message that the agent received after a refusal.

        Without `id`, the result belongs to the only waiting call. If several calls are waiting, pass the `id`, or the
        `tool` if only one of them is a call to it. `refused=True` means that the call failed before the tool ran,
        because of the tool name or the arguments. Any other failed write may still have run.
        """
        given = {
            "content": door.writable(content) if isinstance(content, str) else content,
            "id": door.text(id, "the id of a call"),
            "error": None if error is None else door.yes_or_no(error, "`error`"),
            "captured": door.yes_or_no(captured, "`captured`"),
            "time": door.moment(time, self.shield.clock),
            "tool": door.text(tool, "the tool name"),
            "refused": True if refused is not None and door.yes_or_no(refused, "`refused`") else None,
        }
        self._apply(Mutation("result", given))

    def vouch(self, context: Mapping[str, Any]) -> bool:
        """Add to the context, starting with the next call. Return whether another principal takes over the
        conversation.

        A context with another principal (`signed_in_as`) is rejected unless the pack allows a `handover`. Without a
        handover, the other principal must start a separate conversation. After a handover, a context without a
        principal is rejected.
        """
        given = door.context(context) or {}
        with self._lock:
            before = self._service.opened().handed_over
            self._apply(Mutation("vouch", {"context": given}))
            ours = self._service.speaks_for
            self._service.speaks_for = {**ours, **given} if goes_on(ours, given) else given
            return self._service.opened().handed_over != before

    def unheard(self) -> None:
        """Record that the agent and the user may have exchanged messages that were not reported. Rules about messages
        become undecided.
        """
        self._apply(Mutation("unheard"))

    @contextmanager
    def turn(self, text: str = "") -> Generator[Self]:
        """Group calls into one turn: the agent requested them together, even if results arrive in between."""
        said = door.text(text, "the agent's message")
        begun = Mutation("begin_turn", {"text": said, "time": self.shield.clock()})
        with self._lock:
            self._refuse_nesting()
            self._apply(begun)
            self._service.open_turn = begun
        try:
            yield self
        finally:
            self._service.open_turn = None
            self._apply(Mutation("finish_turn"))

    def _refuse_nesting(self) -> None:
        """Reject nested turns, because the inner turn would end the outer one."""
        if self._service.open_turn is not None:
            hint = "end the first turn, or decide its calls with `decide(...)`"
            raise UsageError("the agent's previous turn has not ended, so a new turn cannot begin", hint=hint)

    def resume_turn(self) -> None:
        """Add the next decided call to the agent's last turn, even if results have arrived since."""
        self._apply(Mutation("resume_turn"))

    def decide(
        self, tool: str, arguments: Arguments, *, id: str = "", time: float | None = None, agent: str = ""
    ) -> Decision:
        """Decide whether the agent may make a call now. A call that is not allowed is recorded as refused.

        `agent` names the sub-agent, if one makes the call. A sub-agent has seen only its own results.
        """
        return self._settle(self._asking(tool, arguments, id, time=time, agent=agent))[0]

    async def decide_async(
        self, tool: str, arguments: Arguments, *, id: str = "", time: float | None = None
    ) -> Decision:
        """The async version of `decide`."""
        return (await self._loop.settle(self._asking(tool, arguments, id, time=time)))[0]

    def _asking(
        self, tool: str, arguments: Arguments, id: str, *, time: float | None, agent: str = ""
    ) -> WantedDecisions:
        return WantedDecisions([self._asked_call(tool, arguments, id, time, agent)], by=self._by)

    def _asked_call(self, tool: str, arguments: Arguments, id: str, time: float | None, agent: str = "") -> AskedCall:
        at, by = door.moment(time, self.shield.clock), door.text(agent, "the name of an agent")
        return AskedCall(door.tool_name(tool), arguments, door.text(id, "the id of a call"), at, by)

    def decide_turn(self, text: str, calls: Sequence[TurnCall], *, time: float | None = None) -> list[Decision]:
        """Decide the calls of a turn, each given as `(tool, arguments)` or `(tool, arguments, id)`.

        The calls are decided in order, and each decision considers the whole turn. For example, if a policy allows only
        one call at a time, even the first call may be refused because of the others.
        """
        asked = self._turn_of(calls, time)
        with self.turn(text):
            return self._settle(WantedDecisions(asked, by=self._by, is_turn=True))

    async def decide_turn_async(
        self, text: str, calls: Sequence[TurnCall], *, time: float | None = None
    ) -> list[Decision]:
        """The async version of `decide_turn`."""
        asked = self._turn_of(calls, time)
        with self.turn(text):
            return await self._loop.settle(WantedDecisions(asked, by=self._by, is_turn=True))

    def _turn_of(self, calls: Sequence[TurnCall], time: float | None) -> list[AskedCall]:
        calls = door.calls(calls)
        if self.shield.log is None:
            # Without a log, check this first, because a failed turn cannot be undone.
            with self._lock:
                door.none_waits(self._service.opened().waiting(), [each[2] for each in calls if len(each) == 3])
        return [self._asked_call(tool, given, id[0] if id else "", time) for tool, given, *id in calls]

    async def take_async(
        self,
        mutations: Sequence[Mutation],
        calls: Sequence[TurnCall] = (),
        *,
        named: Named | None = None,
        agent: str = "",
        context: Mapping[str, Any] | None = None,
    ) -> list[Decision]:
        """Apply mutations, then decide the calls of one turn. After an error, nothing has taken effect.

        `agent` is the agent that makes the calls, if another agent began the conversation. `context` is the context of
        the calls. A request with an idempotency key takes effect once, and repeating it returns the same answer. A
        different request with the same key is rejected.
        """
        asked, is_turn = self._turn_of(calls, None), len(calls) > 1
        by = door.text(agent, "the name of an agent").strip() or self._by
        if is_turn:
            self._refuse_nesting()
            mutations = [*mutations, Mutation("begin_turn")]
        try:
            return await self._loop.settle(
                WantedDecisions(asked, mutations, named, by=by, context=door.context(context), is_turn=is_turn)
            )
        finally:
            if is_turn:
                self._apply(Mutation("finish_turn"))

    def decide_after(self, messages: Iterable[Any], tool: str, arguments: Arguments, *, id: str = "") -> Decision:
        """Decide a call that follows these messages, or a call in the last message. `id` selects one of two identical
        calls.
        """
        return self._settle(self._asking_after(messages, tool, arguments, id))[0]

    async def decide_after_async(
        self, messages: Iterable[Any], tool: str, arguments: Arguments, *, id: str = ""
    ) -> Decision:
        """The async version of `decide_after`."""
        return (await self._loop.settle(self._asking_after(messages, tool, arguments, id)))[0]

    def _asking_after(self, messages: Iterable[Any], tool: str, arguments: Arguments, id: str) -> WantedDecisions:
        given, called = door.messages(messages), door.text(id, "the id of a call")
        self._service.caller_keeps_history = not self.is_named
        return WantedDecisions([AskedCall(tool, arguments, called, self.shield.clock(), messages=given)], by=self._by)

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
        """Report the user's answer to a card. When this method returns, the answer is on disk.

        A confirmation lets the same call run once, until the card expires or the user writes another message. `by`
        names how the user answered, such as a button. `at` is the time of the answer; `time` is its deprecated name.
        `after` is the number of messages that the user had seen; `position` returns the current number. Pass `at` and
        `after` if the user may have written since the card was shown, because otherwise the confirmation does not
        count.

        Raises `UsageError` if the card is unknown, used or expired, if it has a different answer, or if a confirmation
        does not count. Reporting the same answer again is harmless. A reviewer's approval does not answer a card.
        """
        self._apply(self._confirming(card, yes, by, at, time, after))
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
        """The async version of `confirm`. A request with an idempotency key takes effect once.

        `context` describes the person who answers.
        """
        await self.take_async([self._confirming(card, yes, by, at, time, after)], named=named, context=context)

    def _confirming(
        self, card: Card | str, yes: bool, by: str, at: float | None, time: float | None, after: int | None
    ) -> Mutation:
        if time is not None:
            warnings.warn("`confirm` now takes `at` instead of `time`", DeprecationWarning, stacklevel=3)
        at = time if at is None else at
        name = door.text(card.id if isinstance(card, Card) else card, "the id of a card")
        is_yes, reporter = (
            door.yes_or_no(yes, "the answer to a card"),
            door.text(by, "the name of the person who answered"),
        )
        said = Confirmation(name, is_yes, reporter, None if after is None else door.position(after))
        given = None if at is None else door.seconds(at)
        return Mutation("confirm", {"confirmation": said, "time": given, "now": self.shield.clock()})

    def page_tool(self, id: str) -> str:
        """If an allowed call acts on an element of a page, return the name of the tool that shows the page. Otherwise
        return an empty string.

        Just before the call runs, compare the page with the page at the time of the decision (`is_same_on`).
        """
        with self._lock:
            return self._service.opened().page_tool(id)

    def is_same_on(self, id: str, snapshot: str) -> bool:
        """Whether an allowed call would still have the same effect on the page in this new snapshot."""
        with self._lock:
            return self._service.opened().is_same_on(id, snapshot)

    def asked(self, id: str) -> Decision | None:
        """Return the decision on a call that was stopped in order to ask somebody. None for any other call."""
        with self._lock:
            conversation, state = self._service.opened(), self._service.state
            return state.asked.get(id) if conversation.handed_over == state.handed_over else None

    def interrupt(self, id: str, decision: Decision) -> None:
        """Interrupt an allowed call so that it can continue later, in any worker."""
        self._settle(WantedDecisions(again=lambda _: replace(decision, repeats="interrupted", call=id)))

    def resume(self, id: str, tool: str, arguments: Mapping[str, Any]) -> Decision | None:
        """Continue an interrupted call. Return its decision once, or None if the call must be decided again.

        It must be decided again if it is not waiting, has a result, or was stopped; if the user has written or the
        facts are stale; or if a policy objects because of later events.
        """
        again = partial(DecisionService.resumed, id=id, tool=tool, arguments=arguments, by=self._by)
        return next(iter(self._settle(WantedDecisions(again=again, by=self._by))), None)

    def flush(self) -> None:
        """Write all events since the last decision to disk."""
        if self._service.live is not None and self._service.live.has_undecided:
            self._apply(Mutation("assume_executed"))
        if self._service.unwritten:
            self._settle(WantedDecisions(by=self._by))

    def catch_up(self) -> None:
        """Read what other workers have written to this conversation."""
        with self._lock:
            if not self._service.unwritten:
                self._service.catch_up()
                self._service.settle_reading()

    def _apply(self, mutation: Mutation) -> None:
        with self._lock:
            self._service.apply(mutation)
            if self._service.has_news:
                # The shield writes these events when it closes, even if the session is no longer in use.
                self.shield.unwritten[id(self._service)] = self

    def _settle(self, wanted: WantedDecisions) -> list[Decision]:
        with self._lock:
            return settle(self._service, wanted)

    @property
    def id(self) -> str:
        return self._service.id

    @property
    def lacks(self) -> str:
        """Why earlier events are unknown. Empty if all are known."""
        return self._service.lacks

    @lacks.setter
    def lacks(self, why: str) -> None:
        self._service.lacks = why

    @property
    def channel(self) -> Channel:
        """How the host reaches the user. An adapter may set it."""
        return self._service.channel

    @property
    def pack(self) -> Pack:
        return self._service.pack

    @property
    def has_begun(self) -> bool:
        """Whether the log already contains the conversation."""
        return self._service.state.length > 0

    @property
    def context(self) -> Mapping[str, Any]:
        """A copy of the context values that the host has confirmed."""
        return dict(self._service.vouched)

    @property
    def may_be_handed_over(self) -> bool:
        """Whether the pack lets another principal continue the conversation."""
        return self._service.postures.handover

    @property
    def length(self) -> int:
        with self._lock:
            return self._service.opened().length

    @property
    def running(self) -> list[str]:
        """The ids of allowed calls that have no result yet and were not interrupted."""
        with self._lock:
            return [call.id for call in self._service.opened().running().values()]

    @property
    def position(self) -> int:
        """The number of user and agent messages so far. Pass it to `confirm` as `after`."""
        return sum(map(is_message, self.since(0)))

    def since(self, step: int) -> Sequence[Event]:
        with self._lock:
            return self._service.opened().since(step)

    def trajectory(self, agent: str = "") -> Trajectory:
        """Return the conversation in the form that audits read. It marks refused calls, approvals and the shield's
        look-ups.
        """
        with self._lock:
            return self._service.trajectory(agent)

    @property
    def allowance(self) -> Allowance | None:
        """What the user's messages so far allow. None without messages, or if the pack does not use requests."""
        with self._lock:
            requests = self._service.opened().session.requests
            return None if requests is None else requests.latest()

    def __reduce__(self) -> Any:
        hint = "open it again with `shield.session(id)`. With a log, it continues where it stopped"
        raise UsageError("a session cannot be pickled or copied, because it is one live conversation", hint=hint)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.flush()

    def __repr__(self) -> str:
        live = self._service.live
        return f"<live {live!r}>" if live is not None else f"<live conversation `{self.id}`>"
