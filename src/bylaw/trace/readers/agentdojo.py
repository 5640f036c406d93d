"""AgentDojo runs: assistants under prompt injection. The user is the one whose first message is the request."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from bylaw.errors import RecordError
from bylaw.trace.document import Malformed, Record, decode, read_each, records, trajectory_of
from bylaw.trace.format import Look
from bylaw.trace.readers.chat import Id, text_id
from bylaw.trace.recorded_value import plain_text
from bylaw.trace.source import Source
from bylaw.trace.trajectory import TaskOutcome, Trajectory
from bylaw.trace.transcript import Transcript

FORMAT = "agentdojo"


class FunctionCall(Struct, gc=False):
    function: str
    args: Any = None
    id: Id = None


class DojoMessage(Struct, gc=False):
    role: str
    content: Any = None
    tool_calls: list[FunctionCall] | None = None
    tool_call: FunctionCall | None = None
    tool_call_id: Id = None
    error: str | None = None


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
    _follow(run.messages, transcript)
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


def _follow(messages: list[DojoMessage], transcript: Transcript) -> None:
    for position, message in enumerate(messages):
        match message.role:
            case "assistant":
                transcript.begin_turn()
                transcript.say("agent", plain_text(message.content))
                for call in message.tool_calls or ():
                    transcript.call(call.function, call.args, text_id(call.id))
            case "tool":
                answered = message.tool_call
                id = message.tool_call_id or (answered.id if answered else None)
                # A failed call shows the model the error in place of a content.
                content = message.content
                if message.error and not (content if isinstance(content, str) else plain_text(content)):
                    content = message.error
                transcript.answer(
                    content, text_id(id), answered.function if answered else "", error=message.error is not None
                )
            case "user":
                transcript.begin_turn()
                transcript.say("user", plain_text(message.content))
            case "system":
                transcript.instruct(plain_text(message.content))
            case role:
                raise Malformed(f"message {position} has the unknown role `{role}`")
