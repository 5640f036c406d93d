"""OpenAI chat: one conversation a line, or a document that lists them."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from bylaw.errors import RecordError
from bylaw.trace.document import Record
from bylaw.trace.format import Look
from bylaw.trace.identity import agent_of_model
from bylaw.trace.plain_chat import follow_plain
from bylaw.trace.readers.beginnings import named_by, without_beginnings
from bylaw.trace.readers.chat import follow
from bylaw.trace.readers.dialects import PLAIN_CONVERSATION, ChatConversation, PlainConversation, read_talk
from bylaw.trace.readers.record import conversations_in, is_list, read_each, trajectory_of
from bylaw.trace.source import Source
from bylaw.trace.tools import tool_definitions
from bylaw.trace.trajectory import TaskOutcome, Trajectory
from bylaw.trace.transcript import Transcript

FORMAT = "openai"


def read(source: Source, found: Look) -> Iterator[Trajectory | RecordError]:
    pieces = without_beginnings(conversations_in(source, found.layout, single=found.single))
    wanted = pieces if found.single else source.wanted(pieces)
    return read_each(source, wanted, lambda record: conversation(source, record))


def conversation(source: Source, record: Record) -> Trajectory:
    """The conversation that a record holds: an object with `messages`, or a list of messages."""
    talk = _talk(record)
    transcript = Transcript()
    if talk.instructions:
        transcript.instruct(talk.instructions)
    if isinstance(talk, PlainConversation):
        follow_plain(talk.messages, transcript)
    else:
        follow(talk.messages, transcript)
    about = talk.metadata or {}
    vouched: Any = talk.context
    return trajectory_of(
        source,
        record,
        transcript,
        FORMAT,
        id=named_by(talk, about),
        agent=talk.agent or _model(talk, about),
        outcome=outcome_of(talk),
        details={**about, **talk.details} if talk.details else about,
        context=cast("dict[str, Any]", vouched) if isinstance(vouched, dict) else {},
        tools=tool_definitions(talk.tools or talk.functions),
    )


def _talk(record: Record) -> ChatConversation | PlainConversation:
    if is_list(record):
        return read_talk(record.raw, listed=True)
    try:
        return PLAIN_CONVERSATION.decode(record.raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return read_talk(record.raw, listed=False)


def _model(talk: ChatConversation | PlainConversation, about: dict[str, Any]) -> str:
    agent = about.get("agent")
    if isinstance(agent, str):
        return agent
    return agent_of_model(talk.model) if talk.model else ""


def outcome_of(talk: ChatConversation | PlainConversation) -> TaskOutcome | None:
    """How the conversation ended, in the first of `outcome`, `success` and `reward` that says so."""
    match talk.outcome:
        case bool(good):
            return TaskOutcome(good, "outcome")
        case str(word) if word.lower() in {"success", "succeeded", "good", "pass", "passed"}:
            return TaskOutcome(True, "outcome")
        case str(word) if word.lower() in {"failure", "failed", "bad", "fail"}:
            return TaskOutcome(False, "outcome")
        case {"good": bool(good), **rest}:
            return TaskOutcome(good, str(rest.get("source", "outcome")))
        case {"success": bool(good)}:
            return TaskOutcome(good, "outcome.success")
        case _:
            pass
    if talk.success is not None:
        return TaskOutcome(talk.success, "success")
    if talk.reward is not None:
        return TaskOutcome(is_full_reward(talk.reward), "reward")
    return None


def is_full_reward(reward: float) -> bool:
    """Whether a reward of at most 1 was earned in full, up to rounding."""
    return reward >= 1 - 1e-6
