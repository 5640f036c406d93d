"""The sets as Parquet, for those who have pyarrow."""

from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from bylaw.align.dataset import read_rows
from bylaw.errors import UsageError

NESTED = ("expected", "policies", "slots")
"""Columns whose shape differs from row to row: JSON text in Parquet."""


def write_parquet(out: Path) -> list[Path]:
    """A Parquet file beside every set of a folder."""
    try:
        table: Any = import_module("pyarrow").Table
        write: Any = import_module("pyarrow.parquet").write_table
    except ModuleNotFoundError:
        raise UsageError("Parquet needs pyarrow", hint="install `bylaw[parquet]`, or leave out --parquet") from None
    written: list[Path] = []
    for file in sorted(out.glob("*.jsonl")):
        rows = [
            {name: msgspec.json.encode(value).decode() if name in NESTED else value for name, value in row.items()}
            for row in read_rows(file)
        ]
        write(table.from_pylist(rows), file.with_suffix(".parquet"))
        written.append(file.with_suffix(".parquet"))
    return written
