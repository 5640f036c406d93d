"""A live conversation turn by turn: whose turn it is, which call a result answers, and which calls of the agent's were
made, refused, or wait for somebody to ask about them."""

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

from msgspec.structs import replace

from bylaw.engine.door import as_content, as_object, tool_name
from bylaw.engine.judgement import Judgement
from bylaw.engine.session import Session
from bylaw.engine.unbelieved import doubt, is_refused, withhold_refusals
from bylaw.errors import UsageError
from bylaw.pack import Pack
from bylaw.trace.event import Call, Card, Event, LookedUp, Message, Result
from bylaw.trace.transcript import Transcript

GIVEN_UP = "not known: the call was asked for again, and decided anew"
"""What stands as the result of a call that was given up."""


class Turns:
    """What is said, called and answered in one conversation, each as it happens; the session takes it in.

    A call is judged when it is made known with `call`, on what the agent had seen before its turn. It counts as made
    unless `refuse` says otherwise before anything else happens.
    """

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
    interrupted: Collection[str] | None = None
    """Ids of calls that were allowed and do not run now; None where no calls run, since the conversation is past."""

    def __init__(self, pack: Pack, session: Session, doubts: bool) -> None:
        self.pack = pack
        self.session = session
        self._doubts = doubts
        self._script = Transcript()
        self._vouched: dict[str, Any] = {}
        """What the host vouches for with the next call."""
        self._asked_for: list[Call] = []
        """Calls of the last message that was told, which somebody may be asked to decide on next."""

    def user(self, text: str, *, time: float | None = None, whole: bool = True) -> None:
        """The user said something; not `whole` where there was more to it than text, such as a voice note or a file."""
        self.make()
        self._begin("user", time)
        if self.running():
            # Another agent may speak as the user to the one that a call runs.
            self._script.leave_out("user")
        else:
            self._script.hear(text, whole=whole)
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
        withhold_refusals(self._script.events, len(self._script.events) - 1)
        if self._doubts:
            doubt(self._script, len(self._script.events) - 1, self.pack.schema)
        if not self._held and not is_late:
            self._speaker = "tool"
        self._take()

    def give_up(self, step: int) -> None:
        """A call that waits is asked for again: whether it was made meanwhile, nobody knows."""
        self._take()
        call = self._script.open.pop(step)
        self._script.events.append(Result(step, GIVEN_UP, captured=False, tool=call.tool, agent=call.agent))
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

    def running(self) -> dict[int, Call]:
        """By step, the agent's calls that were not refused, have no result, and were not interrupted."""
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
