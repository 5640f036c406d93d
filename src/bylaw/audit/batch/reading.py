"""Tables read back: their findings, and the lines that they were made from."""

import heapq
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bylaw.audit.batch.schema import arrow
from bylaw.audit.finding import Charge, Finding
from bylaw.audit.line import FLAGGED, encode, named
from bylaw.audit.lines import BUFFER
from bylaw.audit.output import TABLES
from bylaw.pack import Criterion

_READ = ("finding", "kind", "name", "conversation", "agent", "step", "executed", "strict", "determined", "policies")
_CALL = ("call_id", "tool", "executed", "strict", "determined")
_ROWS = 512
"""Rows of a file held at a time; many files are open at once."""


def table_findings(out: Path, criterion: Criterion) -> Iterator[Finding]:
    """Every finding in the tables of an audit, by one criterion; not in the order of the logs."""
    for batch in _dataset(out, "findings").to_batches(columns=[*_READ, "because"], batch_size=4096):
        for row in batch.to_pylist():
            if row[criterion] not in FLAGGED:
                continue
            charges = tuple(
                Charge(each["policy"], each["severity"], each[criterion], each["because"])
                for each in row["policies"]
                if each[criterion] in FLAGGED
            )
            head = (row["finding"], row["kind"], row["name"], row["conversation"], row["agent"] or "", row["step"])
            yield Finding(*head, row[criterion], row["executed"], charges, row["because"] or "")


def _dataset(out: Path, table: str) -> Any:
    pa, ds = arrow(), arrow("dataset")
    by = json.loads((out / TABLES / "schema.json").read_bytes())["partitioned_by"]
    keys = pa.schema([(name, pa.string()) for name in by])
    return ds.dataset(out / TABLES / table, partitioning=ds.partitioning(keys, flavor="hive"))


def write_lines_of(out: Path, target: Path) -> None:
    """Write a file of lines from the table of its name, in the order of the logs."""
    files = sorted((out / TABLES / target.stem).rglob("*.parquet"))
    with target.open("wb", BUFFER) as lines:
        # Every file is in the order of the logs by itself.
        for _, _, name, finding, record in heapq.merge(*(_rows(file, target.stem, n) for n, file in enumerate(files))):
            lines.write(named(record, name, finding))


def _rows(file: Path, table: str, number: int) -> Iterator[tuple[int, tuple[int, int], str, str | None, bytes]]:
    """Ordinal, number of file and row (so that equal ordinals keep their order), and the parts of the line."""
    at = 0
    with arrow("parquet").ParquetFile(file) as opened:
        known = set(opened.schema_arrow.names)
        wanted = {"ordinal", "conversation", "record", "finding", "agent", "step", "policies_json", *_CALL} & known
        columns = sorted(wanted if table == "calls" else wanted & {"ordinal", "conversation", "record", "finding"})
        for batch in opened.iter_batches(_ROWS, columns=columns):
            for row in batch.to_pylist():
                at += 1
                if row["record"] is not None:
                    record = row["record"].encode()
                elif table == "calls":
                    record = _compliant_line(row)
                else:
                    continue
                yield row["ordinal"], (number, at), row["conversation"], row.get("finding"), record


def _compliant_line(row: dict[str, Any]) -> bytes:
    """The line of a compliant call, whose record the tables do not keep: no policy has anything to say of it."""
    nothing: dict[str, Any] = {"missing": [], "asks": [], "because": "", "reason": {"kind": "none", "words": ""}}
    policies: list[dict[str, Any]] = [
        {"id": id, "severity": severity, "strict": strict, "determined": determined, "evidence": "permit"}
        | {"world": "unknown", **nothing, "seen": []}
        for id, severity, strict, determined in json.loads(row["policies_json"])
    ]
    head = {name: row[name] for name in ("agent", "step", *_CALL)}
    return encode(head | {"policies": policies, "rules": [], "open_rules": []})
