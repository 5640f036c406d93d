"""The flagged conversations inside the page: bounded texts, compressed, as many as fit."""

import base64
import json
import zlib
from collections.abc import Container, Iterator
from typing import Any, cast

from bylaw.audit.store import JsonRecord, Store


def cut(data: Any, limit: int = 2000) -> Any:
    """Data with every text in it, names included, cut to `limit` characters."""
    if isinstance(data, str):
        return data if len(data) <= limit else data[: limit - 1] + "…"
    if isinstance(data, list):
        return [cut(item, limit) for item in cast(list[Any], data)]
    if isinstance(data, dict):
        return {cut(name, limit): cut(item, limit) for name, item in cast(JsonRecord, data).items()}
    return data


def whole_text(value: Any) -> str:
    """A value as text: strings as they are, None as an empty string, other values as JSON."""
    if isinstance(value, str):
        return value
    try:
        return "" if value is None else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(too deeply nested to show)"


def spelled(value: Any, limit: int = 300) -> str:
    """The same in at most `limit` characters."""
    return cut(whole_text(value), limit)


TEXT = 20_000
"""The most characters of one message or result; `bylaw explain` shows the rest."""
BRIEF = 400
"""The same for a very long conversation, at the steps that no finding refers to."""
CONVERSATION = 1_000_000
"""The most characters of one conversation."""
BLOCK = 400_000
"""Approximate characters per compressed block; opening a finding unpacks one block."""

SHOWN_KEYS = ("trajectory", "agent", "file", "position", "outcome")
RULES = 40
"""The most broken process rules that are marked in one conversation."""


def conversation_places(folder: Store, wanted: set[str]) -> dict[str, int]:
    """The offset of each wanted conversation."""
    places: dict[str, int] = {}
    for place, told in folder.places("conversations.jsonl"):
        if (name := cut(told["trajectory"])) in wanted:
            places.setdefault(name, place)
    return places


def broken_rules(folder: Store, wanted: Container[str]) -> dict[str, list[JsonRecord]]:
    """The rules that these conversations broke, each with its step; at most `RULES` per conversation."""
    broken: dict[str, list[JsonRecord]] = {}
    for _, found in folder.places("findings.jsonl"):
        name = cut(found["trajectory"])
        if name in wanted and len(kept := broken.setdefault(name, [])) < RULES:
            kept.append({"step": found["step"], "rule": found["rule"]})
    return broken


def bounded(conversation: JsonRecord, steps: set[int]) -> JsonRecord | None:
    """A conversation with every text cut to size, those at `steps` less; None if even that is too long."""
    for brief in (TEXT, BRIEF):
        events = [_event(event, TEXT if step in steps else brief) for step, event in enumerate(conversation["events"])]
        if sum(map(_size, events)) <= CONVERSATION:
            return cut({name: conversation[name] for name in SHOWN_KEYS}) | {"events": events}
    return None


def _size(event: JsonRecord) -> int:
    """About how many characters an event takes."""
    said = event.get("text") or "".join(str(pair) for pair in event.get("arguments", ()))
    return 60 + len(said if isinstance(said, str) else said[0])


def _event(event: JsonRecord, limit: int) -> JsonRecord:
    if event["type"] != "call":
        return event | {"text": _shortened(event["text"], limit)}
    # As pairs: a name such as `__proto__` must not be special to the page.
    arguments = [[cut(name, 300), _shortened(value, limit)] for name, value in event["arguments"].items()]
    return {"type": "call", "tool": cut(event["tool"], 300), "arguments": arguments[:100], "by": event["by"]}


def _shortened(value: Any, limit: int) -> str | list[Any]:
    """A text; if it is too long, its beginning and its full length."""
    whole = whole_text(value)
    return whole if len(whole) <= limit else [whole[:limit], len(whole)]


def blocks(items: Iterator[JsonRecord], *, size: int = BLOCK) -> Iterator[tuple[list[JsonRecord], str]]:
    """Consecutive items in groups of about `size` characters, each with its compressed form."""
    group: list[JsonRecord] = []
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
    """A list as compressed JSON in base64, which is safe in HTML."""
    return base64.b64encode(zlib.compress(f"[{','.join(items)}]".encode("ascii"), 6)).decode("ascii")
