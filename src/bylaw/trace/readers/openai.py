"""OpenAI chat: one conversation a line, or a document that lists them."""

from collections import deque
from collections.abc import Iterator
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from bylaw.errors import RecordError
from bylaw.trace.document import Record, conversations_in, is_list, read_each, trajectory_of
from bylaw.trace.reader import Look
from bylaw.trace.readers.chat import Id, follow, text_id
from bylaw.trace.readers.dialects import ChatConversation, read_talk
from bylaw.trace.source import Source
from bylaw.trace.trajectory import TaskOutcome, Trajectory, agent_of_model, tool_definitions
from bylaw.trace.transcript import Transcript

MOST = 4096
"""Records kept back at most, to see if a later one continues them: the number of conversations that may overlap."""
MOST_BYTES = 32 << 20
_NAMES = ("id", "conversation_id", "session_id", "thread_id", "custom_id")


class _Head(Struct, gc=False):
    """The fields that show whether a record continues another; its messages are not decoded."""

    messages: list[Raw]
    id: Id = None
    conversation_id: Id = None
    session_id: Id = None
    thread_id: Id = None
    custom_id: Id = None
    metadata: dict[str, Any] | None = None
    agent: str | None = None
    context: Any = None


_head = msgspec.json.Decoder(_Head)


class _Kept(Struct):
    """A record that may be the beginning of a later one, and is then dropped."""

    piece: Record | RecordError | None
    size: int = 0
    id: str = ""
    head: _Head | None = None


def without_beginnings(pieces: Iterator[Record | RecordError]) -> Iterator[Record | RecordError]:
    """Yields the records in order, without those that a later record continues."""
    line: deque[_Kept] = deque()
    latest: dict[str, _Kept] = {}
    size = 0
    for piece in pieces:
        kept = _kept(piece)
        earlier = latest.get(kept.id)
        if earlier is not None and _goes_on(kept, earlier):
            size -= earlier.size
            earlier.piece, earlier.size, earlier.head = None, 0, None
        if kept.id:
            latest[kept.id] = kept
        line.append(kept)
        size += kept.size
        while len(line) > MOST or size > MOST_BYTES or line[0].piece is None or not latest:
            first = line.popleft()
            size -= first.size
            if latest.get(first.id) is first:
                del latest[first.id]
            if first.piece is not None:
                yield first.piece
            if not line:
                break
    yield from (kept.piece for kept in line if kept.piece is not None)


def named_by(told: Any, about: dict[str, Any]) -> str:
    """The id of a record's conversation; empty if there is none."""
    for name in _NAMES:
        if id := text_id(getattr(told, name)):
            return id
    return next((id for name in _NAMES[1:4] if (id := text_id(about.get(name)))), "")


def _kept(piece: Record | RecordError) -> _Kept:
    if isinstance(piece, RecordError):
        return _Kept(piece)
    try:
        head = _head.decode(piece.raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _Kept(piece, len(memoryview(piece.raw)))
    return _Kept(piece, len(memoryview(piece.raw)), named_by(head, head.metadata or {}), head)


def _goes_on(later: _Kept, earlier: _Kept) -> bool:
    """Whether `later` has the same messages and more, for the same agent and context."""
    long, short = later.head, earlier.head
    if long is None or short is None or len(long.messages) <= len(short.messages):
        return False
    if (long.agent, long.context) != (short.agent, short.context):
        return False
    return all(bytes(one) == bytes(other) for one, other in zip(short.messages, long.messages, strict=False))


FORMAT = "openai"


def read(source: Source, found: Look) -> Iterator[Trajectory | RecordError]:
    pieces = without_beginnings(conversations_in(source, found.layout, single=found.single))
    wanted = pieces if found.single else source.wanted(pieces)
    return read_each(source, wanted, lambda record: conversation(source, record))


def conversation(source: Source, record: Record) -> Trajectory:
    """The conversation in a record: an object with `messages`, or a list of messages."""
    talk = read_talk(record.raw, listed=is_list(record))
    transcript = Transcript()
    if talk.instructions:
        transcript.instruct(talk.instructions)
    transcript.time = talk.began
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


def _model(talk: ChatConversation, about: dict[str, Any]) -> str:
    agent = about.get("agent")
    if isinstance(agent, str):
        return agent
    return agent_of_model(talk.model) if talk.model else ""


def outcome_of(talk: ChatConversation) -> TaskOutcome | None:
    """The outcome, from the first of `outcome`, `success` and `reward` that is given."""
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
    """Whether a reward is the maximum of 1, up to rounding."""
    return reward >= 1 - 1e-6
