"""AgentDojo runs: assistants under prompt injection. The user is the one whose first message is the request."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from bylaw.errors import RecordError
from bylaw.trace.document import Record, decode, read_each, records, trajectory_of
from bylaw.trace.reader import Look
from bylaw.trace.readers.chat import ChatMessage, ToolCall, follow, name_and_arguments
from bylaw.trace.recorded_value import plain_text
from bylaw.trace.source import Source
from bylaw.trace.trajectory import TaskOutcome, Trajectory
from bylaw.trace.transcript import Transcript

FORMAT = "agentdojo"


class DojoMessage(ChatMessage, gc=False):
    """A chat message; a result has the call that it answers."""

    tool_call: ToolCall | None = None


class DojoRun(Struct, gc=False):
    """One task under one attack, or none."""

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
    follow(map(_as_chat, run.messages), transcript)
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
            # Without an attack `security` means nothing.
            "attack_succeeded": run.security if attacked else None,
            "error": run.error,
        },
    )


def _as_chat(message: DojoMessage) -> DojoMessage:
    """The message with the fields of a result that chat messages have."""
    if message.role == "tool":
        answered = message.tool_call or ToolCall()
        message.name = name_and_arguments(answered)[0]
        message.tool_call_id = message.tool_call_id or answered.id
        message.is_error = message.error is not None
        # For a failed call, the model sees the error in place of content.
        if message.error and not plain_text(message.content):
            message.content = message.error
    return message
