"""An audit's output folder, read line by line and forgivingly: what is missing or malformed is left out and counted."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec

from bylaw.errors import UsageError

Record = dict[str, Any]


class Folder:
    """The files of one audit. `unreadable` counts the lines that were not records."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unreadable = 0
        if not any((path / name).is_file() for name in ("summary.json", "calls.jsonl")):
            raise UsageError(
                f"`{path}` is not an audit's output folder",
                hint=f"make one with `bylaw audit LOGS --pack PACK --out {path}`",
            )

    def document(self, name: str) -> Record:
        """A whole JSON file as a record; empty where there is none."""
        file = self.path / name
        return record(decode(file.read_bytes())) if file.is_file() else {}

    def places(self, name: str) -> Iterator[tuple[int, bytes]]:
        """The lines of a file, each with its offset."""
        file = self.path / name
        if not file.is_file():
            return
        with file.open("rb") as lines:
            place = 0
            for line in lines:
                if not line.isspace():
                    yield place, line
                place += len(line)

    def at(self, name: str, places: Iterator[int]) -> Iterator[Record]:
        """The records that start at these offsets of a file, in the order asked for."""
        file = self.path / name
        if not file.is_file():
            return
        with file.open("rb") as lines:
            for place in places:
                lines.seek(place)
                yield record(decode(lines.readline()))


def decode(data: bytes) -> Any:
    """JSON as data, or None where it is none; lone surrogates and bytes that are not UTF-8 survive."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def record(value: Any) -> Record:
    """`value` if it is an object, else an empty one."""
    return cast(Record, value) if isinstance(value, dict) else {}


def entries(value: Any) -> list[Any]:
    """`value` if it is a list, else an empty one."""
    return cast(list[Any], value) if isinstance(value, list) else []


def text(value: Any, limit: int = 300) -> str:
    """`value` as a string of at most `limit` characters."""
    whole = spelled(value)
    return whole if len(whole) <= limit else whole[: limit - 1] + "…"


def spelled(value: Any) -> str:
    """`value` as a string: itself, nothing for None, else its JSON."""
    if isinstance(value, str):
        return value
    try:
        return "" if value is None else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(too deeply nested to show)"


def whole_number(value: Any) -> int | None:
    """`value` if it is a step or a count."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
