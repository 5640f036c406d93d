"""OpenAI chat: one conversation a line, or a document that lists them."""

from collections.abc import Iterator
from typing import Any, cast

from bylaw.errors import RecordError
from bylaw.trace.document import Layout, Malformed, Record, decode, elements, objects, records
from bylaw.trace.identity import agent_of_model
from bylaw.trace.readers.chat import CONVERSATION, MESSAGES, Conversation, follow, text_id
from bylaw.trace.source import Source
from bylaw.trace.tools import tool_definitions
from bylaw.trace.trajectory import TaskOutcome, Trajectory
from bylaw.trace.transcript import Transcript

FORMAT = "openai"


def read(source: Source, layout: Layout) -> Iterator[Trajectory | RecordError]:
    """The conversations of a file."""
    for record in source.wanted(records(source, layout)):
        if isinstance(record, RecordError):
            yield record
            continue
        try:
            yield conversation(source, record)
        except Malformed as error:
            yield record.fault(source, str(error))


def read_single(source: Source) -> Iterator[Trajectory | RecordError]:
    """A document that is one conversation: a list of messages, perhaps cut short."""
    data, why = source.document()
    messages = list(objects(source, elements(source, data, why)))
    whole = [message for message in messages if isinstance(message, Record)]
    text = b"[" + b",".join(bytes(message.raw) for message in whole) + b"]"
    try:
        yield conversation(source, Record(text, 0))
    except Malformed as error:
        yield source.fault(0, str(error))
    yield from (message for message in messages if isinstance(message, RecordError))


def conversation(source: Source, record: Record) -> Trajectory:
    """The conversation that a record holds: an object with `messages`, or a list of messages."""
    if memoryview(record.raw)[:1].tobytes() == b"[":
        talk = Conversation(decode(MESSAGES, record.raw))
    else:
        talk = decode(CONVERSATION, record.raw)
    transcript = Transcript()
    if talk.instructions:
        transcript.instruct(talk.instructions)
    follow(talk.messages, transcript)
    about = talk.metadata or {}
    ids = (text_id(id) for id in _ids(talk, about) if id is not None)
    id = next((id for id in ids if id), f"{source.name}#{record.index}")
    return Trajectory(
        id=id,
        events=transcript.events,
        agent=source.agent or talk.agent or _model(talk, about) or source.agent_by_name,
        outcome=outcome_of(talk),
        instructions="\n\n".join(transcript.instructions),
        file=source.name,
        position=record.position,
        format=FORMAT,
        details={**about, **talk.details} if talk.details else about,
        context=_context(talk.context),
        tools=tool_definitions(talk.tools or talk.functions),
    )


def _context(given: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}


def _ids(talk: Conversation, about: dict[str, Any]) -> Iterator[Any]:
    yield from (talk.id, talk.conversation_id, talk.session_id, talk.thread_id, talk.custom_id)
    yield from (about.get("conversation_id"), about.get("session_id"), about.get("thread_id"))


def _model(talk: Conversation, about: dict[str, Any]) -> str:
    agent = about.get("agent")
    if isinstance(agent, str):
        return agent
    return agent_of_model(talk.model) if talk.model else ""


def outcome_of(talk: Conversation) -> TaskOutcome | None:
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
