"""Reads transcripts and JSON streams from Claude Code. Each line is a message with the id of its session."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from bylaw.errors import RecordError
from bylaw.trace.document import Malformed, Record, decode, take_each, trajectory_of
from bylaw.trace.event import Trajectory
from bylaw.trace.reader import Look
from bylaw.trace.readers.chat import ChatMessage, follow
from bylaw.trace.source import Source
from bylaw.trace.transcript import Transcript

FORMAT = "claude-code"
_LINE = msgspec.json.Decoder(dict[str, Any])
_KINDS = {"user", "assistant", "system", "result", "summary", "stream_event"}


def read(source: Source, found: Look) -> Iterator[Trajectory | RecordError]:
    """Yield the sessions of a file. All lines stay in memory, because even the last line may continue a session."""
    sessions: dict[str, Transcript] = {}
    first: dict[str, Record] = {}
    seen: set[str] = set()
    said: dict[str, str] = {}

    def take(record: Record) -> None:
        line = decode(_LINE, record.raw)
        session = str(line.get("sessionId") or line.get("session_id") or "")
        message = _message(line)
        if message is None:
            return
        if (uuid := str(line.get("uuid") or "")) and uuid in seen:
            return
        seen.add(uuid)
        transcript = sessions.setdefault(session, Transcript())
        first.setdefault(session, record)
        turn = str(cast(dict[str, Any], line["message"]).get("id") or "")
        # A turn is streamed block by block. Lines with one message id belong to one turn.
        goes_on = message.role == "assistant" and turn != "" and said.get(session) == turn
        message.turn = transcript.turn if goes_on else None
        follow([message], transcript)
        said[session] = turn if message.role == "assistant" else said.get(session, "")

    yield from take_each(source, found.layout, take)
    for session, transcript in sessions.items():
        yield trajectory_of(source, first[session], transcript, FORMAT, id=session)


def _message(line: dict[str, Any]) -> ChatMessage | None:
    message = line.get("message")
    if not isinstance(message, dict):
        if line.get("type") not in _KINDS and "type" not in line:
            raise Malformed("not a line of a transcript; does the file mix formats?")
        return None
    body = cast(dict[str, Any], message)
    made = msgspec.convert({"role": body.get("role"), "content": body.get("content")}, ChatMessage)
    made.timestamp = line.get("timestamp") if isinstance(line.get("timestamp"), str) else None
    if line.get("isSidechain") or line.get("parent_tool_use_id"):
        made.agent = "sub-agent"
    return made
