"""Tables in the place of earlier ones: files that stay are linked, and at every moment one of the two is whole."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bylaw.audit.batch.schema import arrow
from bylaw.audit.output import TABLES

_NEXT, _BEFORE = ".tables-next", ".tables-before"


def commit(made: Path, out: Path) -> None:
    """Put tables and state in the place of earlier ones. Killed anywhere, `recover` finds one of them whole."""
    os.replace(made, out / _NEXT)
    if (out / TABLES).exists():
        os.replace(out / TABLES, out / _BEFORE)
    os.replace(out / _NEXT, out / TABLES)
    shutil.rmtree(out / _BEFORE, ignore_errors=True)


def recover(out: Path) -> None:
    """End what a run was killed in."""
    for left in (_NEXT, _BEFORE):
        if (out / left).exists() and not (out / TABLES).exists():
            os.replace(out / left, out / TABLES)
        shutil.rmtree(out / left, ignore_errors=True)


def link(source: Path, target: Path) -> None:
    """The same file in another place, without a copy where the file system can."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def kept_rows(source: Path, dropped: Any, *, target: Path) -> bool:
    """Have a Parquet file at `target` without the rows of some ordinals; whether any row is left.

    A file that has none of them is linked. `dropped` is a sorted Arrow array.
    """
    pq, pc = arrow("parquet"), arrow("compute")
    with pq.ParquetFile(source) as file:
        if not file.metadata.num_rows:
            return False
        inside = [_within(file, group, dropped) for group in range(file.num_row_groups)]
        if not any(map(len, inside)):
            link(source, target)
            return True
        target.parent.mkdir(parents=True, exist_ok=True)
        rows = 0
        with pq.ParquetWriter(target, file.schema_arrow, compression="zstd") as out:
            for group, gone in enumerate(inside):
                table = file.read_row_group(group)
                if len(gone):
                    table = table.filter(pc.invert(pc.is_in(table.column("ordinal"), value_set=gone)))
                rows += table.num_rows
                out.write_table(table)
    if not rows:
        target.unlink()
    return bool(rows)


def _within(file: Any, group: int, dropped: Any) -> Any:
    """Those of the ordinals that a row group may hold."""
    pc = arrow("compute")
    columns = file.metadata.row_group(group)
    places = (columns.column(place) for place in range(columns.num_columns))
    told = next(place.statistics for place in places if place.path_in_schema == "ordinal")
    if told is None or not told.has_min_max:
        return dropped
    return dropped.filter(pc.and_(pc.greater_equal(dropped, told.min), pc.less_equal(dropped, told.max)))


def parquet_files(folder: Path) -> Sequence[Path]:
    """The Parquet files below a folder, by name."""
    return sorted(folder.rglob("*.parquet"))
