"""Adds a record to a YAML file of records as a person would: at the end, with all comments where they were."""

import json
import os
import re
import secrets
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct

from bylaw.errors import BylawError, UsageError
from bylaw.policy.yaml import read_yaml_file

try:
    import fcntl
except ImportError:  # Windows has no such locks.
    fcntl = None

T = TypeVar("T")
_ITEM = re.compile(r"^([ ]*)- ", re.MULTILINE)
_NONE = re.compile(r":[ ]*\[\][ ]*\n\s*\Z")
"""A list that was emptied."""
_BARE = re.compile(r"[A-Za-z][\w .,;()/'’-]*[\w.)]|[A-Za-z]")
_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}


class Written(Struct, frozen=True):
    """What was written, where, and what came of it."""

    path: Path
    lines: str
    told: str = ""
    was_there: bool = False
    """Word for word, so that nothing was written."""


def read_records(path: Path, name: str, type: type[T]) -> list[T]:
    """The records under a name in a file; none where there is no file."""
    if not path.is_file():
        return []
    listed = cast("list[Any]", read_yaml_file(path, file=str(path)).data.get(name) or [])
    try:
        return msgspec.convert(listed, list[type], strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"not a list of {name}: {error}", place=str(path)) from None


def add_record(path: Path, record: Mapping[str, Any], *, head: str, count: Callable[[Path], int]) -> Written:
    """Add one, unless it stands there already.

    By `count` the file must then hold one more, or nothing is written. Two who add at once take turns, so neither
    loses what the other wrote.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with alone(path):
        before = path.read_text(encoding="utf-8") if path.is_file() else head
        if before and not before.endswith("\n"):
            before += "\n"
        before = _NONE.sub(":\n", before)
        found = _ITEM.search(before)
        indent = found[1] if found is not None else ("  " if before.rstrip().endswith(":") else "")
        lines = written(record, indent)
        if path.is_file() and f"\n{lines}" in before:
            # A button pressed twice: it stands there word for word.
            return Written(path, lines, was_there=True)
        put(path, before + lines, lambda rough: _check(rough, path, lines, count, by=1))
    return Written(path, lines)


def take_out(path: Path, line: int, *, count: Callable[[Path], int]) -> str:
    """Take out the record that begins at a line, and return its lines; comments above it stay."""
    with alone(path):
        every = path.read_text(encoding="utf-8").splitlines(keepends=True)
        start = line - 1
        found = _ITEM.match(every[start]) if start < len(every) else None
        if found is None:
            raise UsageError("no entry begins there any more", place=f"{path}:{line}", hint="load the page again")
        inside = f"{found[1]} "
        end = start + 1
        while end < len(every) and every[end].startswith(inside):
            end += 1
        left = "".join(every[:start] + every[end:])
        if not _ITEM.search(left):
            left = re.sub(r":[ ]*\n\s*\Z", ": []\n", left)
        lines = "".join(every[start:end])
        put(path, left, lambda rough: _check(rough, path, lines, count, by=-1))
    return lines


def put(path: Path, text: str, check: Callable[[Path], None] = lambda _: None) -> None:
    """Put a text in a file's place in one step, unless the check raises an error."""
    rough = path.with_name(f".{path.stem}-{secrets.token_hex(6)}{path.suffix}")
    try:
        with rough.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        check(rough)
        if path.exists():
            rough.chmod(path.stat().st_mode & 0o777)
        os.replace(rough, path)
    finally:
        rough.unlink(missing_ok=True)


def written(record: Mapping[str, Any], indent: str = "") -> str:
    """A record as an item of a list, one line for each of its parts."""
    parts = [f"{name}: {_value(value)}" for name, value in record.items() if value not in ("", None)]
    return "".join(f"{indent}{'- ' if number == 0 else '  '}{part}\n" for number, part in enumerate(parts))


def one_line(text: str) -> str:
    """What is written must not break out of its place in the file."""
    return " ".join(text.split())


def _value(value: Any) -> str:
    """A value in one line; JSON is YAML, and a plain word needs no quotes."""
    if isinstance(value, str) and _BARE.fullmatch(value) and value.lower() not in _WORDS and ": " not in value:
        return value
    return json.dumps(value, ensure_ascii=not isinstance(value, str) or not value.isprintable(), default=str)


def _check(rough: Path, path: Path, lines: str, count: Callable[[Path], int], *, by: int) -> None:
    """Whether the changed file can be read, and has one entry more than before, or one less."""
    before = count(path) if path.is_file() else 0
    try:
        why = "" if count(rough) == before + by else "the entry would not be part of the list"
    except BylawError as error:
        why = str(error).replace(str(rough), str(path))
    if why:
        hint = f"{'add' if by > 0 else 'take out'} it yourself: {lines.strip()}"
        raise UsageError(f"nothing was written: {why}", place=str(path), hint=hint)


@contextmanager
def alone(path: Path) -> Generator[None]:
    """One at a time adds to files of a folder; the lock goes with its process."""
    if fcntl is None:
        yield
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
