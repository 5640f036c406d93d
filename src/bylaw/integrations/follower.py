"""Follows a conversation as a framework keeps it: what is new in it is told to the session, each turn is decided once.

Frameworks hand over the whole history each time, and may trim it. What was told once is not told again; what is missing
later was still seen.
"""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from bylaw.integrations.undecided import tell, undecided
from bylaw.shield import Decision, Guarded
from bylaw.trace.event import Message, Result


class Asked(Struct, frozen=True):
    """A call that the agent asks for."""

    id: str
    tool: str
    arguments: dict[str, Any] | str


class Heard(Struct, frozen=True):
    """The user said something."""

    text: str


class Turn(Struct, frozen=True):
    """What the agent says and asks for at once."""

    text: str
    calls: tuple[Asked, ...] = ()


class Answered(Struct, frozen=True):
    """What a tool answered, or what the agent was told in its place."""

    id: str
    content: Any
    error: bool | None = None


Part = Heard | Turn | Answered


class Follower:
    """One conversation in a framework. Everything it does is safe to call from several threads."""

    def __init__(self, session: Guarded) -> None:
        self.session = session
        self._told: Counter[Any] = Counter()
        """How often each part was told to the session."""
        self._planned: dict[str, Decision] = {}
        """Decisions on the calls of the last turn that were not made yet, by their ids."""
        self._given: dict[str, str] = {}
        """The name under which the session knows the last call of an id: some models count anew in every turn."""
        self._names: set[str] = set()
        self._lock = threading.RLock()
        self._recall()

    def _recall(self) -> None:
        """What a log has brought back of the conversation was told already."""
        calls: dict[int, str] = {}
        turns: dict[int, tuple[str, list[str]]] = {}
        for step, event in enumerate(self.session.trajectory().events):
            if isinstance(event, Result):
                self._told["answer", calls.get(-1 if event.call is None else event.call, "")] += 1
            elif event.by == "user":
                self._told["user", event.text if isinstance(event, Message) else ""] += 1
            else:
                _, ids = turns.setdefault(event.turn, ("", []))
                if isinstance(event, Message):
                    turns[event.turn] = (event.text, ids)
                else:
                    self._names.add(event.id)
                    calls[step] = event.id.partition("#")[0]
                    self._given[calls[step]] = event.id
                    ids.append(calls[step])
        self._told.update(("agent", text, tuple(ids)) for text, ids in turns.values())

    def follow(self, parts: Sequence[Part]) -> None:
        """The history so far. A turn whose calls have no answers yet is decided; an older one happened."""
        with self._lock:
            try:
                self._follow(parts)
            except Exception as error:
                # From here on the history has a gap, so nothing that hangs on it is allowed.
                tell(error, "a conversation could not be followed")
                self.session.lacks = f"part of the conversation could not be read: {error}"

    def _follow(self, parts: Sequence[Part]) -> None:
        counted: Counter[Any] = Counter()
        answered = Counter(part.id for part in parts if isinstance(part, Answered))
        last = max((at for at, part in enumerate(parts) if isinstance(part, Turn)), default=-1)
        for at, part in enumerate(parts):
            name = _name(part)
            counted[name] += 1
            if counted[name] <= self._told[name]:
                continue
            self._told[name] += 1
            is_open = at == last and isinstance(part, Turn) and not any(answered[call.id] for call in part.calls)
            self._tell(part, is_open=is_open)

    def decide(self, id: str, tool: str, arguments: Mapping[str, Any] | str) -> Decision:
        """The decision on a call that is about to be made."""
        with self._lock:
            try:
                decision = self._planned.pop(id, None)
                if decision is None or not _is_same(decision, tool, arguments):
                    # A call nobody told of before, one that another hand has changed, or the same once more.
                    self.session.resume_turn()
                    given = arguments if isinstance(arguments, str) else dict(arguments)
                    decision = self._decide(Asked(id, tool, given))
            except Exception as error:
                self._given.pop(id, None)
                return undecided(self.session.shield, tool, arguments, error)
            return decision

    def answered(self, id: str, content: Any, *, error: bool | None = None, captured: bool = True) -> None:
        """What became of a call: what the agent is shown as its result."""
        with self._lock:
            name = self._given.get(id)
            if name is None:
                return
            self._told["answer", id] += 1
            try:
                self.session.result(_plain(content), id=name, error=error, captured=captured)
            except Exception as fault:
                tell(fault, f"the result of {id} could not be kept")
                self.session.lacks = f"the result of a call could not be kept: {fault}"

    def end(self) -> None:
        """The agent has done for now: what happened since its last call goes to the log."""
        with self._lock:
            try:
                self.session.flush()
            except Exception as error:
                tell(error, "the end of a conversation could not be kept")

    def _decide(self, call: Asked) -> Decision:
        name = self._named(call.id)
        decision = self.session.decide(call.tool, call.arguments, id=name)
        if not decision.allowed:
            self._told["answer", call.id] += 1
            self.session.result(decision.feedback, id=name, error=True)
        return decision

    def _named(self, id: str) -> str:
        name = id if id and id not in self._names else f"{id}#{len(self._names)}"
        self._names.add(name)
        self._given[id] = name
        return name

    def _tell(self, part: Part, *, is_open: bool) -> None:
        match part:
            case Heard(text):
                self.session.user(text)
            case Turn(text, ()):
                self.session.agent(text)
            case Turn(text, calls) if is_open:
                self._planned.clear()
                with self.session.turn(text):
                    self._planned |= {call.id: self._decide(call) for call in calls}
            case Turn(text, calls):
                told = [{"id": self._named(call.id), "function": _function(call)} for call in calls]
                self.session.messages([{"role": "assistant", "content": text, "tool_calls": told}])
            case Answered(id, content, error):
                told = {"role": "tool", "tool_call_id": self._given.get(id, id), "content": _plain(content)}
                self.session.messages([told if error is None else {**told, "is_error": error}])


def _name(part: Part) -> Any:
    match part:
        case Heard(text):
            return "user", text
        case Turn(text, calls):
            return "agent", text, tuple(call.id for call in calls)
        case Answered(id):
            return "answer", id


def _function(call: Asked) -> dict[str, str]:
    given = call.arguments
    return {"name": call.tool, "arguments": given if isinstance(given, str) else msgspec.json.encode(given).decode()}


def _is_same(decision: Decision, tool: str, arguments: Mapping[str, Any] | str) -> bool:
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments or "{}", type=dict[str, Any])
        except msgspec.DecodeError:
            return decision.tool == tool and not decision.allowed
    return decision.tool == tool and decision.arguments == dict(arguments)


def _plain(content: Any) -> Any:
    """A result as data: what frameworks return as objects of their own is taken as they print it for the model."""
    try:
        msgspec.json.encode(content)
    except (TypeError, ValueError, RecursionError):
        return str(content)
    return content
