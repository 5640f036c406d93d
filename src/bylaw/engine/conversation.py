"""A live conversation under a pack: say what happens as it happens, and hear what pack and evidence say of each call.

What happens one thing at a time is in `turns`; here are whole messages, what the host vouches for, and what it all
comes to. `Session` below takes finished events.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bylaw.engine.context import PRINCIPAL, AnotherPrincipal, copied, goes_on, warn_of_unknown
from bylaw.engine.door import as_object, tool_name
from bylaw.engine.finished import is_judged
from bylaw.engine.judgement import Judgement
from bylaw.engine.predicate_values import Answered, AnswerPredicate
from bylaw.engine.put_cards import PutCards
from bylaw.engine.request import Delegating, Granted, RequestModel
from bylaw.engine.rule_finding import RuleFinding
from bylaw.engine.session import Mode, Session
from bylaw.engine.settlement import CallVerdict
from bylaw.engine.told_again import ToldBefore
from bylaw.engine.turns import Turns
from bylaw.engine.unbelieved import disown, disown_during, doubt, withhold_refusals
from bylaw.errors import UsageError
from bylaw.facts.world import World
from bylaw.pack import Pack, load_pack
from bylaw.text.once import once
from bylaw.trace.event import Call, Confirmation, Event, Message, Result
from bylaw.trace.messages import follow_messages
from bylaw.trace.trajectory import Trajectory

OpenAnswers = Callable[[Pack, Callable[[], Sequence[Event]]], AnswerPredicate]
"""Begins to answer for one conversation: given its pack, and a way to all that has happened so far."""
OpenRequests = Callable[[Pack], RequestModel]
"""Reads requests under one pack."""


class Conversation(Turns):
    """One conversation in progress."""

    handed_over = 0
    """How many events came before whom the conversation is with now; 0 where it was with them from the start."""

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
        """`requests` says what the user's words allow; without it the words of the tool catalogue tell. `granted`
        is what it said before.

        With `doubts`, an error of a write leaves open whether it was executed, unless the pack declares a refusal.

        `answers` is asked for predicates that code cannot settle, `known` is what it answered before.

        `handover` says whether another principal may go on with it; without it the pack does.
        """
        given: Mapping[str, Any] = {}
        under = pack if isinstance(pack, Pack) else load_pack(pack)
        if context:
            given = copied(context)
            warn_of_unknown(under, given)
        self.id = id
        self._context = dict(given)
        self._may_be_handed_over = under.postures.handover if handover is None else handover
        read = requests(under) if requests is not None and under.reads_requests else None
        self._open = partial(Session, under, context=given, is_live=True, delegation=delegation, read_request=read)
        session = self._open(
            world=world,
            mode=mode,
            answer=answers(under, lambda: self.session.heard(self._script.events)) if answers is not None else None,
            known=known,
            granted=granted,
        )
        super().__init__(under, session, doubts)

    @once
    def _told_before(self) -> ToldBefore:
        return ToldBefore(self._script.events)

    @once
    def cards(self) -> PutCards:
        """What is to be put to the user, and what they answered."""
        return PutCards(self._script, self.session)

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
        self._take()
        self._passed_to(context, len(self._script.events))

    def _passed_to(self, context: Mapping[str, Any], step: int) -> None:
        self._context, self._vouched = dict(context), {}
        self.handed_over = step
        self.cards.begin_anew(step)

    def confirm(self, confirmation: Confirmation, *, time: float | None = None, now: float | None = None) -> None:
        """The host reports what the user answered to a card, and at what `time`; the same answer given again changes
        nothing. `now` is the shield's clock."""
        if not self.cards.is_new(confirmation, time, now):
            return
        time = now if time is None else time
        self._begin("user", time, anew=True)
        said = Message("user", "", self._script.turn, time=time, confirmation=confirmation)
        self._script.events.append(said)
        self._take()

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
        listed = list(messages)
        if self._script.events:
            known = self._told_before.known(listed)
            if not known.is_sure:
                self.unheard()
            self._read(listed[known.messages :], is_said=known.has_words)
        else:
            self._read(listed)
        given, fault = as_object(arguments)
        self._speaker = "agent" if self._script.withdraw(tool, given, id) else "tool"
        tool_name(tool)
        return self._judge(tool, given, fault, "", time)

    def _read(self, messages: Iterable[Any], *, is_said: bool = False) -> None:
        """Put messages into the transcript; what only a host may say is not taken from them on trust. What the first
        one says is left out where it `is_said` already."""
        self._take()
        listed, start, running = list(messages), self._taken, self.running()
        self._script.decided = start
        has_more = False
        if is_said:
            has_more = follow_messages(listed[:1], self._script)
            calls = [event for event in self._script.take_back(start) if isinstance(event, Call)]
            for call in calls:
                self._script.add(call)
            listed = listed[1:]
        if follow_messages(listed, self._script) or has_more:
            disown(self._script.events, start)
        withhold_refusals(self._script.events, start)
        if running:
            disown_during(self._script.events, start, running)
        if self._doubts:
            doubt(self._script, self._taken, self.pack.schema)

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
