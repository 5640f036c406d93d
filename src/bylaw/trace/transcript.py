"""Builds the events of a conversation one by one, and writes them as chat messages.

Reading the written messages gives the same events. Messages have OpenAI's fields, a `turn` and a `time`. Calls also
have fields for refusals, approvals and a shield's look-ups.
"""

from collections.abc import Iterable
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from bylaw.trace.event import MAY_BE_DONE, Call, Event, Message, Party, Result, Trajectory, tells_refusal
from bylaw.trace.recorded_value import read_arguments, read_content


def is_users(name: str | None, tool_call_id: Any = None) -> bool:
    """Whether a message with the role `user` really comes from the user.

    If it has a `name`, it may come from another person or agent. If it has a `tool_call_id`, it is a tool's result.
    """
    return not name and tool_call_id in (None, "")


class Transcript:
    """A conversation that is being read. Call `say`, `call` and `answer` in order."""

    __slots__ = (
        "_named", "_steps", "answered", "closed", "decided", "events", "instructions", "open", "returned",
        "tells_refusal", "time", "turn",
    )  # fmt: skip

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.instructions: list[str] = []
        self.decided = 0
        """The number of events that a shield has already decided. A later result cannot mark these calls as refused."""
        self.turn = -1
        self.time: float | None = None
        """The time of the events that are added next, if known."""
        self.open: dict[int, Call] = {}
        self._steps: dict[str, list[int]] = {}
        """The steps of calls, keyed by id. Some of these calls may have been answered or withdrawn."""
        self._named = 0
        """The number of events that are already in `_steps`."""
        self.answered: set[str] = set()
        self.closed: dict[str, int] = {}
        """The steps of closed calls, keyed by id. Late results of these calls are still accepted."""
        self.returned: set[str] = set()
        """Tools that have already returned a result."""
        self.tells_refusal = False
        """Whether the text of a result is enough to mark its call as refused."""

    def begin_turn(self) -> None:
        """Start a new turn. Events in one turn are treated as simultaneous."""
        self.turn += 1

    def instruct(self, text: str) -> None:
        """Add a system or developer prompt, unless the same prompt was added before."""
        if text and text not in self.instructions:
            self.instructions.append(text)

    def say(self, by: Party, text: str, agent: str = "") -> None:
        """Add a message to the current turn. An empty message is ignored."""
        if text:
            self.events.append(Message(by, text, self.turn, agent, self.time))

    def hear(self, text: str, agent: str = "", *, whole: bool = True, name: str = "") -> None:
        """Add a message with the role `user`.

        The user's text is unknown if the message is empty or has another person's `name`. It is also unknown if the
        message is not `whole`, because it includes a voice note, picture or file.
        """
        has_words = bool(text) and not text.isspace() and is_users(name)
        if has_words:
            self.events.append(Message("user", text, self.turn, agent, self.time))
        if not (has_words and whole):
            self.leave_out("user", agent)

    def leave_out(self, by: Party = "agent", agent: str = "") -> None:
        """Add a message whose text was not recorded."""
        self.events.append(Message(by, "", self.turn, agent, self.time, captured=False))

    def call(self, tool: str, arguments: Any, id: str = "", by: Party = "agent", agent: str = "") -> Call:
        """Add a tool call, with its arguments as recorded, to the current turn."""
        given, fault = (cast("dict[str, Any]", arguments), "") if type(arguments) is dict else read_arguments(arguments)
        call = Call(tool, given, id, by, self.turn, agent, fault, self.time)
        self._wait(call)
        return call

    def _wait(self, call: Call) -> None:
        self.open[len(self.events)] = call
        self.closed.pop(call.id, None)
        self.events.append(call)

    def answer(
        self,
        content: Any,
        id: str = "",
        tool: str = "",
        by: Party = "agent",
        agent: str = "",
        error: bool | None = None,
        captured: bool = True,
        refused: bool | None = None,
        *,
        is_decided: bool = False,
    ) -> None:
        """Add a tool result to its call. If the call `is_decided`, the result cannot mark it as refused."""
        waiting, step = self.open, None
        if id and len(waiting) == 1:
            ((step, call),) = waiting.items()
            if call.id != id or call.by != by:
                step = self._pair(id, tool, by)
        elif waiting or self.closed:
            step = self._pair(id, tool, by)
        if step is not None:
            call = waiting.pop(step, None) or self.events[step]
            assert isinstance(call, Call)
            self.returned.add(call.tool)
            tool, agent = tool or call.tool, agent or call.agent
            if id:
                self.answered.add(id)
            is_final = is_decided or step < self.decided
            if type(content) is str and not is_final and tells_refusal(content) and not call.refused:
                # Logs store a refusal as a result, and do not record that the call was not executed.
                self.events[step] = replace(call, refused=True, refused_by_result=True)
                self.tells_refusal = True
        if type(content) is not str:
            content = read_content(content)
        elif content.startswith(f"{MAY_BE_DONE} ("):
            # A shield wrote this text instead of the tool's result.
            captured = False
        self.events.append(Result(step, content, error, captured, tool, agent, self.time, refused))

    def mark(self, **told: Any) -> None:
        call = self.events[-1]
        if isinstance(call, Call):
            self.events[-1] = self.open[len(self.events) - 1] = replace(call, **told)

    def waits_for(self, id: str = "") -> bool:
        """Whether any call is waiting for its result. If `id` is given, consider only the call with this id."""
        if not id:
            return bool(self.open)
        return bool(self._waiting_as(id))

    def resume(self, events: Iterable[Event]) -> None:
        """Continue after these events. Calls among them that have no result are still waiting."""
        for event in events:
            if isinstance(event, Result):
                call = self.open.pop(event.call, None) if event.call is not None else None
                if call is not None:
                    self.returned.add(call.tool)
                    if call.id:
                        self.answered.add(call.id)
            else:
                self.turn = event.turn
            self.add(event)

    def withdraw(self, tool: str, arguments: dict[str, Any], id: str = "") -> bool:
        """Remove the agent's last unanswered call of this tool with these arguments, and the rest of its turn.

        Only the latest turn with unanswered calls is searched. If several calls match, the call with this id is
        removed. A call with a different id never matches. Return False if no call matches, or if a message or call
        followed the turn, because the call may then already have been executed.
        """
        waiting, start, turn = self.open, None, None
        for step, call in reversed(waiting.items()):
            # The last call belongs to the latest turn.
            turn = call.turn if turn is None else turn
            if call.turn != turn:
                break
            is_such = call.by == "agent" and call.tool == tool and call.arguments == arguments
            is_another = bool(id and call.id and call.id != id)
            if is_such and not is_another and (start is None or (id and call.id == id)):
                start = step
        if start is None or turn is None:
            return False
        after = (each for each in self.events[start:] if not isinstance(each, Result))
        if any(each.turn != turn or each.by == "user" for each in after):
            return False
        self.take_back(start)
        self.turn = turn
        return True

    def waiting_since(self, step: int) -> int:
        """Return the first step, not before `step`, from which all events are the agent's unanswered calls."""
        start = len(self.events)
        while start > step and start - 1 in self.open and self.open[start - 1].by == "agent":
            start -= 1
        return start

    def take_back(self, start: int) -> list[Event]:
        """Remove and return the events from `start` on, which are calls and the messages of their turn."""
        taken, waiting = self.events[start:], self.open
        del self.events[start:]
        self._named = min(self._named, start)
        while waiting and next(reversed(waiting)) >= start:
            waiting.popitem()
        return taken

    def add(self, event: Event) -> None:
        """Add an existing event to the current turn, or to a later turn."""
        if isinstance(event, Call):
            self._wait(event)
        else:
            self.events.append(event)

    def close(self, step: int) -> None:
        """Stop waiting for the result of the call at `step`.

        A late result is still accepted if it has the call's id.
        """
        call = self.open.pop(step, None)
        if call is not None and call.id:
            self.closed[call.id] = step

    def _waiting_as(self, id: str) -> list[int]:
        for step in range(self._named, len(self.events)):
            event = self.events[step]
            if type(event) is Call and event.id:
                self._steps.setdefault(event.id, []).append(step)
        self._named = len(self.events)
        steps, waiting = self._steps.get(id), self.open
        if steps is None:
            return []
        # Ignore answered calls, because some hosts reuse call ids in every turn.
        steps[:] = [step for step in steps if step in waiting and waiting[step].id == id]
        return steps

    def _pair(self, id: str, tool: str, by: Party) -> int | None:
        """Return the call that a result belongs to: the earliest unanswered call of the latest turn.

        The call is matched by id or, if the result has no id, by order and tool. A second result for an id belongs to
        no call. A result with an unknown id belongs to a call only if exactly one call has no id.
        """
        waiting = self.open
        if id:
            named = self._waiting_as(id)
            # A result that names another caller still belongs to the call with its id.
            same_id = [step for step in named if waiting[step].by == by] or named
            if same_id:
                return self._first_of_latest_turn(same_id)
            if (step := self.closed.pop(id, None)) is not None:
                return step
            if id in self.answered:
                return None
        fitting = [step for step, call in waiting.items() if call.by == by and (not tool or call.tool == tool)]
        if id:
            unnamed = [step for step in fitting if not waiting[step].id]
            return unnamed[0] if len(unnamed) == 1 else None
        return self._first_of_latest_turn(fitting) if fitting else None

    def _first_of_latest_turn(self, steps: list[int]) -> int:
        latest = self.open[steps[-1]].turn
        return next(step for step in steps if self.open[step].turn == latest)


_encode = msgspec.json.Encoder(enc_hook=str, decimal_format="string").encode


def chat_line(trajectory: Trajectory) -> bytes:
    return _encode(chat_record(trajectory)) + b"\n"


def chat_record(trajectory: Trajectory) -> dict[str, Any]:
    """Return the conversation as one record. Missing and repeated call ids are replaced with unique ids."""
    record: dict[str, Any] = {"id": trajectory.id}
    if trajectory.agent:
        record["agent"] = trajectory.agent
    if trajectory.context:
        record["context"] = trajectory.context
    return record | {"messages": _messages(trajectory)}


def _messages(trajectory: Trajectory) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    names: dict[int, str] = {}
    used: set[str] = set()
    answered = ""
    """The id of an answered call. If a result has no call, it becomes a second result of this call."""
    for step, event in enumerate(trajectory.events):
        if isinstance(event, Result):
            name = names.get(event.call) if event.call is not None else None
            messages.append(_result(event, answered if name is None else name))
            answered = name or answered
            continue
        role = "user" if event.by == "user" else "assistant"
        about: dict[str, Any] = {"role": role, "turn": event.turn}
        about |= {"time": event.time} if event.time is not None else {}
        about |= {"agent": event.agent} if event.agent else {}
        if isinstance(event, Message):
            told = {"content": event.text} | ({} if event.captured else {"captured": False})
            told |= {"confirmation": event.confirmation} if event.confirmation is not None else {}
            told |= {"handover": event.handover} if event.handover is not None else {}
            messages.append(about | told)
            continue
        name = event.id if event.id and event.id not in used else f"{event.id or 'call'}-{step}"
        names[step] = name
        used.add(name)
        last = messages[-1] if messages else {}
        if all(last.get(key) == value for key, value in about.items()):
            last.setdefault("tool_calls", []).append(_call(event, name))
        else:
            messages.append(about | {"content": None, "tool_calls": [_call(event, name)]})
    return messages


def _call(call: Call, name: str) -> dict[str, Any]:
    # Write unusable arguments so that they are still unusable when read back.
    arguments = None if call.fault else _encode(call.arguments).decode()
    told = {"id": name, "type": "function", "function": {"name": call.tool, "arguments": arguments}}
    told |= {"refused": True} if call.refused else {}
    told |= {"approved": call.approved} if call.approved is not None else {}
    told |= {"card": call.card} if call.card is not None else {}
    told |= {"vouched": call.context} if call.context else {}
    return told | ({"looked_up": call.looked_up} if call.looked_up else {})


def _result(result: Result, name: str) -> dict[str, Any]:
    # Write the data as text, because a list of strings would be read as message parts.
    content = result.content if isinstance(result.content, str) else bytes(result.content).decode()
    message: dict[str, Any] = {"role": "tool", "tool_call_id": name, "name": result.tool, "content": content}
    if result.error is not None:
        message["is_error"] = result.error
    if not result.captured:
        message["captured"] = False
    if result.refused is not None:
        message["refused"] = result.refused
    if result.time is not None:
        message["time"] = result.time
    return message
