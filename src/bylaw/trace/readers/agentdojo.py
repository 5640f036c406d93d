"""Reads AgentDojo runs, which test assistants against prompt injection.

The first message is the user's request. A defence may add messages with the user's role, such as a repetition of the
request. A defence may also put symbols around every result and announce these symbols in the system prompt. The reader
removes the symbols from the results.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from bylaw.errors import RecordError
from bylaw.trace.document import Record, decode, read_each, records, trajectory_of
from bylaw.trace.event import TaskOutcome, Trajectory
from bylaw.trace.reader import Look
from bylaw.trace.readers.chat import ChatMessage, ToolCall, follow, name_and_arguments
from bylaw.trace.recorded_value import plain_text
from bylaw.trace.source import Source
from bylaw.trace.transcript import Transcript

FORMAT = "agentdojo"


class DojoMessage(ChatMessage, gc=False):
    """A chat message. The message of a result also contains the call."""

    tool_call: ToolCall | None = None


class DojoRun(Struct, gc=False):
    """One run of a task, with one attack or without an attack."""

    messages: list[DojoMessage]
    suite_name: str
    user_task_id: str
    pipeline_name: str | None = None
    injection_task_id: str | None = None
    attack_type: str | None = None
    injections: dict[str, Any] | None = None
    utility: bool | None = None
    security: bool | None = None
    error: str | None = None


_RUN = msgspec.json.Decoder(DojoRun)


def read(source: Source, found: Look) -> Iterator[Trajectory | RecordError]:
    return read_each(source, records(source, found.layout), lambda record: _run(source, record))


def _run(source: Source, record: Record) -> Trajectory:
    run = decode(_RUN, record.raw)
    transcript = Transcript()
    follow(_as_chats(run.messages), transcript)
    attacked = run.attack_type not in (None, "none")
    return trajectory_of(
        source,
        record,
        transcript,
        FORMAT,
        agent=run.pipeline_name or "",
        outcome=None if run.utility is None else TaskOutcome(run.utility, "utility"),
        details={
            "suite": run.suite_name,
            "user_task": run.user_task_id,
            "injection_task": run.injection_task_id,
            "attack": run.attack_type if attacked else None,
            "injections": run.injections or {},
            "utility": run.utility,
            # Without an attack, the value of `security` has no meaning.
            "attack_succeeded": run.security if attacked else None,
            "error": run.error,
        },
    )


def _as_chats(messages: Iterable[DojoMessage]) -> Iterator[DojoMessage]:
    """Yield the run's messages as chat messages. Messages that a defence added are left out."""
    marks: list[str] = []
    has_asked = False
    for message in messages:
        if message.role == "system":
            marks += _MARK.findall(plain_text(message.content))
        elif message.role == "tool":
            message = _answer(message, marks)
        elif message.role == "user":
            if has_asked:
                continue
            has_asked = True
        yield message


_MARK = re.compile(r"(?<![^\s`'\"])[^\w\s`'\".,;:!?-]{2,8}(?![^\s`'\".,;:!?])")
"""Matches a symbol that stands alone in a system prompt."""


def _answer(message: DojoMessage, marks: Iterable[str]) -> DojoMessage:
    answered = message.tool_call or ToolCall()
    message.name = name_and_arguments(answered)[0]
    message.tool_call_id = message.tool_call_id or answered.id
    message.is_error = message.error is not None
    text = plain_text(message.content)
    opening = next((mark for mark in marks if text.startswith(mark)), "")
    closing = next((mark for mark in marks if text.endswith(mark)), "")
    if opening and closing and len(text) >= len(opening) + len(closing):
        message.content = text = text.removeprefix(opening).removesuffix(closing)
    # If the call fails, the model sees the error instead of the content.
    if message.error and not text:
        message.content = message.error
    return message
