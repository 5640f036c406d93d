"""Transcripts of Claude Code, and what it streams as JSON: a message a line, the session's id on each."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from bylaw.errors import RecordError
from bylaw.trace.document import Layout, Malformed, decode, records
from bylaw.trace.readers.chat import ChatMessage, follow
from bylaw.trace.readers.spans import ODD, oddity
from bylaw.trace.source import Source
from bylaw.trace.trajectory import Trajectory
from bylaw.trace.transcript import Transcript

FORMAT = "claude-code"
_LINE = msgspec.json.Decoder(dict[str, Any])
_KINDS = {"user", "assistant", "system", "result", "summary", "stream_event"}


def read(source: Source, layout: Layout) -> Iterator[Trajectory | RecordError]:
    """The sessions of a file. All lines are held: a session may go on to the last."""
    sessions: dict[str, Transcript] = {}
    first: dict[str, int] = {}
    seen: set[str] = set()
    said: dict[str, str] = {}
    for record in records(source, layout):
        if isinstance(record, RecordError):
            yield record
            continue
        try:
            line = decode(_LINE, record.raw)
            session = str(line.get("sessionId") or line.get("session_id") or "")
            message = _message(line)
            if message is None:
                continue
            if (uuid := str(line.get("uuid") or "")) and uuid in seen:
                continue
            seen.add(uuid)
            transcript = sessions.setdefault(session, Transcript())
            first.setdefault(session, record.position)
            turn = str(cast(dict[str, Any], line["message"]).get("id") or "")
            # A turn is streamed block by block: lines of one message id are one turn.
            goes_on = message.role == "assistant" and turn != "" and said.get(session) == turn
            before = transcript.turn
            follow([message], transcript)
            if goes_on:
                _join(transcript, before)
            said[session] = turn if message.role == "assistant" else said.get(session, "")
        except ODD as error:
            yield record.fault(source, oddity(error))
    for session, transcript in sessions.items():
        yield Trajectory(
            id=session or f"{source.name}#{first[session]}",
            events=transcript.events,
            agent=source.agent or source.agent_by_name,
            instructions="\n\n".join(transcript.instructions),
            file=source.name,
            position=first[session],
            format=FORMAT,
        )


def _message(line: dict[str, Any]) -> ChatMessage | None:
    message = line.get("message")
    if not isinstance(message, dict):
        if line.get("type") not in _KINDS and "type" not in line:
            raise Malformed("no line of a transcript: another format in the same file?")
        return None
    body = cast(dict[str, Any], message)
    made = msgspec.convert({"role": body.get("role"), "content": body.get("content")}, ChatMessage)
    made.timestamp = line.get("timestamp") if isinstance(line.get("timestamp"), str) else None
    if line.get("isSidechain") or line.get("parent_tool_use_id"):
        made.agent = "sub-agent"
    return made


def _join(transcript: Transcript, turn: int) -> None:
    """Let what the last line added belong to the turn before."""
    for at in range(len(transcript.events) - 1, -1, -1):
        event = transcript.events[at]
        if getattr(event, "turn", turn) != transcript.turn:
            break
        transcript.events[at] = msgspec.structs.replace(event, turn=turn)
    transcript.turn = turn
