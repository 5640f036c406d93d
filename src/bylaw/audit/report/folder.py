"""An audit's output folder, read line by line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec

from bylaw.audit.finding import no_lines
from bylaw.errors import UsageError

JsonRecord = dict[str, Any]


class AuditFolder:
    """The files of one audit."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if (path / "tables").is_dir() and not (path / "calls.jsonl").is_file():
            raise no_lines(path)
        if not all((path / name).is_file() for name in ("summary.json", "calls.jsonl")):
            raise UsageError(
                f"`{path}` is not an audit's output folder",
                hint=f"make one with `bylaw audit LOGS --pack PACK --out {path}`",
            )

    def document(self, name: str) -> JsonRecord:
        """A whole JSON file as a record; empty where there is none."""
        file = self.path / name
        return read_record_line(file.read_bytes(), file) if file.is_file() else {}

    def places(self, name: str) -> Iterator[tuple[int, JsonRecord]]:
        """The records of a file of lines, each with its offset."""
        file = self.path / name
        if not file.is_file():
            return
        with file.open("rb") as lines:
            place = 0
            for line in lines:
                yield place, read_record_line(line, file)
                place += len(line)

    def at(self, name: str, places: Iterator[int]) -> Iterator[JsonRecord]:
        """The records that start at these offsets of a file, in the order asked for."""
        file = self.path / name
        if not file.is_file():
            return
        with file.open("rb") as lines:
            for place in places:
                lines.seek(place)
                yield read_record_line(lines.readline(), file)


def read_record_line(data: bytes, file: Path) -> JsonRecord:
    """A record that an audit wrote; lone surrogates and bytes that are not UTF-8 survive."""
    try:
        found: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            found = json.loads(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            raise UsageError(f"a line of it cannot be read: {error}", place=str(file), hint="audit again") from None
    if not isinstance(found, dict):
        raise UsageError("a line of it is not a record", place=str(file), hint="audit again")
    return cast(JsonRecord, found)


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
    """A value as text: a text itself, nothing for None, else its JSON."""
    if isinstance(value, str):
        return value
    try:
        return "" if value is None else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(too deeply nested to show)"


def spelled(value: Any, limit: int = 300) -> str:
    """The same in at most `limit` characters."""
    return cut(whole_text(value), limit)
