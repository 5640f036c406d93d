"""Changes to a live conversation, as data: what was said, reported or asked.

A mutation that is not written yet is applied again if another worker has gone on with the conversation meanwhile.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from bylaw.engine import door
from bylaw.engine.conversation import Conversation
from bylaw.engine.judgement import Judgement
from bylaw.trace.event import Confirmation


class UserMessage(Struct, frozen=True):
    """The user said something; not `whole` if the message had more than text."""

    text: str
    time: float | None = None
    whole: bool = True


class AgentMessage(Struct, frozen=True):
    """The agent said something."""

    text: str
    time: float | None = None


class WholeMessages(Struct, frozen=True):
    """Whole messages, in any shape that logs have; the calls of the last one may be asked about next."""

    messages: Sequence[Any]
    time: float | None = None


class ToolResult(Struct, frozen=True):
    """What a tool answered; without `id`, to the only call that waits."""

    content: Any
    id: str = ""
    error: bool | None = None
    captured: bool = True
    time: float | None = None
    tool: str = ""
    refused: bool | None = None


class CardReply(Struct, frozen=True):
    """The user's answer to a card, given at `time`; `now` is the shield's clock."""

    confirmation: Confirmation
    time: float | None = None
    now: float | None = None


class NewContext(Struct, frozen=True):
    """What the host vouches for from now on."""

    context: Mapping[str, Any]


class UnheardMessages(Struct, frozen=True):
    """Agent and user may have spoken unreported."""


class TurnBegun(Struct, frozen=True):
    """What follows is one turn of the agent."""

    text: str = ""
    time: float | None = None


class TurnFinished(Struct, frozen=True):
    """The turn that was begun is over."""


class TurnResumed(Struct, frozen=True):
    """The next call is still of the agent's last turn."""


class CallsExecuted(Struct, frozen=True):
    """The calls of the last message that nobody asked about were made."""


Mutation = (
    UserMessage
    | AgentMessage
    | WholeMessages
    | ToolResult
    | CardReply
    | NewContext
    | UnheardMessages
    | TurnBegun
    | TurnFinished
    | TurnResumed
    | CallsExecuted
)
SPOKEN = (UserMessage, AgentMessage, WholeMessages)
"""Mutations that are said by or to whoever is vouched for."""


def apply(conversation: Conversation, mutation: Mutation) -> None:
    """Change a conversation."""
    match mutation:
        case UserMessage(text, time, whole):
            conversation.user(text, time=time, whole=whole)
        case AgentMessage(text, time):
            conversation.agent(text, time=time)
        case WholeMessages(messages, time):
            conversation.messages(messages, asks=True, time=time)
        case ToolResult(content, id, error, captured, time, tool, refused):
            if not id:
                door.one_waits(conversation.waiting(), tool)
            conversation.result(content, id=id, error=error, captured=captured, time=time, tool=tool, refused=refused)
        case CardReply(confirmation, time, now):
            conversation.confirm(confirmation, time=time, now=now)
        case NewContext(context):
            conversation.vouch(context)
        case UnheardMessages():
            conversation.unheard()
        case TurnBegun(text, time):
            conversation.begin_turn(text, time=time)
        case TurnFinished():
            conversation.finish_turn()
        case TurnResumed():
            conversation.resume_turn()
        case CallsExecuted():
            conversation.assume_executed()


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
    """The step of the same call, asked for before, which is decided anew."""


def judge(conversation: Conversation, call: AskedCall) -> Judgement:
    """What guards and rules say of a call that is asked for now."""
    if call.given_up is not None:
        conversation.give_up(call.given_up)
    if call.messages is not None:
        return conversation.asked(call.messages, call.tool, call.arguments, id=call.id, time=call.time)
    return conversation.call(call.tool, call.arguments, id=call.id, time=call.time, agent=call.agent)
