"""The clinic's tables as `schema.sql` describes them, and values in their three forms: stored, shown and known."""

import re
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

FOLDER = Path(__file__).resolve().parent.parent
NOW = datetime(2025, 3, 12, 9, 0)
"""The clinic's clock stands still: every call is made at this time."""
TODAY = NOW.date()

Key = tuple[str, ...]
Fact = tuple[str, Key, str]
"""Entity, key, field."""


class Column(NamedTuple):
    """One field: its type, and its words where it is an enumeration."""

    type: str
    words: tuple[str, ...]


class Table(NamedTuple):
    """One entity."""

    key: tuple[str, ...]
    columns: dict[str, Column]


def schema() -> str:
    """The SQL that makes the tables."""
    return (FOLDER / "schema.sql").read_text(encoding="utf-8")


@cache
def tables() -> dict[str, Table]:
    """Every table of `schema.sql`, read from its own comments."""
    found: dict[str, Table] = {}
    for name, body in re.findall(r"CREATE TABLE (\w+) \((.*?)\) STRICT;", schema(), flags=re.S):
        columns: dict[str, Column] = {}
        key: tuple[str, ...] = ()
        for line in body.splitlines():
            if match := re.match(r"\s+PRIMARY KEY \((.*)\)", line):
                key = tuple(part.strip() for part in match[1].split(","))
            elif match := re.match(r"\s+(\w+) (?:TEXT|INTEGER) .*-- (\w+)(?:: (.*))?", line):
                words = tuple(word.strip() for word in match[3].split(",")) if match[2] == "enum" else ()
                columns[match[1]] = Column(match[2], words)
                if "PRIMARY KEY" in line:
                    key = (match[1],)
        found[name] = Table(key, columns)
    return found


def stored(kind: str, known: Any) -> Any:
    """A known value as SQLite keeps it."""
    match kind:
        case "boolean":
            return int(known)
        case "list":
            return msgspec.json.encode(known).decode()
        case "date" | "datetime":
            return known.isoformat()
        case "money":
            return f"{known:.2f}"
        case _:
            return known


def shown(kind: str, value: Any) -> Any:
    """A stored value as tools show it."""
    match kind:
        case "boolean":
            return bool(value)
        case "list":
            return msgspec.json.decode(value)
        case _:
            return value


def known(kind: str, value: Any) -> Any:
    """A shown value as policies compare it."""
    match kind:
        case "money":
            return Decimal(value)
        case "date":
            return date.fromisoformat(value)
        case "datetime":
            return datetime.fromisoformat(value)
        case "list":
            return tuple(value)
        case _:
            return value
