"""Files of lines made from tables, for who reads lines: the report, `findings`, `explain`."""

import heapq
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bylaw.audit.batch.schema import arrow
from bylaw.audit.line import named
from bylaw.audit.lines import BUFFER
from bylaw.audit.output import TABLES, has_tables

_ROWS = 512
"""Rows of a file held at a time; many files are open at once."""


@contextmanager
def lined(out: Path) -> Generator[Path]:
    """A folder with an audit's lines: its own where it has them, else one made from its tables, for as long."""
    if (out / "calls.jsonl").is_file() or not has_tables(out):
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="bylaw-lines-") as made:
        # By its own name, which pages tell.
        folder = Path(made) / (out.resolve().name or "out")
        folder.mkdir()
        for name in ("summary.json", "policies.json", "audited.json"):
            if (out / name).is_file():
                shutil.copyfile(out / name, folder / name)
        for table in ("calls", "findings", "conversations"):
            _write(out / TABLES / table, table, folder / f"{table}.jsonl")
        yield folder


def _write(source: Path, table: str, target: Path) -> None:
    files = sorted(source.rglob("*.parquet"))
    with target.open("wb", BUFFER) as out:
        # Every file is in the order of the logs by itself.
        for _, _, name, finding, record in heapq.merge(*(_rows(file, table, n) for n, file in enumerate(files))):
            out.write(named(record.encode(), name, finding or None))


def _rows(file: Path, table: str, number: int) -> Iterator[tuple[int, tuple[int, int], str, str, str]]:
    """Ordinal, which file and row (so that equal ones keep their order), and what the line is made of."""
    columns = ["ordinal", "conversation", "record", *(["finding"] if table != "conversations" else [])]
    at = 0
    with arrow("parquet").ParquetFile(file) as opened:
        for batch in opened.iter_batches(_ROWS, columns=columns):
            found: dict[str, list[Any]] = batch.to_pydict()
            findings = found.get("finding") or [None] * len(found["record"])
            for ordinal, name, record, finding in zip(
                found["ordinal"], found["conversation"], found["record"], findings, strict=True
            ):
                at += 1
                if record is not None:
                    yield ordinal, (number, at), name, finding or "", record
