"""OpenAI chat: one conversation a line, or a document that lists them."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from bylaw.errors import RecordError
from bylaw.trace.document import Record
from bylaw.trace.format import Look
from bylaw.trace.identity import agent_of_model
from bylaw.trace.plain_chat import follow_plain
from bylaw.trace.readers.chat import follow, text_id
from bylaw.trace.readers.dialects import PLAIN_CONVERSATION, ChatConversation, PlainConversation, read_talk
from bylaw.trace.readers.record import ODD, conversations_in, is_list, read_each, trajectory_of
from bylaw.trace.source import Source
from bylaw.trace.tools import tool_definitions
from bylaw.trace.trajectory import TaskOutcome, Trajectory
from bylaw.trace.transcript import Transcript

FORMAT = "openai"
_SAME = 16
"""So many bytes are compared before all are."""


def read(source: Source, found: Look) -> Iterator[Trajectory | RecordError]:
    pieces = _without_beginnings(conversations_in(source, found.layout, single=found.single))
    wanted = pieces if found.single else source.wanted(pieces)
    return read_each(source, wanted, lambda record: conversation(source, record))


def _without_beginnings(pieces: Iterator[Record | RecordError]) -> Iterator[Record | RecordError]:
    """The records without those that the very next one goes on from: in a log of requests each has all messages so far,
    and only the last of a conversation tells how it went on."""
    held: Record | RecordError | None = None
    for piece in pieces:
        if held is not None and not (
            isinstance(held, Record) and isinstance(piece, Record) and _goes_on_from(piece, held)
        ):
            yield held
        held = piece
    if held is not None:
        yield held


def _goes_on_from(later: Record, earlier: Record) -> bool:
    """Whether a record has the same id as one before it, the very same messages, and more of them."""
    long, short = memoryview(later.raw), memoryview(earlier.raw)
    if len(long) <= len(short) or long[:_SAME] != short[:_SAME]:
        return False
    end = bytes(short).rfind(b"]")
    if end < _SAME or long[:end] != short[:end] or not bytes(long[end : end + _SAME]).lstrip().startswith(b","):
        return False
    try:
        one, other = _talk(earlier), _talk(later)
    except ODD:
        return False
    id = _id(one, one.metadata or {})
    return bool(id) and id == _id(other, other.metadata or {})


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
        id=_id(talk, about),
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


def _id(talk: ChatConversation | PlainConversation, about: dict[str, Any]) -> str:
    """What names the conversation; empty where nothing does."""
    if talk.id is not None and (id := text_id(talk.id)):
        return id
    named = (talk.conversation_id, talk.session_id, talk.thread_id, talk.custom_id)
    noted = (about.get("conversation_id"), about.get("session_id"), about.get("thread_id"))
    return next((id for each in (*named, *noted) if (id := text_id(each))), "")


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
