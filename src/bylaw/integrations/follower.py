"""Follows a conversation through a framework's history, and decides the calls in each turn once.

Each message is reported to the session only once, even if the message later disappears from the framework's history.
`history` aligns the history with the reported messages.
"""

import threading
from collections.abc import Mapping, Sequence, Set
from typing import Any, Literal

from msgspec.structs import replace

from bylaw.errors import BylawError
from bylaw.integrations.history import (
    NOT_TEXT,
    Answered,
    Asked,
    Heard,
    Known,
    KnownMessages,
    Mark,
    Part,
    Turn,
    as_object,
    is_same,
    plain,
)
from bylaw.shield import Decision, LiveSession
from bylaw.shield.feedback import feedback
from bylaw.shield.grounds import Binding
from bylaw.shield.host import Host
from bylaw.text.visible import own_log
from bylaw.trace.event import Call, Message, Result

Arguments = Mapping[str, Any] | str
Answers = Literal["all", "heard", "none"]
"""Which of the user's answers to accept: all, none, or only answers to an agent message that was reported in this
process.
"""
log = own_log()
NAME_IT = "give each conversation a name, such as LangGraph's `thread_id`"
INNER = " / "
"""Separates the name of an inner agent from the id of its call."""


class Follower:
    """Follows one conversation in a framework. Several threads may use it."""

    def __init__(
        self, session: LiveSession, *, is_linked: bool = False, answers: Answers = "all", makes_calls: bool = True
    ) -> None:
        """Set `is_linked` if another principal spoke earlier in the same history.

        `answers` says which of the user's answers to accept, because a request without a conversation name may be a
        repeat or may come from an inner agent. Set `makes_calls` to False if the calls run outside this process.
        """
        self.session = session
        self._makes_calls = makes_calls
        self._answers = answers
        self._is_passing = is_linked
        """Whether another principal has spoken since the last message of this conversation."""
        self._known = KnownMessages()
        self._planned: dict[str, Decision] = {}
        """Decisions on calls in the last turn that have not started, by call id."""
        self._plans: set[tuple[str, str]] = set()
        """Messages from inner agents whose calls have been decided."""
        self._given: dict[str, str] = {}
        """Maps each call id to the session's name for the last call with that id."""
        self._names: set[str] = set()
        self._inner: set[str] = set()
        self._before: dict[str, str] = {}
        """Maps the new id of a repeated call to its previous id."""
        self._answered: set[str] = set()
        self._unannounced: set[str] = set()
        """Ids of calls that were decided before the message with the call arrived."""
        self._open: set[str] = set()
        """Names of allowed calls without a result."""
        self._past: set[str] = set()
        """Names of calls that have no result in the history."""
        self._running: dict[str, str] = {}
        """The tools that are running in this process, by call id."""
        self._foreign: dict[str, str] = {}
        """The inner agent that made a call, by call id. Used only if a history passed as the user's turns out to belong
        to an inner agent.
        """
        self._foreign_heard: set[str] = set()
        """The user messages in histories that turned out to belong to an inner agent."""
        self._events = 0
        """The number of session events that this process has processed."""
        self._lock = threading.RLock()
        self._recall()

    def _catch_up(self) -> None:
        self.session.catch_up()
        if self.session.length != self._events:
            self._recall()

    def _recall(self) -> None:
        """Treat all events from the log or from other workers as reported."""
        events = self.session.trajectory().events
        calls: dict[str, Call] = {}
        turns: dict[int, Known] = {}
        confirmed = -1
        """The last turn in which the user answered a card that the host had shown."""
        for step, event in enumerate(events):
            if isinstance(event, Result):
                made = events[event.call] if event.call is not None else None
                self._close(made.id if isinstance(made, Call) else "")
                continue
            if isinstance(event, Message) and event.confirmation is not None:
                confirmed = event.turn
            elif step < self._events:
                pass
            elif isinstance(event, Message) and event.handover is not None:
                self._is_passing = True
            elif isinstance(event, Message):
                self._recall_message(event, turns)
            elif event.by == "agent":
                self._recall_call(event, turns, calls, confirmed)
            if isinstance(event, Call):
                calls[event.id] = event
        said = [event for event in events[self._events :] if isinstance(event, Message) and event.confirmation is None]
        # Another worker has passed the conversation on to another principal.
        last = [event.by for event in said[-2:] if not event.captured]
        self._is_passing = self._is_passing or last == ["agent", "user"]
        self._events = len(events)

    def _recall_message(self, event: Message, turns: dict[int, Known]) -> None:
        if event.captured and event.by == "user":
            self._known.add(Mark("user", event.text))
        elif event.captured:
            known = self._of_turn(event.turn, turns)
            known.mark = replace(known.mark, text=event.text)

    def _recall_call(self, event: Call, turns: dict[int, Known], calls: Mapping[str, Call], confirmed: int) -> None:
        id = event.id.partition("#")[0]
        before, self._given[id] = self._given.get(id, ""), event.id
        self._names.add(event.id)
        if not event.refused:
            self._open.add(event.id)
        if event.agent:
            self._inner.add(id.rpartition(INNER)[2])
        if _goes_on(calls.get(before), event, confirmed):
            self._before[event.id] = before
            self._known.rename(id, before, event.id)
        elif not event.agent:
            # The calls of inner agents are not in the history.
            known = self._of_turn(event.turn, turns)
            known.names[id] = event.id
            known.mark = replace(known.mark, calls=tuple(known.names))

    def _close(self, name: str) -> None:
        self._answered.add(name)
        self._open.discard(name)
        self._past.discard(name)

    def _of_turn(self, turn: int, turns: dict[int, Known]) -> Known:
        if turn not in turns:
            turns[turn] = self._known.add(Mark("agent", ""))
        return turns[turn]

    def follow(self, parts: Sequence[Part]) -> None:
        """Process the history so far. If the calls in the last turn have no results, decide them. Calls in earlier
        turns have already run.
        """
        with self._lock:
            self.session.channel.reports_user = True
            try:
                self._catch_up()
                self._follow(parts)
            except Exception as error:
                # From here on, the history is incomplete, so calls that depend on it are not allowed.
                tell(error, "a conversation could not be processed")
                self.session.lacks = f"part of the conversation could not be read: {error}"
            finally:
                self._events = self.session.length

    def leave(self) -> None:
        """Record that another principal continues the history. The messages of that principal are not reported here."""
        with self._lock:
            if not self._is_passing and self._events:
                self.session.unheard()
                self.session.flush()
                self._events = len(self.session.trajectory().events)
            self._is_passing = True

    def hear(self, context: Mapping[str, Any] | None) -> None:
        """Continue with the principal of `context`. Messages of earlier principals are not reported again."""
        with self._lock:
            if self.session.vouch(context or {}):
                self._is_passing = True

    def lose(self) -> None:
        """Record that part of the conversation was removed. The user's earlier consent is no longer valid."""
        with self._lock:
            if self._events:
                self.session.unheard()
                self._events = self.session.length

    def is_inner(self, id: str) -> bool:
        with self._lock:
            return id in self._inner

    def _pass_over(self, parts: Sequence[Part]) -> None:
        """Skip everything except the user's current message. The rest belongs to another principal or is already in the
        log.
        """
        self._is_passing = False
        last = max((at for at, part in enumerate(parts) if isinstance(part, Heard)), default=len(parts))
        marks = [part.mark for part in parts[: last + 1] if isinstance(part, Heard | Turn)]
        if self._known and marks and self._known.place(marks)[0][-1] is not None:
            # The user has not spoken yet, so the last user message is an earlier one.
            last = len(parts)
        self._known = KnownMessages()
        for part in parts[:last]:
            if isinstance(part, Answered):
                self._answered.add(self._given.get(part.id, part.id))
            elif isinstance(part, Heard | Turn):
                self._known.add(part.mark, {call: self._given.get(call, call) for call in part.mark.calls})
        self.session.unheard()

    def _follow(self, parts: Sequence[Part]) -> None:
        if self._is_passing:
            self._pass_over(parts)
        marks = [part.mark for part in parts if isinstance(part, Heard | Turn)]
        found, told, gap = self._known.place(marks)
        if self._is_foreign(marks, told):
            self._follow_foreign(parts)
            return
        is_unsure = self._answers == "none" or (self._answers == "heard" and not self._events)
        last = max((at for at, mark in enumerate(marks) if mark.by == "agent"), default=-1)
        names: dict[str, str] = {}
        at = -1
        if gap == len(marks):
            self.session.unheard()
        for place, part in enumerate(parts):
            if isinstance(part, Answered):
                self._answer(part, names.get(part.id) or self._given.get(part.id))
            elif isinstance(part, Heard | Turn):
                at += 1
                if at == gap:
                    self.session.unheard()
                known = found[at]
                if known is None:
                    known = found[at] = Known(marks[at])
                    if at in told:
                        later = {each.id for each in parts[place + 1 :] if isinstance(each, Answered)}
                        is_open = at == last and later.isdisjoint(marks[at].calls)
                        known.names = self._tell(part, is_open=is_open)
                        if is_unsure and isinstance(part, Heard) and at > _first_turn(marks):
                            self._distrust()
                elif marks[at].key:
                    known.mark = marks[at]
                names |= known.names
        self._known.keep(marks, found, told, is_sure=gap is None)

    def _distrust(self) -> None:
        """Ignore the user's latest answer, because another run may have used it already."""
        log.warning("the user's answers in a conversation without a name do not count: %s", NAME_IT)
        self.session.channel.reports_user = False
        self.session.unheard()

    def begin(self, id: str, tool: str, *, agent: str = "") -> None:
        """Record that an allowed call is running in this process. The record ends with `finish`."""
        with self._lock:
            self._running[_inner(agent, id)] = tool

    def finish(self, id: str, *, agent: str = "") -> None:
        with self._lock:
            self._running.pop(_inner(agent, id), None)
            if not self._running:
                self._foreign, self._foreign_heard = {}, set()

    def _is_foreign(self, marks: Sequence[Mark], told: Set[int]) -> bool:
        """Whether a history with new user messages belongs to an inner agent that a running call started in another
        thread.
        """
        if not self._running or not any(marks[at].by == "user" for at in told):
            return False
        return not any(call in self._running for mark in marks for call in mark.calls)

    def _follow_foreign(self, parts: Sequence[Part]) -> None:
        """Follow a history that contains the calls of an inner agent.

        Its user messages may be the user's own, from another run. So the session records a user message with unknown
        wording.
        """
        heard = {part.words for part in parts if isinstance(part, Heard)}
        if not heard <= self._foreign_heard:
            self._foreign_heard |= heard
            self.session.user("", whole=False)
        id, tool = next(iter(self._running.items()))
        agent = f"{tool} ({id.rpartition(INNER)[2]})"
        turn = next((part for part in reversed(parts) if isinstance(part, Turn)), None)
        calls = turn.calls if turn is not None else ()
        self._foreign |= {call.id: agent for call in calls}
        if fresh := [call for call in calls if _inner(agent, call.id) not in self._given]:
            self.plan(fresh, agent)

    def plan(self, calls: Sequence[Asked], agent: str, key: str = "") -> None:
        """Decide the parallel calls in the message of an inner agent. `key` is the message's id.

        The user does not see the text of the message.
        """
        with self._lock:
            if key and (agent, key) in self._plans:
                return
            self._plans.add((agent, key))
            try:
                with self.session.turn():
                    for call in calls:
                        id = _inner(agent, call.id)
                        self._planned[id] = self._decide(Asked(id, call.tool, call.arguments), agent)
            except Exception as error:
                # These calls are decided one by one when they run.
                tell(error, f"the calls of `{agent}` could not be checked")
            self._events = self.session.length

    def plan_last(self, parts: Sequence[Part], id: str, agent: str) -> None:
        """Decide the calls in the last turn of a history if one of them has this id."""
        turn = next((part for part in reversed(parts) if isinstance(part, Turn) and part.calls), None)
        if turn is not None and any(call.id == id for call in turn.calls):
            self.plan(turn.calls, agent, turn.key or turn.calls[0].id)

    def decide(self, id: str, tool: str, arguments: Arguments, *, agent: str = "") -> Decision:
        """Decide a call before it runs. `agent` names an inner agent."""
        agent = agent or self._foreign.get(id, "")
        id = _inner(agent, id)
        with self._lock:
            try:
                decision = self._planned.pop(id, None) or self._resumed(id, tool, arguments)
                if decision is None or not is_same(decision, tool, arguments):
                    # The call is new, changed or repeated.
                    waiting = self._waiting(id, tool, arguments)
                    before = self._given.get(id, "")
                    self.session.resume_turn()
                    given = arguments if isinstance(arguments, str) else dict(arguments)
                    is_repeated = before in self._open and self._is_repeated(before, tool, arguments)
                    if is_repeated:
                        # Another worker may have made the call, or this worker may have done so before it stopped.
                        self._lose(before)
                    if waiting is None:
                        self._unannounced.add(id)
                    decision = self._decide(Asked(id, tool, given), agent)
                    if waiting is not None:
                        self._before[self._given[id]] = before
                    if waiting is not None or is_repeated:
                        self._known.rename(id, before, self._given[id])
                    self._events = self.session.length
            except Exception as error:
                self._given.pop(id, None)
                return undecided(self.session.shield, tool, arguments, error)
            return decision

    def result_of(self, id: str, tool: str, arguments: Arguments) -> Result | None:
        """Return the result of an earlier write with this id, because some frameworks repeat calls.

        After the user's next message, a call with the same id is a new call, because some models reuse ids.
        """
        with self._lock:
            declared = self.session.pack.schema.tools.get(tool)
            name = self._given.get(id)
            if not id or id in self._planned or name is None or (declared is not None and declared.effect == "read"):
                return None
            made = self._made_as(name) if name in self._answered and self._is_repeated(name, tool, arguments) else None
            if made is None or made[1].refused:
                return None
            later = self.session.since(made[0])
            if any(isinstance(each, Message) and each.by == "user" and each.confirmation is None for each in later):
                return None
            result = next(each for each in later if isinstance(each, Result) and each.call == made[0])
            return result if result.captured and not result.error else None

    def asked(self, id: str, tool: str, arguments: Arguments, *, agent: str = "") -> Decision | None:
        """Return the decision that asked a question about this call, if the question is still unanswered."""
        with self._lock:
            self._catch_up()
            return self._waiting(self._id(agent, id), tool, arguments)

    def asked_before(self, id: str) -> list[Decision]:
        """Return the decisions whose questions were answered before the framework repeated this call."""
        with self._lock:
            found, name = list[Decision](), self._given.get(id, "")
            while id not in self._planned and (name := self._before.get(name, "")):
                found[:0] = [each] if (each := self.session.asked(name)) is not None else []
            return found

    def _waiting(self, id: str, tool: str, arguments: Arguments) -> Decision | None:
        waiting = self.session.asked(self._given.get(id, "")) if id not in self._planned else None
        return waiting if waiting is not None and is_same(waiting, tool, arguments) else None

    def comes_back(self, id: str, tool: str, arguments: Arguments) -> bool:
        """Whether this call is waiting for an answer or continues after an answer, in this process or in another."""
        with self._lock:
            if self.asked(id, tool, arguments) is not None:
                return True
            decision = self._resumed(id, tool, arguments)
            if decision is not None:
                self._planned[id] = decision
            return decision is not None

    def pause(self, id: str, *, agent: str = "") -> None:
        """Pause a call until its question is answered. The repeated call is decided again."""
        with self._lock:
            self._planned.pop(self._id(agent, id), None)

    def planned(self, id: str, *, agent: str = "") -> Decision | None:
        """Return the decision on a call that has not started."""
        with self._lock:
            return self._planned.get(self._id(agent, id))

    def interrupted(self, id: str, decision: Decision, *, agent: str = "") -> None:
        """Record that an allowed call was interrupted.

        When the call is repeated, it continues, even in another worker.
        """
        id = self._id(agent, id)
        with self._lock:
            self._planned.pop(id, None)
            try:
                self.session.interrupt(self._given[id], decision)
            except Exception as error:
                # A repeated call is decided again, and its confirmation is no longer valid.
                tell(error, f"the interruption of `{decision.tool}` could not be logged")

    def _resumed(self, id: str, tool: str, arguments: Arguments) -> Decision | None:
        name, given = self._given.get(id), as_object(arguments)
        return self.session.resume(name, tool, given) if name is not None and given is not None else None

    def answered(
        self, id: str, content: Any, *, error: bool | None = None, captured: bool = True, agent: str = ""
    ) -> None:
        """Report a call's result as the agent sees the result."""
        id = self._id(agent, id)
        with self._lock:
            name = self._given.get(id)
            if name is None:
                return
            try:
                self._catch_up()
                if name in self._answered:
                    # Another worker may have repeated the call, so the call may have run.
                    return
                self._close(name)
                self.session.result(plain(content), id=name, error=error, captured=captured)
                if not captured:
                    # Other workers may continue the conversation without this worker.
                    self.session.flush()
            except Exception as fault:
                tell(fault, f"the result of {id} could not be logged")
                self.session.lacks = f"the result of a call could not be logged: {fault}"
            self._events = self.session.length

    def end(self) -> None:
        """End a run, and log the events since the last call.

        Calls that the framework holds back continue when the framework runs them.
        """
        with self._lock:
            for id, decision in list(self._planned.items()):
                if decision.allowed:
                    self.interrupted(id, decision)
            try:
                self.session.flush()
            except Exception as error:
                tell(error, "the end of a conversation could not be logged")

    def _decide(self, call: Asked, agent: str = "") -> Decision:
        name = self._named(call.id)
        decision = self.session.decide(call.tool, call.arguments, id=name, agent=agent)
        if decision.allowed:
            self._open.add(name)
        else:
            self._answered.add(name)
            self.session.result(decision.feedback, id=name, error=True)
        return decision

    def _id(self, agent: str, id: str) -> str:
        """Return the id under which this follower stores a call, which may come from an inner agent."""
        return _inner(agent or self._foreign.get(id, ""), id)

    def _lose(self, name: str) -> None:
        self._close(name)
        self.session.result("", id=name, captured=False)

    def _is_repeated(self, name: str, tool: str, arguments: Arguments) -> bool:
        made = self._made_as(name)
        return made is not None and (made[1].tool, made[1].arguments) == (tool, as_object(arguments))

    def _made_as(self, name: str) -> tuple[int, Call] | None:
        events = self.session.trajectory().events
        found = ((step, each) for step, each in enumerate(events) if isinstance(each, Call) and each.id == name)
        return next(found, None)

    def _named(self, id: str) -> str:
        name = id if id and id not in self._names else f"{id}#{len(self._names)}"
        self._names.add(name)
        self._given[id] = name
        if INNER in id:
            self._inner.add(id.rpartition(INNER)[2])
        return name

    def _tell(self, part: Heard | Turn, *, is_open: bool) -> dict[str, str]:
        """Report a message to the session. Return the names of its calls."""
        match part:
            case Heard(text, whole=whole):
                # Another run was about to make these calls, so decide them again.
                self._planned = {id: decision for id, decision in self._planned.items() if INNER in id}
                for name in {*self.session.running, *self._past} if self._makes_calls else ():
                    if INNER not in name and name.partition("#")[0] not in self._running:
                        self._lose(name)
                self.session.user(part.words, whole=whole and part.words == text)
                return {}
            case Turn(text, ()):
                if text.strip():
                    self.session.agent(text)
            case Turn(text, calls) if all(call.id in self._unannounced for call in calls):
                if text:
                    self.session.agent(text)
            case Turn(text, calls) if is_open:
                with self.session.turn(text):
                    self._planned |= {call.id: self._decide(call) for call in calls}
            case Turn(text, calls):
                told = [{"id": self._named(call.id), "function": call.function} for call in calls]
                self.session.messages([{"role": "assistant", "content": text, "tool_calls": told}])
                self._past.update(self._given[call.id] for call in calls)
        if not part.whole or part.words == NOT_TEXT:
            # The user saw or heard content that the shield cannot read.
            self.session.unheard()
        self._unannounced.difference_update(call.id for call in part.calls)
        return {call.id: self._given[call.id] for call in part.calls}

    def _answer(self, part: Answered, name: str | None) -> None:
        if name in self._answered:
            return
        if name is not None and name in self._open:
            self._close(name)
            self.session.result(plain(part.content), id=name, error=part.error, captured=part.captured)
            return
        self._close(name or part.id)
        told = {"role": "tool", "tool_call_id": name or part.id, "content": plain(part.content)}
        told |= {} if part.error is None else {"is_error": part.error}
        self.session.messages([told if part.captured else {**told, "captured": False}])


def _goes_on(before: Call | None, call: Call, confirmed: int) -> bool:
    """Whether a refused call is repeated because its question has been answered."""
    if before is None or not before.refused or (before.tool, before.arguments) != (call.tool, call.arguments):
        return False
    return call.turn == before.turn or (before.card is not None and before.turn < confirmed == call.turn - 1)


def _first_turn(marks: Sequence[Mark]) -> int:
    return next((at for at, mark in enumerate(marks) if mark.by == "agent"), len(marks))


def _inner(agent: str, id: str) -> str:
    return f"{agent}{INNER}{id}" if agent else id


def tell(error: Exception, what: str) -> None:
    """Log an error: a user's error on one line, any other error with its traceback."""
    log.error("%s: %s", what, error, exc_info=None if isinstance(error, BylawError) else error)


def undecided(shield: Host, tool: str, arguments: Mapping[str, Any] | str, error: Exception) -> Decision:
    """Return the pack's decision for a call that could not be checked. If the pack allows the call, this is always
    logged.
    """
    tell(error, f"no decision on {tool}")
    binding = Binding(shield.pack, shield.postures, tool)
    ground = binding.ground("", "call", binding.on_error(), str(error) or "it could not be checked")
    answer, posture = ground.answer, ground.posture
    allowed = answer == "allow" or posture != "enforce"
    text = "" if posture == "shadow" else feedback(shield.pack, tool, answer, [ground], runs=allowed)
    given = {} if isinstance(arguments, str) else dict(arguments)
    return Decision("", tool, given, answer, allowed, posture, (ground,), feedback=text)
