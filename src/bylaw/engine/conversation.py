"""A live conversation under a pack: report events as they happen, and get the pack's judgement of each call.

`Session` takes finished events. This class resolves what a live host leaves open: whose turn it is, which call a result
belongs to, which messages are new, the host's context, and which calls were made, refused or are waiting.
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
from bylaw.engine.unbelieved import disown, disown_during, doubt, is_refused, withhold_old, withhold_refusals
from bylaw.errors import UsageError
from bylaw.facts.world import World
from bylaw.pack import Pack, load_pack
from bylaw.trace.event import Call, Card, Confirmation, Event, LookedUp, Message, Party, Result, Trajectory
from bylaw.trace.messages import follow_messages
from bylaw.trace.transcript import Transcript

OpenAnswers = Callable[[Pack, Callable[[], Sequence[Event]]], AnswerPredicate]
"""Opens an answerer for one conversation, from its pack and a function that returns all events so far."""
OpenRequests = Callable[[Pack], RequestModel]
"""Reads requests under one pack."""
GIVEN_UP = "not known: the call was asked for again, and decided anew"
"""The result of an abandoned call."""


class Conversation:
    """One conversation in progress.

    `call` judges a call on what the agent had seen before its turn. The call counts as made unless `refuse` is called
    before anything else happens.
    """

    handed_over = 0
    """The number of events before the last handover to another principal; 0 if there was none."""
    interrupted: Collection[str] | None = None
    """Ids of allowed calls that do not run now; None if the conversation is past and no call runs."""
    _taken = 0
    """Number of events passed to the session."""
    _judged: Judgement | None = None
    """The call that was judged last and may still be refused."""
    _speaker = ""
    """The current speaker: `agent`, `user`, `tool`, or empty at the start."""
    _refused: int | None = None
    """The step of the last refused call; a result right after it is the text the agent received instead."""
    _is_held = False
    """Everything belongs to one turn until `finish_turn`."""

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
        """`answers` settles predicates that code cannot; `requests` reads what the user's words allow; `known` and
        `granted` are their earlier answers.

        With `doubts`, an error of a write leaves open whether it was executed, unless the pack declares a refusal.
        `handover` and `delegation` override the pack.
        """
        self.pack = pack if isinstance(pack, Pack) else load_pack(pack)
        given: Mapping[str, Any] = copied(context) if context else {}
        warn_of_unknown(self.pack, given)
        self.id = id
        self._doubts = doubts
        self._script = Transcript()
        self._context = dict(given)
        self._vouched: dict[str, Any] = {}
        """The host's context from the next call on."""
        self._asked_about = set[str]()  # tools
        self._undecided: list[Call] = []
        """Calls of the last message, which the host may still ask about."""
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
        """The cards that were shown to the user, and their answers."""
        return PutCards(self._script, self.session)

    def user(self, text: str, *, time: float | None = None, whole: bool = True) -> None:
        """Report a user message; `whole=False` if it had more than text, such as a voice note or a file."""
        self.assume_executed()
        self._begin("user", time)
        if self.running():
            # Another agent may speak as the user to the one that a call runs.
            self._script.leave_out("user")
        else:
            self._script.hear(text, whole=whole)
        self._take()

    def agent(self, text: str, *, time: float | None = None) -> None:
        """Report an agent message; calls directly after it belong to the same turn."""
        self.assume_executed()
        self._begin("agent", time, anew=True)
        self._script.say("agent", text)
        self._take()

    def unheard(self) -> None:
        """Agent and user may have spoken unreported: whatever depends on their words is unknown from here on."""
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
        """Judge a call the agent wants to make.

        `agent` names an inner agent that makes it for the main one and has seen only what was shown to itself.
        Consecutive calls count as simultaneous. If the first one's result is reported before the second call is judged,
        put both in `turn()`, because a call does not see results of its own turn. Arguments may be JSON text.
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
            raise UsageError(f"a call `{id}` still waits for its result", hint="give each call an id of its own")
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
        """Report a tool's result: for the call with this id, of this tool, or the earliest waiting one.

        `refused` means that it failed before the tool ran; any other error of a write may have come after it was
        executed.
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
            what = f"no call{which} waits for a result"
            hint = "the call comes first (`call` of a conversation, `decide` of a session), and its result bears its id"
            raise UsageError(what, hint=hint)
        self._script.answer(shown, id, tool, error=error, captured=captured, refused=refused, is_decided=True)
        withhold_refusals(self._script.events, len(self._script.events) - 1)
        if self._doubts:
            doubt(self._script, len(self._script.events) - 1, self.pack.schema)
        if not self._is_held and not is_late:
            self._speaker = "tool"
        self._take()

    def refuse(self, card: Card | None = None, shown: tuple[LookedUp, ...] = ()) -> None:
        """Refuse the call judged last: it was attempted and changes nothing.

        The text the agent receives instead may follow as its `result`. `card` is the card for the user; `shown` are
        look-ups made for the call and shown to the agent.
        """
        if self._judged is None:
            raise UsageError("no call was judged that could still be refused", hint="refuse it right after `call(...)`")
        self._script.events[-1] = self.session.refuse(self._judged.call, card, shown)
        self._taken, self._judged = len(self._script.events), None
        self._refused = self._taken - 1

    def give_up(self, step: int) -> None:
        """Abandon a waiting call that is requested again: whether it was made meanwhile is unknown."""
        self._take()
        call = self._script.open.pop(step)
        self._script.events.append(Result(step, GIVEN_UP, captured=False, tool=call.tool, agent=call.agent))
        self._take()

    def confirm(self, confirmation: Confirmation, *, time: float | None = None, now: float | None = None) -> None:
        """Report the user's answer to a card, given at `time`; repeating the same answer changes nothing. `now` is the
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
        """One turn of the agent: the calls inside were requested together, even if results arrive in between."""
        self.begin_turn(text)
        try:
            yield self
        finally:
            self.finish_turn()

    def begin_turn(self, text: str = "", *, time: float | None = None) -> None:
        """Everything until `finish_turn` is one turn of the agent."""
        self._begin("agent", time, anew=True)
        if text:
            self._script.say("agent", text)
            self._take()
        self._is_held = True

    def hold_turn(self) -> None:
        """Everything until `finish_turn` belongs to the last turn."""
        self._is_held, self._speaker = True, "agent"

    def finish_turn(self) -> None:
        """The turn that was begun or held is over."""
        self._is_held, self._speaker = False, "tool"

    def resume_turn(self) -> None:
        """The next call is still of the agent's last turn, whatever tools have answered since."""
        if self._speaker == "tool":
            self._speaker = "agent"

    def end_turn(self) -> None:
        """End the agent's turn although nobody has answered; its next call begins a new turn."""
        self._take()
        self._speaker = ""

    def _begin(self, speaker: str, time: float | None, *, anew: bool = False) -> None:
        """The next event is this party's; it begins a new turn unless the party continues its own."""
        self._take()
        if self._refused is not None:
            self._script.close(self._refused)
            self._refused = None
        self._script.time = time
        if not self._is_held and (anew or speaker != self._speaker):
            self._script.begin_turn()
        self._speaker = speaker

    def messages(self, messages: Iterable[Any], *, asks: bool = False, time: float | None = None) -> list[Judgement]:
        """Report complete messages to or from a model: OpenAI's, Anthropic's or LangChain's, as dicts or objects.

        Returns the judgements of the agent's calls among them, in order. Messages reported before are skipped. With
        `asks`, the calls of the last message are not made yet: the host asks about each next, or reports its result.
        `time` applies to messages without a time.
        """
        listed = list(messages)
        known = self._told_before.known(listed)
        if known.is_history:
            # The history contains their results.
            self._undecided = []
        self.assume_executed()
        if not known.is_sure:
            self.unheard()
        self._script.time = time
        self._read(listed, known)
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
        """Judge a call after all messages so far: a following one, or one in the last message.

        In the latter case the call belongs to that message's turn and does not see results of its other calls. If the
        message makes the same call more than once, `id` chooses one; by default the last.
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
        """Add the new messages to the transcript, without what only a host may say."""
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
        # A host that asks about a tool would have asked about a new call of it.
        withhold_old(script.events, start, self._asked_about if known.is_sure and not known.may_be_old else None)

    def _decide_on(self, tool: str, arguments: Mapping[str, Any], id: str) -> None:
        """Add a call of the last message to its turn. Any other call means that the message's calls were made."""

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
        """Whether the host may still ask about calls of the last message."""
        return bool(self._undecided)

    def assume_executed(self) -> None:
        """Assume that the last message's remaining calls were made, because the host will not ask about them."""
        if self._undecided:
            self._take()
            for call in self._undecided:
                self._script.add(call)
            self._undecided = []
            self._speaker = "tool"

    @property
    def context(self) -> Mapping[str, Any]:
        """Update the values vouched for by the host."""
        return self._context

    def vouch(self, context: Mapping[str, Any]) -> None:
        """Set the host's context from the next call on. Another principal is rejected unless the pack allows a
        handover.
        """
        given = copied(context)
        if self.handed_over and PRINCIPAL in self._context and PRINCIPAL not in given:
            hint = f"give `{PRINCIPAL}` in the `context` of each request: who spoke last may not be who speaks now"
            raise UsageError(f"conversation `{self.id}` was handed over, and nobody says who speaks", hint=hint)
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
        """Hand over to another principal, to whom nothing vouched for, said or shown before applies."""
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
        """Continue a recorded conversation with these events; the host asked about the calls at the steps `asked`."""
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
        """Pass new events to the session; a judged call among them has been made."""
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
            self.session.take(events[self._taken :])
        self._taken, self._judged = len(events), None

    def running(self) -> dict[int, Call]:
        """The agent's calls, by step, that were not refused, have no result, and were not interrupted."""
        events, interrupted = self._script.events, self.interrupted
        if interrupted is None:
            return {}
        return {
            step: call
            for step, call in self._script.open.items()
            if call.by == "agent" and not (is_refused(events[step]) or (call.id and call.id in interrupted))
        }

    def waiting(self) -> list[Call]:
        """The agent's calls that still wait for their results, in order."""
        return [call for _, call in sorted(self._script.open.items()) if call.by == "agent"]

    def since(self, step: int) -> Sequence[Event]:
        """The events from a step on."""
        return self._script.events[step:]

    @property
    def events(self) -> Sequence[Event]:
        """The events so far."""
        return tuple(self._script.events)

    @property
    def length(self) -> int:
        """The number of events so far."""
        return len(self._script.events)

    def verdicts(self) -> list[CallVerdict]:
        """The verdict on every call so far that changes something or that a guard binds, with what is true."""
        self._take()
        return [verdict for verdict in self.session.settle() if is_listed(self.pack, verdict.made)]

    def findings(self, *, ended: bool = False) -> list[RuleFinding]:
        """The rules broken so far; if the conversation has `ended`, also those that still wait for something."""
        self._take()
        return self.session.findings(ended=ended)

    def judged_after(self, events: Sequence[Event], call: Call) -> tuple[Judgement, Session]:
        """Judge a call after these events instead of the actual ones; also returns the session.

        It uses this conversation's request reader and model answers.
        """
        ours = self.session.requests
        session = self._open(known=self.session.answered, granted=ours.granted if ours is not None else ())
        session.resume(events)
        judgement = session.judge(call)
        if ours is not None and session.requests is not None:
            ours.know(session.requests.granted[len(ours.granted) :])
        return judgement, session

    def trajectory(self, agent: str = "") -> Trajectory:
        """The conversation so far, as the readers return recorded ones."""
        return Trajectory(self.id, self.events, agent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._take()

    def __repr__(self) -> str:
        name = f" `{self.id}`" if self.id else ""
        return f"<conversation{name} under {self.pack.name}: {len(self._script.events)} events>"


class Mutation(Struct, frozen=True):
    """One change to a live conversation as data: a method and its arguments.

    An unwritten mutation is applied again if another worker has continued the conversation meanwhile.
    """

    kind: Literal[
        "user", "agent", "messages", "result", "confirm", "vouch", "unheard", "assume_executed",
        "begin_turn", "resume_turn", "finish_turn",
    ]  # fmt: skip
    given: dict[str, Any] = {}

    @property
    def is_spoken(self) -> bool:
        """Whether it contains words by or to the principal."""
        return self.kind in ("user", "agent", "messages", "confirm")

    def apply(self, conversation: Conversation) -> None:
        """Change a conversation; a result without an id is refused if it may answer several calls."""
        if self.kind == "result" and not self.given.get("id"):
            one_waits(conversation.waiting(), self.given.get("tool", ""))
        getattr(conversation, self.kind)(**self.given)


class AskedCall(Struct, frozen=True):
    """A call that the agent wants to make."""

    tool: str
    arguments: Mapping[str, Any] | str
    id: str = ""
    time: float | None = None
    agent: str = ""
    """The inner agent that makes it for the main one."""
    messages: Sequence[Any] | None = None
    """All messages so far, from a caller that keeps the history itself."""
    given_up: int | None = None
    """The step of the same call's earlier request, which is decided again."""

    def judge(self, conversation: Conversation) -> Judgement:
        """Judge it now."""
        if self.given_up is not None:
            conversation.give_up(self.given_up)
        if self.messages is not None:
            return conversation.asked(self.messages, self.tool, self.arguments, id=self.id, time=self.time)
        return conversation.call(self.tool, self.arguments, id=self.id, time=self.time, agent=self.agent)
