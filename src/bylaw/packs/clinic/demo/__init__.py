"""The recorded demo of the clinic: conversations, their database and two look-ups. `bylaw-lab record-demo` renews
it.
"""

import bz2
import gzip
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

FOLDER = Path(__file__).parent
POLICY = FOLDER.parent / "policy.md"
CHANGE = "cancel_appointment"


class Story(Struct, frozen=True):
    """A short conversation in two versions: with an honest caller and with a lying one."""

    honest: dict[str, Any]
    """An OpenAI chat record."""
    liar: dict[str, Any]
    look_ups: dict[str, Any]
    """The result of each look-up that the shield asks for, by `key_of` the call."""


@cache
def read_story() -> Story:
    """The recorded story."""
    return msgspec.json.decode((FOLDER / "story.json").read_bytes(), type=Story)


def build_world(path: Path) -> None:
    path.unlink(missing_ok=True)
    script = bz2.decompress((FOLDER / "clinic.sql.bz2").read_bytes()).decode()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


def write_logs(path: Path, *first: dict[str, Any]) -> None:
    """Write the given conversations and the 300 recorded ones to a gzip file."""
    lines = b"".join(msgspec.json.encode(record) + b"\n" for record in first)
    path.write_bytes(gzip.compress(lines + bz2.decompress((FOLDER / "logs.jsonl.bz2").read_bytes()), mtime=0))


def before_the_change(record: dict[str, Any]) -> tuple[list[dict[str, Any]], str, dict[str, Any]]:
    """Return a conversation's messages before its write, and that call."""
    messages: list[dict[str, Any]] = record["messages"]
    for place, message in enumerate(messages):
        for asked in message.get("tool_calls", ()):
            if asked["function"]["name"] == CHANGE:
                return messages[:place], CHANGE, msgspec.json.decode(asked["function"]["arguments"])
    raise AssertionError("the story has no change")


def key_of(tool: str, arguments: dict[str, Any]) -> str:
    """Return a call as one line, such as `get_x(id=1)`."""
    return f"{tool}({', '.join(f'{name}={value}' for name, value in arguments.items())})"


def call_messages(tool: str, arguments: dict[str, Any], answer: Any, id: str) -> list[dict[str, Any]]:
    """Return a call and its result as chat messages."""
    function = {"name": tool, "arguments": msgspec.json.encode(arguments).decode()}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": id, "content": msgspec.json.encode(answer).decode()},
    ]
