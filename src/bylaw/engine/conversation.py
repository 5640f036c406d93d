"""A live conversation under a pack. Report events as they occur, and each call is judged.

`Session` expects complete events. A live host reports less, so this class works out the rest: the speaker, the call to
which a result belongs, the new messages in a history, the host's context, and whether each call ran, was refused or is
still waiting.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from msgspec import Struct
from msgspec.structs import replace

from bylaw.engine.conduct import RuleFinding
from bylaw.engine.door import (
    PRINCIPAL,
    AnotherPrincipal,
    as_content,
    as_object,
    copied,
    goes_on,
    one_waits,
    tool_name,
    warn_of_unknown,
)
from bylaw.engine.finished import is_listed
from bylaw.engine.judgement import Judgement
from bylaw.engine.predicate_values import Answered, AnswerPredicate
from bylaw.engine.put_cards import PutCards
from bylaw.engine.request import Delegating, Granted, RequestModel
from bylaw.engine.session import Mode, Session
from bylaw.engine.settlement import CallVerdict
from bylaw.engine.told_again import KnownMessages, ToldBefore
from bylaw.engine.unbelieved import disown, disown_during, doubt, is_refused, withhold, withhold_old, withhold_refusals
from bylaw.errors import UsageError
from bylaw.facts.world import World
from bylaw.pack import Pack, load_pack
from bylaw.trace.event import Call, Card, Confirmation, Event, LookedUp, Message, Party, Result, Trajectory
from bylaw.trace.readers.openai import follow_messages
from bylaw.trace.transcript import Transcript

OpenAnswers = Callable[[Pack, Callable[[], Sequence[Event]]], AnswerPredicate]
"""Creates an answerer for a conversation, given its pack and a function that returns all events so far."""
OpenRequests = Callable[[Pack], RequestModel]
"""Creates the model that reads requests for a pack."""
GIVEN_UP = "unknown: the call was requested again and decided again"
"""The result recorded for a call that was requested again. The earlier call is abandoned."""


class Conversation:
    """One conversation in progress. A judged call is assumed to run unless `refuse` follows immediately."""

    handed_over = 0
    """The number of events before the last handover to another principal. 0 if there was no handover."""
    interrupted: Collection[str] | None = None
    """Ids of allowed calls that were interrupted. None if the conversation is over, because then no call is running."""
    _taken = 0
    """The number of events passed to the session so far."""
    _judged: Judgement | None = None
    """The most recently judged call. None once it can no longer be refused."""
    _speaker = ""
    """The latest speaker: `agent`, `user` or `tool`. Empty at the start."""
    _refused: int | None = None
    """The step of the last refused call. A result that directly follows is the text that the agent received as a
    refusal.
    """
    _is_held = False
    """Whether all events until `finish_turn` belong to the same turn."""

    def __init__(
        self,
        pack: Pack | str | Path,
        *,
        id: str = "",
        world: World | None = None,
        mode: Mode = "hindsight",
        context: Mapping[str, Any] | None = None,
        doubts: bool = False,
        answers: OpenAnswers | None = None,
        known: Iterable[Answered] = (),
        requests: OpenRequests | None = None,
        granted: Iterable[Granted] = (),
        delegation: Delegating | None = None,
        handover: bool | None = None,
    ) -> None:
        """`answers` decides predicates that code cannot decide, and `known` contains its earlier answers.

        `requests` determines what the user's words allow, and `granted` contains its earlier answers. With `doubts`, a
        write that returned an error may still have run, unless the pack declares that the error means a refusal.
        `handover` and `delegation` override the pack's settings.
        """
        self.pack = pack if isinstance(pack, Pack) else load_pack(pack)
        given: Mapping[str, Any] = copied(context) if context else {}
        warn_of_unknown(self.pack, given)
        self.id = id
        self._doubts = doubts
        self._script = Transcript()
        self._context = dict(given)
        self._vouched: dict[str, Any] = {}
        """The host's context for the next calls."""
        self._asked_about = set[str]()  # tool names
        self._undecided: list[Call] = []
        """Calls in the last message on which the host may still request a decision."""
        self._may_be_handed_over = self.pack.postures.handover if handover is None else handover
        read = requests(self.pack) if requests is not None and self.pack.reads_requests else None
        self._open = partial(Session, self.pack, context=given, is_live=True, delegation=delegation, read_request=read)
        answer = answers(self.pack, lambda: self.session.heard(self._script.events)) if answers is not None else None
        self.session = self._open(world=world, mode=mode, answer=answer, known=known, granted=granted)

    @cached_property
    def _told_before(self) -> ToldBefore:
        return ToldBefore(self._script.events)

    @cached_property
    def cards(self) -> PutCards:
        """The cards shown to the user, each with the user's answers."""
        return PutCards(self._script, self.session)

    def user(self, text: str, *, time: float | None = None, whole: bool = True) -> None:
        """Report a user message. Pass `whole=False` if the message contained more than text, such as a voice note or a
        file.
        """
        self.assume_executed()
        self._begin("user", time)
        if self.running():
            # While a call is running, another agent may have written a message that appears to come from the user.
            self._script.leave_out("user")
        else:
            self._script.hear(text, whole=whole)
        self._take()

    def agent(self, text: str, *, time: float | None = None) -> None:
        """Report an agent message. Calls directly after the message belong to its turn."""
        self.assume_executed()
        self._begin("agent", time, anew=True)
        self._script.say("agent", text)
        self._take()

    def unheard(self) -> None:
        """Record that messages may be missing. All predicates that depend on earlier messages are then unknown."""
        self.assume_executed()
        speakers: tuple[Party, ...] = ("agent", "user")
        for speaker in speakers:
            self._begin(speaker, None, anew=True)
            self._script.leave_out(speaker)
            self._take()

    def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | str,
        *,
        id: str = "",
        time: float | None = None,
        agent: str = "",
    ) -> Judgement:
        """Judge a call that the agent wants to make.

        Arguments may be JSON text. `agent` names the sub-agent, if one makes the call for the main agent. A sub-agent
        has seen only its own inputs. Consecutive calls count as simultaneous, so a call does not see results from its
        own turn. To report the first call's result before the second call is judged, wrap both calls in `turn()`.
        """
        tool_name(tool)
        return self._judge(tool, *as_object(arguments), id, time, agent)

    def _judge(
        self, tool: str, given: dict[str, Any], fault: str, id: str, time: float | None, agent: str = ""
    ) -> Judgement:
        if self._undecided:
            self._decide_on(tool, given, id)
        self._begin("agent", time)
        if id and self._script.waits_for(id):
            raise UsageError(f"call `{id}` is still waiting for its result", hint="give each call its own id")
        call = self._script.call(tool, given, id, agent=agent)
        if fault or self._vouched:
            call = replace(call, fault=fault, context=self._vouched or None)
            self._script.events[-1] = self._script.open[len(self._script.events) - 1] = call
            self._vouched = {}
        self._asked_about.add(tool)
        self._judged = self.session.judge(call)
        return self._judged

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
        """Report a tool result. It belongs to the call with this id.

        Without an id, the result belongs to the earliest waiting call of this tool or, if there is none, of any tool.
        `refused` means that the call failed before the tool ran. After any other error, a write may have run.
        """
        shown = as_content(content)
        if any(call.id == id for call in self._undecided):
            self.assume_executed()
        self._take()
        self._script.time = time
        is_waiting = self._script.waits_for(id)
        is_late = id in self._script.closed and not is_waiting
        is_known = is_waiting and (not tool or any(call.tool == tool for call in self.waiting()))
        if not is_known and not is_late:
            which = f" `{id}`" if id else f" of `{tool}`" if tool else ""
            what = f"no call{which} is waiting for a result"
            hint = (
                "report the call first (with `call` on a conversation or `decide` on a session);"
                " its result must have the same id"
            )
            raise UsageError(what, hint=hint)
        self._script.answer(shown, id, tool, error=error, captured=captured, refused=refused, is_decided=True)
        withhold_refusals(self._script.events, len(self._script.events) - 1)
        if self._doubts:
            doubt(self._script, len(self._script.events) - 1, self.pack.schema)
        if not self._is_held and not is_late:
            self._speaker = "tool"
        self._take()

    def refuse(self, card: Card | None = None, shown: tuple[LookedUp, ...] = ()) -> None:
        """Refuse the most recently judged call. The call is recorded as an attempt that changed nothing.

        The text that the agent receives in place of a result can be reported afterwards with `result`. `card` is the
        card for the user. `shown` lists look-ups that were made for this call and shown to the agent.
        """
        if self._judged is None:
            raise UsageError("there is no judged call left to refuse", hint="call `refuse` right after `call(...)`")
        self._script.events[-1] = self.session.refuse(self._judged.call, card, shown)
        self._taken, self._judged = len(self._script.events), None
        self._refused = self._taken - 1

    def give_up(self, step: int) -> None:
        """Abandon a waiting call, because the same call was requested again. It remains unknown whether the first call
        ran.
        """
        self._take()
        call = self._script.open.pop(step)
        self._script.events.append(Result(step, GIVEN_UP, captured=False, tool=call.tool, agent=call.agent))
        self._take()

    def confirm(self, confirmation: Confirmation, *, time: float | None = None, now: float | None = None) -> None:
        """Report the user's answer to a card, given at `time`. An answer can be reported only once. `now` is the
        shield's clock.
        """
        self._take()
        if not self.cards.is_new(confirmation, time, now):
            return
        time = now if time is None else time
        self._begin("user", time, anew=True)
        said = Message("user", "", self._script.turn, time=time, confirmation=confirmation)
        self._script.events.append(said)
        self._take()

    @contextmanager
    def turn(self, text: str = "") -> Generator[Self]:
        """Group the events in the `with` block into one agent turn, because their calls were requested together."""
        self.begin_turn(text)
        try:
            yield self
        finally:
            self.finish_turn()

    def begin_turn(self, text: str = "", *, time: float | None = None) -> None:
        """Begin an agent turn that lasts until `finish_turn`."""
        self._begin("agent", time, anew=True)
        if text:
            self._script.say("agent", text)
            self._take()
        self._is_held = True

    def hold_turn(self) -> None:
        """Add all events until `finish_turn` to the previous turn."""
        self._is_held, self._speaker = True, "agent"

    def finish_turn(self) -> None:
        """End a turn that `begin_turn` or `hold_turn` started."""
        self._is_held, self._speaker = False, "tool"

    def resume_turn(self) -> None:
        """Add the next call to the agent's previous turn, even though tool results have arrived in the meantime."""
        if self._speaker == "tool":
            self._speaker = "agent"

    def end_turn(self) -> None:
        """End the agent's turn although no result has arrived. The agent's next call begins a new turn."""
        self._take()
        self._speaker = ""

    def _begin(self, speaker: str, time: float | None, *, anew: bool = False) -> None:
        self._take()
        if self._refused is not None:
            self._script.close(self._refused)
            self._refused = None
        self._script.time = time
        if not self._is_held and (anew or speaker != self._speaker):
            self._script.begin_turn()
        self._speaker = speaker

    def messages(
        self, messages: Iterable[Any], *, asks: bool = False, time: float | None = None, late: bool = False
    ) -> list[Judgement]:
        """Report complete messages to or from a model, as dicts or objects in the format of OpenAI, Anthropic or
        LangChain.

        Returns the judgements of the agent's calls in these messages, in order. Messages that were reported before are
        skipped. With `asks`, the calls in the last message have not been made yet: for each of them, the host will
        request a decision or report the result. `time` applies to messages without a timestamp. `late` means that
        writes may have followed the look-ups in these messages.
        """
        listed = list(messages)
        known = self._told_before.known(listed)
        if known.is_history:
            # The history already contains the results of these calls.
            self._undecided = []
        self.assume_executed()
        if not known.is_sure:
            self.unheard()
        self._script.time = time
        start = len(self._script.events)
        self._read(listed, known)
        if late:
            withhold(self._script.events, start)
        self._speaker = "tool"
        if asks:
            asked = self._script.take_back(self._script.waiting_since(self._taken))
            self._undecided = [call for call in asked if isinstance(call, Call)]
        judged: list[Judgement] = []
        for step in range(self._taken, len(self._script.events)):
            event = self._script.events[step]
            if isinstance(event, Call) and event.by == "agent":
                judged.append(self.session.judge(event))
                event = self._script.events[step] = judged[-1].call
            self.session.observe(event)
        self._taken = len(self._script.events)
        return judged

    def asked(
        self,
        messages: Iterable[Any],
        tool: str,
        arguments: Mapping[str, Any] | str,
        *,
        id: str = "",
        time: float | None = None,
    ) -> Judgement:
        """Judge a call that is part of the last message or follows it.

        A call in the last message does not see the results of the message's other calls. If the message contains equal
        calls, `id` selects one of them. The default is the last.
        """
        listed = list(messages)
        known = self._told_before.known(listed)
        if not known.is_sure:
            self.unheard()
        self._read(listed, known)
        given, fault = as_object(arguments)
        self._speaker = "agent" if self._script.withdraw(tool, given, id) else "tool"
        tool_name(tool)
        return self._judge(tool, given, fault, "", time)

    def _read(self, listed: list[Any], known: KnownMessages) -> None:
        """Add the new messages to the transcript. First remove claims that only a host may make."""
        self._take()
        script, start, running = self._script, self._taken, self.running()
        messages = listed[known.messages :]
        script.decided = start
        if known.has_words:
            follow_messages(messages[:1], script)
            for event in script.take_back(start):
                if isinstance(event, Call):
                    script.add(event)
            messages = messages[1:]
        follow_messages(messages, script)
        disown(script.events, start)
        withhold_refusals(script.events, start)
        if running:
            disown_during(script.events, start, running)
        if self._doubts:
            doubt(script, start, self.pack.schema)
        # The host requests a decision on every new call to these tools, so a call without such a request is old.
        withhold_old(script.events, start, self._asked_about if known.is_sure and not known.may_be_old else None)

    def _decide_on(self, tool: str, arguments: Mapping[str, Any], id: str) -> None:
        """Add a call to the turn of the last message. If the message lacks it, the message's calls have run."""

        def is_meant(call: Call) -> bool:
            return call.id == id if id and call.id else (call.tool, call.arguments) == (tool, arguments)

        call = next(filter(is_meant, self._undecided), None)
        if call is None:
            self.assume_executed()
        else:
            self._undecided.remove(call)
            self._speaker = "agent"

    @property
    def has_undecided(self) -> bool:
        """Whether the host may still request a decision on a call in the last message."""
        return bool(self._undecided)

    def assume_executed(self) -> None:
        """Assume that the undecided calls in the last message ran, because the host requests no decision on them."""
        if self._undecided:
            self._take()
            for call in self._undecided:
                self._script.add(call)
            self._undecided = []
            self._speaker = "tool"

    @property
    def context(self) -> Mapping[str, Any]:
        """The context values that the host has confirmed."""
        return self._context

    def vouch(self, context: Mapping[str, Any]) -> None:
        """Set the host's context for the next calls. Raises an error for a handover that the pack does not allow."""
        given = copied(context)
        if self.handed_over and PRINCIPAL in self._context and PRINCIPAL not in given:
            hint = f"pass `{PRINCIPAL}` in the `context` of each request, because the user may have changed"
            raise UsageError(
                f"conversation `{self.id}` was handed over, and the request does not name the current user", hint=hint
            )
        if not goes_on(self._context, given):
            if not self._may_be_handed_over:
                raise AnotherPrincipal(self.id)
            self._hand_over(given)
            return
        news = {
            name: value for name, value in given.items() if name not in self._context or self._context[name] != value
        }
        if news:
            warn_of_unknown(self.pack, news)
            self._context.update(news)
            self._vouched.update(news)

    def _hand_over(self, context: Mapping[str, Any]) -> None:
        warn_of_unknown(self.pack, context)
        self.assume_executed()
        self._begin("user", None, anew=True)
        if self._is_held:
            self._script.begin_turn()
        self._script.events.append(Message("user", "", self._script.turn, handover=dict(context)))
        self._take()
        self._passed_to(context, len(self._script.events))

    def _passed_to(self, context: Mapping[str, Any], step: int) -> None:
        self._context, self._vouched = dict(context), {}
        self.handed_over = step
        self.cards.begin_anew(step)

    def resume(self, events: Sequence[Event], asked: Iterable[int] = ()) -> None:
        """Continue a recorded conversation. `asked` contains the steps of the calls on which the host requested a
        decision.
        """
        if not events:
            return
        self._take()
        script = self._script
        start = len(script.events) if self._refused is None else self._refused
        for step, event in enumerate(events, len(script.events)):
            if isinstance(event, Call) and event.context:
                self._context.update(event.context)
            elif isinstance(event, Message) and event.handover is not None:
                self._passed_to(event.handover, step + 1)
        script.resume(events)
        self._asked_about.update(call.tool for each in asked if isinstance(call := script.events[each], Call))
        end = len(script.events) - 1
        for step in range(start, end + 1):
            event = script.events[step]
            if isinstance(event, Call) and not event.refused:
                script.closed.pop(event.id, None)
            elif isinstance(event, Call) and step < end:
                script.close(step)
        last = script.events[end]
        self._speaker = "tool" if isinstance(last, Result) else last.by
        self._refused = end if is_refused(last) else None
        self.session.resume(script.events[self._taken :])
        self._taken = end + 1

    def _take(self) -> None:
        events = self._script.events
        new = len(events) - self._taken
        if new == 1:
            self.session.observe(events[-1])
        elif self._script.tells_refusal and any(
            type(event) is Call and event.refused_by_result for event in events[self._taken :]
        ):
            for step in range(self._taken, len(events)):
                event = events[step]
                if isinstance(event, Call) and event.refused_by_result:
                    event = events[step] = self.session.judge(event).call
                self.session.observe(event)
        elif new:
            self.session.observe_all(events[self._taken :])
        self._taken, self._judged = len(events), None

    def running(self) -> dict[int, Call]:
        """The agent's allowed calls that have no result yet and were not interrupted, keyed by step."""
        events, interrupted = self._script.events, self.interrupted
        if interrupted is None:
            return {}
        return {
            step: call
            for step, call in self._script.open.items()
            if call.by == "agent" and not (is_refused(events[step]) or (call.id and call.id in interrupted))
        }

    def waiting(self) -> list[Call]:
        """The agent's calls without a result, in order."""
        return [call for _, call in sorted(self._script.open.items()) if call.by == "agent"]

    def page_tool(self, id: str) -> str:
        """Return the name of the tool that shows the page, if a call without a result may write through an element of
        the page. Otherwise, return an empty string.
        """
        acting, step = self.session.acting, self._step_of(id)
        return acting.page_tool(step) if acting is not None and step is not None else ""

    def is_same_on(self, id: str, snapshot: str) -> bool:
        """Whether, on the page in this snapshot, a call without a result would still do what it did when judged."""
        acting, step = self.session.acting, self._step_of(id)
        return acting is not None and step is not None and acting.is_same_on(step, snapshot)

    def _step_of(self, id: str) -> int | None:
        return next((step for step, call in self._script.open.items() if call.id == id), None)

    def since(self, step: int) -> Sequence[Event]:
        return self._script.events[step:]

    @property
    def events(self) -> Sequence[Event]:
        return tuple(self._script.events)

    @property
    def length(self) -> int:
        return len(self._script.events)

    def verdicts(self) -> list[CallVerdict]:
        """Return the verdicts on the calls that change something or have a guard. The verdicts use the ground truth."""
        self._take()
        return [verdict for verdict in self.session.settle() if is_listed(self.pack, verdict.made)]

    def findings(self, *, ended: bool = False) -> list[RuleFinding]:
        """Return the rules broken so far. If the conversation has `ended`, include the rules still waiting."""
        self._take()
        return self.session.findings(ended=ended)

    def judged_after(self, events: Sequence[Event], call: Call) -> tuple[Judgement, Session]:
        """Judge a call as if it came after these events. Also return the session, which shares the model's answers."""
        ours = self.session.requests
        session = self._open(known=self.session.answered, granted=ours.granted if ours is not None else ())
        session.resume(events)
        judgement = session.judge(call)
        if ours is not None and session.requests is not None:
            ours.know(session.requests.granted[len(ours.granted) :])
        return judgement, session

    def trajectory(self, agent: str = "") -> Trajectory:
        """Return the conversation so far, in the format of log readers."""
        return Trajectory(self.id, self.events, agent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._take()

    def __repr__(self) -> str:
        name = f" `{self.id}`" if self.id else ""
        return f"<conversation{name} under {self.pack.name}: {len(self._script.events)} events>"


class Mutation(Struct, frozen=True):
    """One change to a live conversation, stored as data so that another worker can apply it again after taking over."""

    kind: Literal[
        "user", "agent", "messages", "result", "confirm", "vouch", "unheard", "assume_executed",
        "begin_turn", "resume_turn", "finish_turn",
    ]  # fmt: skip
    given: dict[str, Any] = {}

    @property
    def is_spoken(self) -> bool:
        """Whether the change contains a message from or to the principal."""
        return self.kind in ("user", "agent", "messages", "confirm")

    def apply(self, conversation: Conversation) -> None:
        """Apply the change. Raises an error if a result has no id and could belong to several calls."""
        if self.kind == "result" and not self.given.get("id"):
            one_waits(conversation.waiting(), self.given.get("tool", ""))
        getattr(conversation, self.kind)(**self.given)


class AskedCall(Struct, frozen=True):
    tool: str
    arguments: Mapping[str, Any] | str
    id: str = ""
    time: float | None = None
    agent: str = ""
    """The sub-agent, if any, that makes the call on behalf of the main agent."""
    messages: Sequence[Any] | None = None
    """All messages so far, if the caller keeps the history."""
    given_up: int | None = None
    """The step of an earlier, now abandoned request for the same call."""

    def judge(self, conversation: Conversation) -> Judgement:
        if self.given_up is not None:
            conversation.give_up(self.given_up)
        if self.messages is not None:
            return conversation.asked(self.messages, self.tool, self.arguments, id=self.id, time=self.time)
        return conversation.call(self.tool, self.arguments, id=self.id, time=self.time, agent=self.agent)
