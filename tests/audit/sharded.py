"""Audits in shards for tests: an engine without processes, and what the tables hold."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bylaw.audit.batch.run import Outcome, audit_in_shards
from bylaw.audit.batch.shard import Job, Judge, Shard
from bylaw.audit.batch.tables import TABLES
from bylaw.audit.request import Request
from bylaw.audit.run import Report

LINES = ("calls.jsonl", "conversations.jsonl", "findings.jsonl", "summary.json", "policies.json")


class Killed(Exception):
    """Stands for the end of the driver."""


class Inline:
    """Judges in this process, the last shard first where asked; `ends_after` so many it is killed."""

    def __init__(self, *, backwards: bool = False, ends_after: int | None = None) -> None:
        self._backwards = backwards
        self._ends_after = ends_after
        self.judged: list[Shard] = []

    def run(self, job: Job, shards: Iterator[Shard]) -> Iterator[Outcome]:
        judge = Judge(job)
        for shard in reversed(list(shards)) if self._backwards else shards:
            if len(self.judged) == self._ends_after:
                raise Killed
            self.judged.append(shard)
            yield Outcome(shard, judge.judge(shard))


def sharded(files: Sequence[Path], pack: str, out: Path, *, size: int = 2000, **options: Any) -> Report:
    """An audit in shards, in this process, that writes lines and tables."""
    engine = options.pop("engine", None) or Inline()
    return audit_in_shards(Request(tuple(files), pack, **options), out, engine, formats=("jsonl", "parquet"), size=size)


def table(out: Path, name: str) -> Any:
    """A table as pandas or anybody else opens it, in the order of the logs."""
    dataset = pytest.importorskip("pyarrow.dataset")
    pa = pytest.importorskip("pyarrow")
    by = json.loads((out / "tables" / "schema.json").read_bytes())["partitioned_by"]
    kinds = {"day": pa.date32(), "agent": pa.string()}
    keys = dataset.partitioning(pa.schema([(each, kinds[each]) for each in by]), flavor="hive")
    found = dataset.dataset(out / "tables" / name, partitioning=keys).to_table()
    order = [("ordinal", "ascending"), *([("step", "ascending")] if "step" in found.column_names else [])]
    return found.sort_by(order).select(list(TABLES[name]))


def rows(out: Path, name: str) -> list[dict[str, Any]]:
    return table(out, name).to_pylist()


def written(out: Path) -> dict[str, Any]:
    """Everything that an audit wrote: lines to the byte, tables row by row in the order of the logs."""
    found: dict[str, Any] = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    return found | {name: rows(out, name) for name in TABLES}
