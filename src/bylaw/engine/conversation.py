"""A live conversation under a pack: say what happens as it happens, and hear what pack and evidence say of each call.

Turns, ids and the pairing of results with calls are kept here; `Session` below it takes finished events.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msgspec.structs import replace

from bylaw.engine.context import PRINCIPAL, AnotherPrincipal, copied, goes_on, warn_of_unknown
from bylaw.engine.door import as_content, as_object, tool_name
from bylaw.engine.finished import is_judged
from bylaw.engine.judgement import Judgement
from bylaw.engine.predicate_values import Answered, AnswerPredicate
from bylaw.engine.put_cards import PutCards
from bylaw.engine.request import Delegating, Granted, ReadRequest
from bylaw.engine.rule_finding import RuleFinding
from bylaw.engine.session import Mode, Session
from bylaw.engine.settlement import CallVerdict
from bylaw.engine.told_again import ToldBefore
from bylaw.engine.unbelieved import Doubts, disown, doubt
from bylaw.errors import UsageError
from bylaw.facts.world import World
from bylaw.pack import Pack, load_pack
from bylaw.text.once import once
from bylaw.trace.event import Call, Card, Confirmation, Event, LookedUp, Message, Result
from bylaw.trace.messages import follow_messages
from bylaw.trace.trajectory import Trajectory
from bylaw.trace.transcript import TheUser, Transcript

GIVEN_UP = "not known: the call was asked for again, and decided anew"
"""What stands as the result of a call that was given up."""
OpenAnswers = Callable[[Pack, Callable[[], Sequence[Event]]], AnswerPredicate]
"""Begins to answer for one conversation: given its pack, and a way to all that has happened so far."""
OpenRequests = Callable[[Pack], ReadRequest]
"""Reads requests under one pack."""


class Conversation:
    """One conversation in progress.

    A call is judged when it is made known with `call`, on what the agent had seen before its turn. It counts as made
    unless `refuse` says otherwise before anything else happens.
    """

    handed_over = 0
    """How many events came before whom the conversation is with now; 0 where it was with them from the start."""
    _taken = 0
    """How many of the events so far the session has taken in."""
    _judged: Judgement | None = None
    """The call that was judged last and may yet be refused."""
    _speaker = ""
    """Whose turn it is: `agent`, `user`, `tool`, or nobody's yet."""
    _refused: int | None = None
    """The call that was refused last: what comes at once as a result is what the agent was told in its place."""
    _held = False
    """Everything belongs to one turn until the block ends."""

    def __init__(
        self,
        pack: Pack | str | Path,
        *,
        id: str = "",
        world: World | None = None,
        mode: Mode = "hindsight",
        context: Mapping[str, Any] | None = None,
        doubts: Doubts | None = None,
        answers: OpenAnswers | None = None,
        known: Iterable[Answered] = (),
        requests: OpenRequests | None = None,
        granted: Iterable[Granted] = (),
        delegation: Delegating | None = None,
        handover: bool | None = None,
    ) -> None:
        """`requests` says what the user's words allow; without it the words of the tool catalogue tell. `granted`
        is what it said before.

        `doubts` says of a write's result whether it leaves open if the write was done: it then counts as not seen.

        `answers` is asked for predicates that code cannot settle, `known` is what it answered before.

        `handover` says whether another principal may go on with it; without it the pack does.
        """
        self.pack = pack if isinstance(pack, Pack) else load_pack(pack)
        self.id = id
        self._doubts = doubts
        given: Mapping[str, Any] = {}
        if context:
            given = copied(context)
            warn_of_unknown(self.pack, given)
        self._context = dict(given)
        self._vouched: dict[str, Any] = {}
        """What the host vouches for with the next call."""
        self._may_be_handed_over = self.pack.postures.handover if handover is None else handover
        self._script = Transcript()
        read = requests(self.pack) if requests is not None and self.pack.reads_requests else None
        self._open = partial(Session, self.pack, context=given, is_live=True, delegation=delegation, read_request=read)
        self.session: Session = self._open(
            world=world,
            mode=mode,
            answer=answers(self.pack, lambda: self.session.heard(self._script.events)) if answers is not None else None,
            known=known,
            granted=granted,
        )
        self._asked_for: list[Call] = []
        """Calls of the last message that was told, which somebody may be asked to decide on next."""

    @once
    def _told_before(self) -> ToldBefore:
        return ToldBefore(self._script.events)

    @once
    def cards(self) -> PutCards:
        """What is to be put to the user, and what they answered."""
        return PutCards(self._script, self.session)

    def user(self, text: str, *, time: float | None = None, whole: bool = True) -> None:
        """The user said something; not `whole` where there was more to it than text, such as a voice note or a file."""
        self.make()
        self._begin("user", time)
        self._script.hear(text, whole=whole, is_told=False)
        self._take()

    def agent(self, text: str, *, time: float | None = None) -> None:
        """The agent said something; calls that follow without a word or a result between are of the same turn."""
        self.make()
        self._begin("agent", time, anew=True)
        self._script.say("agent", text)
        self._take()

    def unheard(self) -> None:
        """Agent and user may have talked, and nobody told: what hangs on their words is not known from here on."""
        self.make()
        for speaker in ("agent", "user"):
            self._begin(speaker, None, anew=True)
            self._script.events.append(Message(speaker, "", self._script.turn, captured=False))
            self._take()

    def resume_turn(self) -> None:
        """What is called next is still of the agent's last turn, whatever tools have answered since."""
        if self._speaker == "tool":
            self._speaker = "agent"

    def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | str,
        *,
        id: str = "",
        time: float | None = None,
        agent: str = "",
    ) -> Judgement:
        """The agent wants to make a call: what guards and rules say of it.

        `agent` names an inner agent that makes it for the main one: it has seen only what was shown to itself.

        Calls that follow each other were made side by side. Where the first one's result is in hand before the second
        is judged, put both under `turn()`: a call does not see the results of its own turn. Arguments may be JSON text.
        """
        tool_name(tool)
        return self._judge(tool, *as_object(arguments), id, time, agent)

    @property
    def context(self) -> Mapping[str, Any]:
        """What the host vouches for by now."""
        return self._context

    def vouch(self, context: Mapping[str, Any]) -> None:
        """What the host vouches for from the next call on. Only for the principal that the conversation is of, unless
        the pack lets another go on with it."""
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
        """Somebody else goes on: nothing that was vouched for, said or put before is theirs."""
        warn_of_unknown(self.pack, context)
        self.make()
        self._begin("user", None, anew=True)
        if self._held:
            self._script.begin_turn()
        self._script.events.append(Message("user", "", self._script.turn, handover=dict(context)))
        self._script.user = TheUser()
        self._take()
        self._passed_to(context, len(self._script.events))

    def _passed_to(self, context: Mapping[str, Any], step: int) -> None:
        self._context, self._vouched = dict(context), {}
        self.handed_over = step
        self.cards.begin_anew(step)

    def _judge(
        self, tool: str, given: dict[str, Any], fault: str, id: str, time: float | None, agent: str = ""
    ) -> Judgement:
        if self._asked_for:
            self._decide_on(tool, given, id)
        self._begin("agent", time)
        if id and self._script.waits_for(id):
            raise UsageError(f"a call `{id}` still waits for its result", hint="give each call an id of its own")
        call = self._script.call(tool, given, id, agent=agent)
        if fault or self._vouched:
            call = replace(call, fault=fault, context=self._vouched or None)
            self._script.events[-1] = self._script.open[len(self._script.events) - 1] = call
            self._vouched = {}
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
        """What a tool answered: to the call with this id, or of this tool, or to the earliest that still waits.

        `refused` where it failed before the tool ran; any other error of a write may have come after the deed.
        """
        shown = as_content(content)
        if any(call.id == id for call in self._asked_for):
            self.make()
        self._take()
        self._script.time = time
        is_late = id in self._script.closed and not self._script.waits_for(id)
        is_known = self._script.waits_for(id) and (not tool or any(call.tool == tool for call in self.waiting()))
        if not is_known and not is_late:
            which = f" `{id}`" if id else f" of `{tool}`" if tool else ""
            what = f"no call{which} waits for a result"
            hint = "the call comes first (`call` of a conversation, `decide` of a session), and its result bears its id"
            raise UsageError(what, hint=hint)
        self._script.answer(shown, id, tool, error=error, captured=captured, refused=refused, is_decided=True)
        doubt(self._script, len(self._script.events) - 1, self.pack.schema, self._doubts)
        if not self._held and not is_late:
            self._speaker = "tool"
        self._take()

    def give_up(self, step: int) -> None:
        """A call that waits is asked for again: whether it was made meanwhile, nobody knows."""
        self._take()
        call = self._script.open.pop(step)
        self._script.events.append(Result(step, GIVEN_UP, captured=False, tool=call.tool, agent=call.agent))
        self._take()

    def confirm(self, confirmation: Confirmation, *, time: float | None = None) -> None:
        """The host reports what the user answered to a card; the same answer given again changes nothing."""
        if not self.cards.is_new(confirmation, time):
            return
        self._begin("user", time, anew=True)
        said = Message("user", "", self._script.turn, time=time, confirmation=confirmation)
        self._script.events.append(said)
        self._take()

    def refuse(self, card: Card | None = None, shown: tuple[LookedUp, ...] = ()) -> None:
        """The call that was judged last is not made: it was attempted, and changes nothing.

        What the agent is told in its place may follow as its `result`. A `card` is what the user is to be shown,
        `shown` what was looked up for the call and is told to the agent.
        """
        if self._judged is None:
            raise UsageError("no call was judged that could still be refused", hint="refuse it right after `call(...)`")
        self._script.events[-1] = self.session.refuse(self._judged.made.call, card, shown)
        self._taken, self._judged = len(self._script.events), None
        self._refused = self._taken - 1

    @contextmanager
    def turn(self, text: str = "") -> Generator[Self]:
        """One turn of the agent: what is called inside was decided at once, whatever is answered in between."""
        self.hold(text)
        try:
            yield self
        finally:
            self.let_go()

    def hold(self, text: str = "", *, time: float | None = None) -> None:
        """What follows is one turn of the agent, until it is released."""
        self._begin("agent", time, anew=True)
        if text:
            self._script.say("agent", text)
            self._take()
        self._held = True

    def hold_on(self) -> None:
        """What follows belongs to the turn that came last."""
        self._held, self._speaker = True, "agent"

    def let_go(self) -> None:
        """The turn that was held is over."""
        self._held, self._speaker = False, "tool"

    def end_turn(self) -> None:
        """The agent's turn is over although nobody has answered: what it does next is another turn of its own."""
        self._take()
        self._speaker = ""

    def messages(self, messages: Iterable[Any], *, asks: bool = False, time: float | None = None) -> list[Judgement]:
        """Whole messages, as they came from or went to a model: OpenAI's, Anthropic's or LangChain's, dicts or objects.

        What guards and rules say of each of the agent's calls among them, in order. What was told before is passed
        over. With `asks` the calls of the last message are not made yet: each is asked about next, or told again with
        its result. `time` is when they came, where they do not say it themselves.
        """
        listed = list(messages)
        known = self._told_before.known(listed)
        if known.is_history:
            # What was made of them is told in it.
            self._asked_for = []
        self.make()
        if not known.is_sure:
            self.unheard()
        self._script.time = time
        self._read(listed[known.messages :], is_said=known.has_words)
        self._speaker = "tool"
        if asks:
            asked = self._script.take_back(self._script.waiting_since(self._taken))
            self._asked_for = [call for call in asked if isinstance(call, Call)]
        judged: list[Judgement] = []
        for step in range(self._taken, len(self._script.events)):
            event = self._script.events[step]
            if isinstance(event, Call) and event.by == "agent":
                judged.append(self.session.judge(event))
                event = self._script.events[step] = judged[-1].made.call
            self.session.observe(event)
        self._taken = len(self._script.events)
        return judged

    def _decide_on(self, tool: str, arguments: Mapping[str, Any], id: str) -> None:
        """Somebody asks about a call: where it is one of the message that was told last, it is of that turn. Where it
        is another, those were made."""

        def is_meant(call: Call) -> bool:
            return call.id == id if id and call.id else (call.tool, call.arguments) == (tool, arguments)

        call = next(filter(is_meant, self._asked_for), None)
        if call is None:
            self.make()
        else:
            self._asked_for.remove(call)
            self._speaker = "agent"

    @property
    def asks(self) -> bool:
        """Whether the message that was told last has calls that nobody has asked about yet."""
        return bool(self._asked_for)

    def make(self) -> None:
        """Nobody will ask about these calls any more: they were made."""
        if self._asked_for:
            self._take()
            for call in self._asked_for:
                self._script.add(call)
            self._asked_for = []
            self._speaker = "tool"

    def asked(
        self,
        messages: Iterable[Any],
        tool: str,
        arguments: Mapping[str, Any] | str,
        *,
        id: str = "",
        time: float | None = None,
    ) -> Judgement:
        """What is said of a call, given all messages so far: one that follows them, or that the last of them asks for.

        In the latter case the call is of that message's turn, and those beside it do not show it their results. Where
        the message asks for the same call more than once, `id` says which is meant; otherwise it is the last.
        """
        self._read(messages)
        given, fault = as_object(arguments)
        self._speaker = "agent" if self._script.withdraw(tool, given, id) else "tool"
        tool_name(tool)
        return self._judge(tool, given, fault, "", time)

    def _read(self, messages: Iterable[Any], *, is_said: bool = False) -> None:
        """Put messages into the transcript; what only a host may say is not taken from them on trust. What the first
        one says is left out where it `is_said` already."""
        self._take()
        listed, start = list(messages), self._taken
        has_more = False
        if is_said:
            has_more = follow_messages(listed[:1], self._script)
            calls = [event for event in self._script.take_back(start) if isinstance(event, Call)]
            for call in calls:
                self._script.add(call)
            listed = listed[1:]
        if follow_messages(listed, self._script) or has_more:
            disown(self._script.events, start)
        doubt(self._script, self._taken, self.pack.schema, self._doubts)

    def resume(self, events: Sequence[Event]) -> None:
        """Take up a conversation where it was left: these are its next events, none of them to be judged."""
        if not events:
            return
        self._take()
        start = len(self._script.events) if self._refused is None else self._refused
        for step, event in enumerate(events, len(self._script.events)):
            if isinstance(event, Call) and event.context:
                self._context.update(event.context)
            elif isinstance(event, Message) and event.handover is not None:
                self._passed_to(event.handover, step + 1)
        self._script.resume(events)
        known = self._script.events
        for step in range(start, len(known)):
            event = known[step]
            if isinstance(event, Call) and not event.refused:
                self._script.closed.pop(event.id, None)
            elif isinstance(event, Call) and step < len(known) - 1:
                self._script.close(step)
        last, self._refused = known[-1], None
        if isinstance(last, Result):
            self._speaker = "tool"
        else:
            self._speaker = last.by
            self._refused = len(known) - 1 if isinstance(last, Call) and last.refused else None
        self.session.resume(self._script.events[self._taken :])
        self._taken = len(self._script.events)

    def verdicts(self) -> list[CallVerdict]:
        """The verdict on every call so far that changes something or that a guard binds, with what is true."""
        self._take()
        return [verdict for verdict in self.session.settle() if is_judged(self.pack, verdict.made.call)]

    def findings(self, *, ended: bool = False) -> list[RuleFinding]:
        """The rules broken so far; where the conversation has `ended`, also those that wait for something in vain."""
        self._take()
        return self.session.findings(ended=ended)

    def judged_after(self, events: Sequence[Event], call: Call) -> tuple[Judgement, Session]:
        """What would be said of a call after these events, in place of what has happened, and the session that says so.

        It reads the user's words as this conversation does, and knows what a model has answered here.
        """
        ours = self.session.requests
        session = self._open(known=self.session.answered, granted=ours.granted if ours is not None else ())
        session.resume(events)
        judgement = session.judge(call)
        if ours is not None and session.requests is not None:
            ours.know(session.requests.granted[len(ours.granted) :])
        return judgement, session

    def waiting(self) -> list[Call]:
        """The agent's calls that still wait for their results, in order."""
        return [call for _, call in sorted(self._script.waiting().items()) if call.by == "agent"]

    def since(self, step: int) -> Sequence[Event]:
        """What has happened from a step on."""
        return self._script.events[step:]

    @property
    def events(self) -> Sequence[Event]:
        """What has happened so far."""
        return tuple(self._script.events)

    @property
    def length(self) -> int:
        """How many events there were so far."""
        return len(self._script.events)

    def trajectory(self, agent: str = "") -> Trajectory:
        """The conversation so far, as the readers give recorded ones."""
        return Trajectory(self.id, self.events, agent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._take()

    def __repr__(self) -> str:
        name = f" `{self.id}`" if self.id else ""
        return f"<conversation{name} under {self.pack.name}: {len(self._script.events)} events>"

    def _begin(self, speaker: str, time: float | None, *, anew: bool = False) -> None:
        """The next event is this party's; a new turn, unless it goes on with its own."""
        self._take()
        if self._refused is not None:
            self._script.close(self._refused)
            self._refused = None
        self._script.time = time
        if not self._held and (anew or speaker != self._speaker):
            self._script.begin_turn()
        self._speaker = speaker

    def _take(self) -> None:
        """Let the session take in what has happened since; a call that was judged has then been made."""
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
                    event = events[step] = self.session.judge(event).made.call
                self.session.observe(event)
        elif new:
            self.session.take(events[self._taken :])
        self._taken, self._judged = len(events), None
