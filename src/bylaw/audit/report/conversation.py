"""The flagged conversations inside the page: bounded texts, compressed, as many as fit."""

import base64
import json
import zlib
from collections.abc import Container, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from bylaw.audit.report.folder import Folder, Record, decode, entries, record, spelled, text, whole_number

TEXT = 20_000
"""The most characters of one message or result; `bylaw explain` shows the rest."""
BRIEF = 400
"""The same for a conversation that is too long as a whole, at the steps that no finding speaks of."""
CONVERSATION = 1_000_000
"""The most characters of one conversation."""
BLOCK = 400_000
"""About how many characters are compressed together: what is unpacked when a finding is opened."""

RULES = 40
"""The most broken process rules that are marked in one conversation."""


class _Head(Struct):
    trajectory: str = ""


_heads = msgspec.json.Decoder(_Head)


def conversation_places(folder: Folder, wanted: set[str]) -> dict[str, int]:
    """Where each wanted conversation starts."""
    places: dict[str, int] = {}
    for place, line in folder.places("conversations.jsonl"):
        try:
            name = _heads.decode(line).trajectory
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            conversation = record(decode(line))
            folder.unreadable += not conversation
            name = text(conversation.get("trajectory"), 1000)
        if name in wanted:
            places.setdefault(name, place)
    return places


def broken_rules(folder: Folder, wanted: Container[str]) -> dict[str, list[Record]]:
    """The process rules that wanted conversations broke, each with its step; a few of each conversation."""
    broken: dict[str, list[Record]] = {}
    for _, line in folder.places("findings.jsonl"):
        found = record(decode(line))
        name = text(found.get("trajectory"), 1000)
        if name in wanted and len(kept := broken.setdefault(name, [])) < RULES:
            kept.append({"step": whole_number(found.get("step")), "rule": text(found.get("rule"))})
    return broken


def bounded(conversation: Record, steps: set[int]) -> Record | None:
    """A conversation with every text cut to size, or None where even that is too long; `steps` are told in full."""
    for brief in (TEXT, BRIEF):
        events = [
            _event(record(event), TEXT if step in steps else brief)
            for step, event in enumerate(entries(conversation.get("events")))
        ]
        if sum(map(_size, events)) <= CONVERSATION:
            return {
                "trajectory": text(conversation.get("trajectory"), 1000),
                "agent": text(conversation.get("agent")),
                "file": text(conversation.get("file")),
                "position": whole_number(conversation.get("position")),
                "outcome": _outcome(record(conversation.get("outcome"))),
                "events": events,
            }
    return None


def _size(event: Record) -> int:
    """About how many characters an event takes."""
    said = event.get("text") or "".join(str(pair) for pair in event.get("arguments", ()))
    return 60 + len(said if isinstance(said, str) else said[0])


def _outcome(outcome: Record) -> Record | None:
    return {"good": bool(outcome["good"]), "source": text(outcome.get("source"))} if "good" in outcome else None


def _event(event: Record, limit: int) -> Record:
    kind = event.get("type")
    if kind == "call":
        arguments = {text(k): _cut(v, limit) for k, v in list(record(event.get("arguments")).items())[:100]}
        # As pairs: a name like `__proto__` is then nothing special to the page.
        return {
            "type": "call",
            "tool": text(event.get("tool")),
            "arguments": list(arguments.items()),
            "by": text(event.get("by"), 40),
        }
    if kind == "result":
        error = event.get("error") is True
        return {
            "type": "result",
            "call": whole_number(event.get("call")),
            "text": _cut(event.get("text"), limit),
            "error": error,
        }
    return {"type": "message", "by": text(event.get("by"), 40), "text": _cut(event.get("text"), limit)}


def _cut(value: Any, limit: int) -> str | list[Any]:
    """A text, or where it was too long what is left of it and how long it was."""
    whole = spelled(value)
    return whole if len(whole) <= limit else [whole[:limit], len(whole)]


def blocks(items: Iterator[Record], *, size: int = BLOCK) -> Iterator[tuple[list[Record], str]]:
    """Consecutive items in groups of about `size` characters, each with itself as a compressed block."""
    group: list[Record] = []
    written: list[str] = []
    for item in items:
        group.append(item)
        written.append(json.dumps(item, separators=(",", ":")))
        if sum(map(len, written)) >= size:
            yield group, _packed(written)
            group, written = [], []
    if group:
        yield group, _packed(written)


def _packed(items: list[str]) -> str:
    """A list in compressed JSON, in letters that mean nothing to an HTML parser."""
    return base64.b64encode(zlib.compress(f"[{','.join(items)}]".encode("ascii"), 6)).decode("ascii")
