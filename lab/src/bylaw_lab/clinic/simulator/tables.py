"""The clinic's tables from `schema.sql`, and values in three forms: stored, shown and known."""

import re
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

FOLDER = Path(__file__).resolve().parent.parent
NOW = datetime(2025, 3, 12, 9, 0)
"""The time of every call. The clinic's clock does not move."""
TODAY = NOW.date()

Key = tuple[str, ...]
Fact = tuple[str, Key, str]


class Column(NamedTuple):
    """A field with its type and, for an enumeration, its words."""

    type: str
    words: tuple[str, ...]


class Table(NamedTuple):
    key: tuple[str, ...]
    columns: dict[str, Column]


def schema() -> str:
    return (FOLDER / "schema.sql").read_text(encoding="utf-8")


@cache
def tables() -> dict[str, Table]:
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
    """Return a known value as SQLite stores it."""
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
    """Return a stored value as tools show it."""
    match kind:
        case "boolean":
            return bool(value)
        case "list":
            return msgspec.json.decode(value)
        case _:
            return value


def known(kind: str, value: Any) -> Any:
    """Return a shown value as policies compare it."""
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
