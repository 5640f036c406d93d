"""The tables that an audit writes, and what their columns are; docs/reference/tables.md tells what they mean."""

import importlib
import sys
from typing import Any, Final

from bylaw.errors import UsageError

PARTITIONED = ("day",)
"""The folders of a table. Folders by agent, too, made thousands of files with few rows each."""
INTERNAL = {"_name": "text", "_number": "integer", "_line": "text"}
"""Columns of parts only: what a finding's id is made of, should its conversation be given another name; and the whole
line, if lines are written beside tables."""

_SHARED = {"conversation": "text", "ordinal": "long", "day": "day", "agent": "text", "step": "integer"}
_VERDICTS = {"strict": "word", "determined": "word"}
TABLES: Final[dict[str, dict[str, str]]] = {
    "conversations": {
        "conversation": "text",
        "ordinal": "long",
        "day": "day",
        "agent": "text",
        "file": "word",
        "position": "long",
        "pack": "word",
        "started": "time",
        "ended": "time",
        "outcome": "truth",
        "outcome_source": "word",
        "calls": "integer",
        "writes": "truth",
        "strict": "words",
        "determined": "words",
        "violated": "words",
        "violated_strict": "words",
        "rules": "words",
        "record": "text",
    },
    "calls": _SHARED
    | {"call_id": "text", "tool": "word", "executed": "truth"}
    | _VERDICTS
    | {"finding": "text", "because": "text", "policies": "policies", "record": "text", "policies_json": "word"}
    | {"open_rules": "integer"},
    "findings": {"finding": "text", "kind": "word", "name": "word"}
    | _SHARED
    | {"executed": "truth"}
    | _VERDICTS
    | {"severity": "word", "policies": "charges", "because": "text", "record": "text"},
    "open_questions": _SHARED
    | {"tool": "word", "executed": "truth", "kind": "word", "policy": "word", "rule": "word"}
    | {"fact": "text", "question": "text", "because": "text"},
    "missing_facts": _SHARED
    | {"tool": "word", "executed": "truth"}
    | _VERDICTS
    | {"policy": "word", "severity": "word", "policy_strict": "word", "policy_determined": "word"}
    | {"entity": "word", "key": "texts", "field": "word", "reason": "word", "lookup": "word", "lookup_args": "text"}
    | {"claim": "text", "claimed_at": "integer", "stale_by": "integer", "decisive": "truth"},
}
"""By table, its columns in order and the kind of each."""
NESTED: Final[dict[str, tuple[str, ...]]] = {
    "policies": ("policy", "severity", "strict", "determined"),
    "charges": ("policy", "severity", "strict", "determined", "because"),
}
"""What stands in each member of a list of policies."""


def arrow(part: str = "") -> Any:
    """pyarrow, or a part of it, or what to do without it."""
    name = f"pyarrow.{part}" if part else "pyarrow"
    try:
        # Asked for with every column: `import_module` alone takes longer than looking it up.
        return sys.modules.get(name) or importlib.import_module(name)
    except ModuleNotFoundError:
        raise UsageError("Parquet needs pyarrow", hint="install `bylaw[parquet]`") from None


def arrow_schema(table: str, *, internal: bool = False) -> Any:
    """A table's columns as Arrow types."""
    pa = arrow()
    columns = TABLES[table] | (internal_columns(table) if internal else {})
    return pa.schema([(name, arrow_type(kind)) for name, kind in columns.items()])


def internal_columns(table: str) -> dict[str, str]:
    """The columns that a table has in parts only."""
    return INTERNAL if "finding" in TABLES[table] else {}


def arrow_type(kind: str) -> Any:
    """The Arrow type of a kind of column; words, which are few and come often, are dictionary-coded.

    Inside lists they are strings to Arrow, and coded by Parquet alone: pyarrow cannot read a file whose row groups
    have other dictionaries inside of lists.
    """
    pa = arrow()
    match kind:
        case "text":
            return pa.string()
        case "word":
            return pa.dictionary(pa.int32(), pa.string())
        case "integer":
            return pa.int32()
        case "long":
            return pa.int64()
        case "truth":
            return pa.bool_()
        case "day":
            return pa.date32()
        case "time":
            return pa.timestamp("us", "UTC")
        case "texts" | "words":
            return pa.list_(pa.string())
        case _:
            return pa.list_(pa.struct([(name, pa.string()) for name in NESTED[kind]]))
