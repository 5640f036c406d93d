"""Chat messages that say only what most do, put into a transcript by one loop; `readers.chat` knows all others."""

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from bylaw.trace.document import Malformed
from bylaw.trace.event import REFUSALS, Call, Message, Party, Result
from bylaw.trace.recorded_value import decode_object, read_arguments
from bylaw.trace.told_once import told_once
from bylaw.trace.transcript import Transcript


class PlainFunction(Struct, forbid_unknown_fields=True, gc=False):
    """The callee of a tool call."""

    name: str
    arguments: str


class PlainCall(Struct, forbid_unknown_fields=True, gc=False):
    """A tool call."""

    id: str
    function: PlainFunction
    type: str = "function"


class PlainMessage(Struct, forbid_unknown_fields=True, gc=False):
    """A message whose every field is of the one kind that it mostly is."""

    role: Literal["user", "assistant", "tool", "system", "developer"]
    content: str | None = None
    tool_calls: list[PlainCall] | None = None
    tool_call_id: str | None = None
    name: str | None = None


def follow_plain(messages: Sequence[PlainMessage], transcript: Transcript) -> None:
    """What `readers.chat.follow` does with such messages: most of them are read here and now, without a call."""
    waiting, answered, returned, time = transcript.open, transcript.answered, transcript.returned, transcript.time
    events, turn = transcript.events, transcript.turn
    add = events.append
    ids = [call.id for message in messages if message.tool_calls for call in message.tool_calls]
    # A copy of a message calls under the same ids.
    for message in messages if len(set(ids)) == len(ids) else told_once(messages):
        role, content = message.role, message.content
        if role == "tool" or (role == "user" and message.tool_call_id):
            id = message.tool_call_id
            if id and content and len(waiting) == 1:
                step, call = waiting.popitem()
                if call.id == id and call.by == "agent" and not content.startswith(REFUSALS):
                    answered.add(id)
                    returned.add(call.tool)
                    add(Result(step, content, None, True, message.name or call.tool, call.agent, time))
                    continue
                waiting[step] = call
            is_told = content is not None
            transcript.answer(content, id or "", message.name or "", "agent", "", None, is_told)
            continue
        if role == "system" or role == "developer":
            transcript.instruct(content or "")
            continue
        transcript.turn = turn = turn + 1
        by: Party = "user" if role == "user" else "agent"
        if not content or content.isspace():
            if by == "user" and not message.tool_calls:
                transcript.hear("", name=message.name or "")
        elif by == "agent" or not message.name:
            add(Message(by, content, turn, "", time))
        else:
            transcript.hear(content, name=message.name)
        if message.tool_calls is None:
            continue
        for call in message.tool_calls:
            function = call.function
            name, arguments = function.name, function.arguments
            if not name:
                raise Malformed("a tool call has no name")
            try:
                given, fault = decode_object(arguments), ""
            except (msgspec.MsgspecError, RecursionError):
                given, fault = read_arguments(arguments)
            else:
                # Every key stands before a colon: with as many of them as keys, none is repeated.
                if arguments.count(":") != len(given):
                    given, fault = read_arguments(arguments)
            waiting[len(events)] = made = Call(name, given, call.id, by, turn, "", fault, time)
            add(made)
