"""Reads chat messages in OpenAI's format and its common variants."""

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any, cast

import msgspec
from msgspec import Struct

from bylaw.trace.document import Malformed
from bylaw.trace.event import Approved, Card, Confirmation, LookedUp, Message, Party
from bylaw.trace.readers.parts import (
    PartAnswer,
    answer_in,
    answers_in,
    call_in,
    check_parts,
    heard,
    is_action,
    is_all_words,
    is_own_data,
    words_in,
)
from bylaw.trace.recorded_value import plain_text, read_arguments, seconds
from bylaw.trace.recorded_value import text_id as text_id
from bylaw.trace.transcript import Transcript

Id = str | int | None


class Function(Struct, gc=False):
    name: str | None = None
    arguments: Any = None


class ToolCall(Struct, gc=False):
    """A tool call in OpenAI's format, which has a `function`, or in a flat format."""

    id: Id = None
    function: Function | str | None = None
    name: str | None = None
    arguments: Any = None
    args: Any = None
    custom: dict[str, Any] | None = None
    requestor: str | None = None
    refused: bool = False
    """Whether the call was refused before it was executed. `bylaw log export` writes this field and the next four."""
    approved: Any = None
    """The reviewer's approval. An approval in an unknown format is ignored."""
    looked_up: Any = None
    card: Any = None
    """The card that was shown to the user instead of executing the call."""
    vouched: Any = None
    """The new context from the host, valid from this call on."""


class ChatMessage(Struct, gc=False):
    """A message with any role. Unknown fields are skipped."""

    role: str | None = None
    content: Any = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: Id = None
    id: Any = None
    name: str | None = None
    error: Any = None
    is_error: bool | None = None
    requestor: str | None = None
    function_call: Function | None = None
    refusal: str | None = None
    audio: Any = None
    images: Any = None
    tool_messages: list["ChatMessage"] | None = None
    agent: str | None = None
    type: str | None = None
    call_id: Id = None
    arguments: Any = None
    output: Any = None
    input: Any = None
    action: Any = None
    """The action of a built-in tool in the Responses API. For a patch, `operation` contains the action."""
    operation: Any = None
    time: str | float | None = None
    timestamp: str | float | None = None
    created_at: Any = None
    captured: bool = True
    """Whether the text of the message, or the content of the result, was recorded."""
    refused: Any = None
    """For a failed result, whether the tool had no effect. `bylaw log export` writes this field and the next three."""
    turn: int | None = None
    """The number of the turn, if the order of messages does not show it."""
    confirmation: Any = None
    """The user's answer to a card."""
    handover: Any = None
    """The new context from the host after a change of principal."""

    @property
    def told_time(self) -> Any:
        """The recorded time in the log's own format, or None if no time was recorded."""
        told = self.time if self.time is not None else self.timestamp
        return told if told is not None else self.created_at


_WITHOUT_CALLS = frozenset(("system", "developer", "tool", "function"))


def follow(messages: Iterable[ChatMessage], transcript: Transcript, *, result_id: str = "tool_call_id") -> None:
    """Add messages to the transcript. `result_id` names the field of a result that contains the id of its call."""
    by_id = result_id == "id"
    batch = False
    # A tau2 run and its database use different clocks, so ignore the times of messages.
    timed = not by_id
    for position, message in enumerate(without_copies(messages)):
        role = message.role
        if timed and (told := message.told_time) is not None:
            transcript.time = seconds(told)
        if message.tool_calls and role in _WITHOUT_CALLS:
            raise Malformed(f"message {position} has tool calls, but its role is `{role}`")
        if message.type is not None and role != "tool" and (message.type in SILENT_ITEMS or is_action(message.type)):
            batch = _follow_item(transcript, message, batch, position)
        elif role == "tool" or (role == "user" and message.tool_call_id not in (None, "")):
            _answer(transcript, message, message.id if by_id else message.tool_call_id)
        elif role == "assistant" or role == "user":
            by: Party = "agent" if role == "assistant" else "user"
            transcript.turn = transcript.turn + 1 if message.turn is None else max(transcript.turn, message.turn)
            content, agent = message.content, message.agent or ""
            if content.__class__ is str:
                _say(transcript, message, by)
            elif content is not None:
                _follow_parts(transcript, message, by, position)
            elif by == "user" and not message.tool_calls:
                transcript.hear("", agent)
            if by == "agent" and (message.audio or message.images):
                transcript.leave_out("agent", agent)
            if message.refusal and by == "agent":
                transcript.say("agent", message.refusal, agent)
            for call in message.tool_calls or ():
                _call(transcript, call, by, agent)
            if message.function_call is not None and by == "agent":
                _call_legacy(transcript, message, message.function_call)
            # This is an item from the Responses API. The calls that follow it belong to its turn.
            batch = by == "agent" and message.type == "message"
        elif role in {"system", "developer"}:
            transcript.instruct(plain_text(message.content))
        elif role == "function":
            _answer(transcript, message, message.tool_call_id)
        elif role is None and message.type:
            batch = _follow_item(transcript, message, batch, position)
        elif role is None:
            raise Malformed(f"message {position} has no role")
        else:
            raise Malformed(f"message {position} has the unknown role `{role}`")


def _say(transcript: Transcript, message: ChatMessage, by: Party) -> None:
    """Add a message, which is text, the user's answer to a card, or a change of principal."""
    text, agent = cast("str", message.content), message.agent or ""
    turn, time = transcript.turn, transcript.time
    if by == "user" and (given := _as(message.confirmation, Confirmation)) is not None:
        transcript.events.append(Message("user", "", turn, agent, time, confirmation=given))
    elif by == "user" and message.confirmation is None and message.handover is not None:
        # Even if the new context is unreadable, the earlier messages did not come from the new principal.
        context: dict[str, Any] = _as(message.handover, dict[str, Any]) or {}
        transcript.events.append(Message("user", "", turn, agent, time, handover=context))
    elif by == "user" and (message.captured or message.confirmation is not None):
        if text.strip() or not message.tool_calls or message.confirmation is not None:
            transcript.hear(text, agent, name=message.name or "")
    elif text or not message.captured:
        transcript.events.append(Message(by, text, turn, agent, time, message.captured))


def _as(recorded: Any, type: Any) -> Any:
    """Convert a recorded value to a type. Return None if the value does not fit the type."""
    try:
        return None if recorded is None else msgspec.convert(recorded, type)
    except msgspec.ValidationError:
        return None


def _call(transcript: Transcript, call: "ToolCall", by: Party, agent: str) -> None:
    name, arguments = name_and_arguments(call)
    if not name:
        raise Malformed("a tool call has no name")
    # The caller is the author of the message, whatever `requestor` says.
    transcript.call(name, arguments, text_id(call.id), by, agent)
    if call.refused:
        transcript.mark(refused=True)
    if call.approved is not None or call.looked_up is not None or call.card is not None or call.vouched is not None:
        told = {
            "approved": _as(call.approved, Approved),
            "looked_up": _as(call.looked_up, tuple[LookedUp, ...]),
            "card": _as(call.card, Card),
            "context": _as(call.vouched, dict[str, Any]),
        }
        transcript.mark(**{field: value for field, value in told.items() if value is not None})


def _call_legacy(transcript: Transcript, message: ChatMessage, call: Function) -> None:
    if not call.name:
        if call.arguments:
            raise Malformed("a function call has no name")
        return
    if not _repeats(message.tool_calls, call.name, call.arguments, ""):
        transcript.call(call.name, call.arguments, "", "agent", message.agent or "")


def _answer(transcript: Transcript, message: ChatMessage, id: Any) -> None:
    if message.tool_messages is not None:
        for each in message.tool_messages:
            _answer(transcript, each, each.id if each.tool_call_id is None else each.tool_call_id)
        return
    content: Any = message.content
    agent = message.agent or ""
    # If the message does not name a call, its parts may be results. If it does, its parts are text from the tool.
    if content.__class__ is list and not id:
        for each in (answers := answers_in(content)):
            transcript.answer(each.content, each.id, each.tool, agent=agent, error=each.error)
        if answers:
            return
    error: Any = message.error if message.is_error is None else message.is_error
    complaint: Any = message.error
    if content in (None, "") and complaint.__class__ is dict:
        # A failed call may have an error but no content.
        content = complaint.get("message", content)
    transcript.answer(
        content,
        text_id(id),
        message.name or "",
        "user" if message.requestor == "user" else "agent",
        agent,
        None if error is None else bool(error),
        # Empty text is a result. Missing content means that it was not recorded.
        message.captured and (content is not None or error is not None),
        message.refused if isinstance(message.refused, bool) else None,
    )


def _follow_parts(transcript: Transcript, message: ChatMessage, by: Party, position: int) -> None:
    """Add content that consists of parts: text, calls, results, or calls with their results."""
    agent = message.agent or ""
    content: Any = message.content
    parts: list[Any] = content if content.__class__ is list else [content]
    spoken: list[Any] = []
    answers: list[PartAnswer] = []

    def speak() -> None:
        transcript.say(by, "\n".join(filter(None, map(words_in, spoken))), agent)
        if not is_all_words(spoken):
            transcript.leave_out(by, agent)
        spoken.clear()

    def answer() -> None:
        for each in answers:
            refused = each.refused or None
            transcript.answer(each.content, each.id, each.tool, agent=agent, error=each.error, refused=refused)
        if answers:
            # The agent saw this result before it wrote the next part.
            transcript.begin_turn()
            answers.clear()

    for part in parts:
        call, answered = call_in(part), answer_in(part)
        if call is not None:
            if not _repeats(message.tool_calls, *call):
                speak()
                transcript.call(*call, by, agent)
            if answered is not None:
                answers.append(answered)
        elif answered is not None:
            transcript.answer(answered.content, answered.id, answered.tool, agent=agent, error=answered.error)
        else:
            answer()
            if by == "agent":
                # An unreadable part of an agent's message is an error, because the part may be a call.
                check_parts([part], f"message {position}")
                if is_own_data(part):
                    transcript.leave_out("agent", agent)
            spoken.append(part)
    answer()
    if by == "user" and (spoken or not parts):
        words, whole = heard(spoken)
        transcript.hear(words, agent, whole=whole, name=message.name or "")
    else:
        speak()


def _repeats(calls: "Sequence[ToolCall] | None", name: str, arguments: Any, id: str) -> bool:
    """Whether one of `calls` is this call in another format.

    In a stream, one of the two formats may lack the arguments.
    """
    for call in calls or ():
        other, given = name_and_arguments(call)
        if other == name and (not id or id == text_id(call.id)):
            same = object_of(arguments)
            if same == object_of(given) or (id and not same):
                return True
    return False


def name_and_arguments(call: ToolCall) -> tuple[str | None, Any]:
    """Return the tool and the arguments of a call, which may have any format."""
    function = call.function
    if isinstance(function, Function):
        return function.name, function.arguments
    given = call.arguments if call.args is None else call.args
    if function is not None:
        return function, given
    if call.custom is not None:
        return str(call.custom.get("name", "")), {"input": call.custom.get("input")}
    return call.name, given


def object_of(arguments: Any) -> dict[str, Any]:
    """Return arguments as an object. If they are not an object, return an empty object."""
    return cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else read_arguments(arguments)[0]


SILENT_ITEMS = frozenset(
    (
        *("reasoning", "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"),
        *("mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "item_reference", "compaction"),
        *("tool_search_call", "tool_search_output", "compaction_summary", "compaction_trigger"),
        *("additional_tools",),
    )
)
"""Items that contain no text and no call to check, such as thoughts and calls that the provider executes."""
_ITEM = (
    "type",
    "id",
    "call_id",
    "tool_call_id",
    "name",
    "arguments",
    "input",
    "action",
    "operation",
    "output",
    "content",
    "error",
)


def _follow_item(transcript: Transcript, item: ChatMessage, batch: bool, position: int) -> bool:
    """Add an item from the Responses API. Consecutive calls belong to one turn."""
    part = {name: value for name in _ITEM if (value := getattr(item, name)) is not None}
    agent, call, answer = item.agent or "", call_in(part), answer_in(part)
    if call is not None:
        if not batch:
            transcript.begin_turn()
        transcript.call(*call, "agent", agent)
    if answer is not None:
        transcript.answer(answer.content, answer.id, answer.tool, agent=agent, error=answer.error)
    if call is not None or answer is not None:
        return call is not None
    if item.type not in SILENT_ITEMS:
        raise Malformed(f"message {position} is an item of the unknown type `{item.type}`")
    if not is_all_words(part):
        transcript.leave_out("agent", agent)
    return batch


_COUNT = re.compile(r"[^0-9]*[0-9]{1,4}")
"""Matches a simple id that a host may use again in each turn, such as `1` or `call_0`."""


def without_copies(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Remove copies of messages with calls, and copies of their results.

    A log with at-least-once delivery may contain copies. Two equal messages are copies if only results are between
    them and these results do not differ. Messages without a time must also have unique ids.
    """
    listed = list(messages)
    copies: set[int] = set()
    first: int | None = None
    """The message that the agent's next message may be a copy of."""
    for place, message in enumerate(listed):
        if message.role != "assistant" and (message.role is not None or _is_answer(message)):
            continue
        if place in copies:
            continue
        if first is not None and _is_same(listed[first], message):
            before = [listed[at] for at in range(first + 1, place) if at not in copies]
            after = list(takewhile(_is_answer, listed[place + 1 :]))
            if all(map(_is_answer, before)) and (not before or all(each in before for each in after)):
                copies.add(place)
                copies.update(range(place + 1, place + 1 + len(after)) if before else ())
                continue
        first = place
    return [message for place, message in enumerate(listed) if place not in copies] if copies else listed


def _is_same(first: ChatMessage, again: ChatMessage) -> bool:
    # `bylaw log export` writes each message only once, and always with its turn.
    if again.turn is not None or first != again:
        return False
    ids = _call_ids(again)
    is_timed = again.told_time is not None
    return bool(ids) and all(ids) and (is_timed or not any(map(_COUNT.fullmatch, ids)))


def _call_ids(message: ChatMessage) -> list[str]:
    if message.tool_calls:
        return [text_id(call.id) for call in message.tool_calls]
    if message.content.__class__ is list:
        return [call[2] for part in message.content if (call := call_in(part)) is not None]
    return [] if message.call_id is None else [text_id(message.call_id)]


def _is_answer(message: ChatMessage) -> bool:
    if message.role == "user" and message.content.__class__ is list:
        return bool(message.content) and len(answers_in(message.content)) == len(message.content)
    return message.role in ("tool", "function") or str(message.type).endswith("_output")
