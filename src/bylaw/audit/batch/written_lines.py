"""The files of lines, made from the parts of all shards: the same bytes as those of the small audit."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from bylaw.audit.batch.tables import PlacedPart, batches, placed
from bylaw.audit.line import named
from bylaw.audit.lines import BUFFER


def write_lines(parts: Sequence[PlacedPart], folder: Path) -> None:
    """Write `calls.jsonl`, `findings.jsonl` and `conversations.jsonl`."""
    for table in ("calls", "findings", "conversations"):
        with (folder / f"{table}.jsonl").open("wb", BUFFER) as out:
            for part in parts:
                for rows in batches(part.folder, table):
                    for name, finding, record in _told(table, rows, part):
                        if record is not None:
                            out.write(named(record.encode(), name, finding))


def _told(table: str, batch: object, part: PlacedPart) -> Iterable[tuple[str, str | None, str | None]]:
    rows = placed(table, batch, part)
    names = rows.column("conversation").to_pylist()
    findings = rows.column("finding").to_pylist() if table != "conversations" else [None] * len(names)
    return zip(names, findings, rows.column("record").to_pylist(), strict=True)
