"""The files of tables that nightly runs add to: rows are left out, old days are removed, small files become one."""

import os
import shutil
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from bylaw.audit.batch.tables import GROUP, arrow, between, leave_out

FILES = 8
"""Files of one day that stay as they are. With more, the newest become one."""
_DAY = "day="


def keep_rows(source: Path, dropped: Any, *, target: Path) -> None:
    """Copy a Parquet file without the rows of these ordinals (a sorted Arrow array); no file if no row is left.

    A file without such rows is hard-linked.
    """
    with arrow("parquet").ParquetFile(source) as file:
        if not file.metadata.num_rows:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        first, last = _ordinals(file.metadata)
        gone = between(dropped, first, last + 1)
        if not len(gone):
            try:
                os.link(source, target)
            except OSError:
                shutil.copy2(source, target)
            return
        rows = 0
        with arrow("parquet").ParquetWriter(target, file.schema_arrow, compression="zstd") as out:
            for number in range(file.num_row_groups):
                table = leave_out(file.read_row_group(number), gone)
                rows += table.num_rows
                out.write_table(table)
    if not rows:
        target.unlink()


def is_before(folder: str, first: date) -> bool:
    """Whether the folder of a day is of an earlier day; conversations without times are of none."""
    try:
        return date.fromisoformat(folder.removeprefix(_DAY)) < first
    except ValueError:
        return False


def compact(folder: Path, *, name: str) -> None:
    """Make one file of the newest files of a day if there are many, as `name`.

    A file stays if it has more rows than all newer ones together: so a row is rewritten only a few times, however many
    nights come.
    """
    parquet = arrow("parquet")
    held = [(parquet.read_metadata(file), file) for file in folder.glob("*.parquet")]
    if len(held) <= FILES:
        return
    # Later runs have larger ordinals, and every file is in their order.
    held.sort(key=lambda each: _ordinals(each[0])[0])
    found: list[Path] = []
    rows, schema = 0, parquet.read_schema(held[-1][1])
    for metadata, file in reversed(held):
        # A version of Bylaw that wrote fewer columns keeps its files.
        if (len(found) > 1 and metadata.num_rows > rows) or not parquet.read_schema(file).equals(schema):
            break
        found.insert(0, file)
        rows += metadata.num_rows
    if len(found) < 2:
        return
    aside = folder / f".{name}"
    with parquet.ParquetWriter(aside, schema, compression="zstd") as out:
        _copy_all(found, out)
    for file in found:
        file.unlink()
    os.replace(aside, folder / f"{name}.parquet")


def _copy_all(files: Sequence[Path], out: Any) -> None:
    """Copy the rows of small files in row groups that are not small."""
    pa = arrow()
    waiting: list[Any] = []
    for file in files:
        with arrow("parquet").ParquetFile(file) as opened:
            for number in range(opened.num_row_groups):
                waiting.append(opened.read_row_group(number))
                if sum(table.num_rows for table in waiting) >= GROUP:
                    out.write_table(pa.concat_tables(waiting))
                    waiting.clear()
    if waiting:
        out.write_table(pa.concat_tables(waiting))


def _ordinals(metadata: Any) -> tuple[int, int]:
    """The first and the last ordinal in a file."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    columns = [group.column(place) for group in groups for place in range(group.num_columns)]
    told = [each.statistics for each in columns if each.path_in_schema == "ordinal"]
    return min((each.min for each in told), default=0), max((each.max for each in told), default=-1)
