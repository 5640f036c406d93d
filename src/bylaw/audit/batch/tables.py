"""From the parts of all shards to the tables: in the order of the logs, under unique names, by day.

What comes out depends on the rows alone, and not on how they were shared out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from bylaw.audit.batch.part import part_file
from bylaw.audit.batch.schema import INTERNAL, PARTITIONED, TABLES, arrow, arrow_schema
from bylaw.audit.line import finding_id, named
from bylaw.audit.lines import BUFFER
from bylaw.audit.output import TABLES_SCHEMA
from bylaw.audit.run import dump
from bylaw.trace import Identities

ROWS = 1 << 14
"""Rows read at a time."""
GROUP = 1 << 16
"""Rows of a row group, at most."""
FILE = 1 << 22
"""Rows of a file, at most."""
OPEN = 200
"""Files open at a time."""


class PlacedPart(Struct, frozen=True):
    """A shard's part, where it stands among all."""

    folder: Path
    first: int
    """How many conversations come before."""
    renamed: dict[int, str]
    """Conversations, by their place in the part, that need another name: theirs was given before."""


def place_parts(folders: Sequence[Path], counts: Sequence[int], names: Identities) -> Iterator[PlacedPart]:
    """The parts in order, every conversation with a name of its own, as the small audit gives them."""
    first = 0
    for folder, count in zip(folders, counts, strict=True):
        renamed: dict[int, str] = {}
        at = 0
        for batch in batches(folder, "conversations", ["conversation"]):
            for own in batch.column(0).to_pylist():
                if (name := names.unique(own)) != own:
                    renamed[at] = name
                at += 1
        yield PlacedPart(folder, first, renamed)
        first += count


def write_table(
    table: str, parts: Sequence[PlacedPart], target: Path, *, name: str = "part", without: Any = None
) -> int:
    """Write one table; how many rows it has. A table without rows is one empty file, so that it can be opened.

    `name` begins the names of its files; rows whose ordinal is in the Arrow array `without` are left out.
    """
    schema = arrow_schema(table)
    rows = 0

    def every() -> Iterator[Any]:
        nonlocal rows
        for part in parts:
            for batch in batches(part.folder, table):
                found = placed(table, batch, part)
                if without is not None:
                    within = arrow("compute").is_in(found.column("ordinal"), value_set=without)
                    found = found.filter(arrow("compute").invert(within))
                rows += found.num_rows
                yield from found.cast(schema).to_batches()

    write_batches(every(), schema, target, name=name)
    if not rows and not any(target.rglob("*.parquet")):
        _write_empty(target, schema)
    return rows


def write_batches(rows: Iterator[Any], schema: Any, target: Path, *, name: str = "part") -> None:
    """Write the files of a table, its rows in the order in which they come."""
    pa, ds = arrow(), arrow("dataset")
    ds.write_dataset(
        pa.RecordBatchReader.from_batches(schema, rows),
        target,
        format=ds.ParquetFileFormat(),
        file_options=ds.ParquetFileFormat().make_write_options(compression="zstd"),
        partitioning=ds.partitioning(pa.schema([schema.field(name) for name in PARTITIONED]), flavor="hive"),
        basename_template=name + "-{i}.parquet",
        existing_data_behavior="overwrite_or_ignore",
        preserve_order=True,
        max_partitions=1 << 30,
        max_open_files=OPEN,
        max_rows_per_file=FILE,
        max_rows_per_group=GROUP,
    )


def _write_empty(target: Path, schema: Any) -> None:
    folder = target.joinpath(*(f"{name}=__HIVE_DEFAULT_PARTITION__" for name in PARTITIONED))
    folder.mkdir(parents=True, exist_ok=True)
    kept = arrow().schema([field for field in schema if field.name not in PARTITIONED])
    arrow("parquet").write_table(kept.empty_table(), folder / "part-0.parquet")


def write_lines(parts: Sequence[PlacedPart], folder: Path) -> None:
    """Write `calls.jsonl`, `findings.jsonl` and `conversations.jsonl`: the bytes that the small audit writes."""
    for table in ("calls", "findings", "conversations"):
        with (folder / f"{table}.jsonl").open("wb", BUFFER) as out:
            for part in parts:
                for rows in batches(part.folder, table):
                    for name, finding, line in _lines(table, rows, part):
                        if line is not None:
                            out.write(named(line.encode(), name, finding))


def _lines(table: str, batch: Any, part: PlacedPart) -> Iterable[tuple[str, str | None, str | None]]:
    rows = placed(table, batch, part)
    names = rows.column("conversation").to_pylist()
    findings = rows.column("finding").to_pylist() if table != "conversations" else [None] * len(names)
    whole = batch.column("_line") if table == "calls" else rows.column("record")
    return zip(names, findings, whole.to_pylist(), strict=True)


def batches(folder: Path, table: str, columns: Sequence[str] | None = None) -> Iterator[Any]:
    path = part_file(folder, table)
    if path.is_file():
        with arrow("parquet").ParquetFile(path) as file:
            yield from file.iter_batches(ROWS, columns=list(columns) if columns is not None else None)


def placed(table: str, batch: Any, part: PlacedPart) -> Any:
    """Rows of a part as rows of the whole."""
    rows = arrow().Table.from_batches([batch])
    ordinals = rows.column("ordinal")
    if part.renamed:
        rows = _renamed(table, rows, ordinals.to_pylist(), part.renamed)
    rows = rows.set_column(
        rows.schema.get_field_index("ordinal"), "ordinal", arrow("compute").add(ordinals, part.first)
    )
    return rows.drop_columns([name for name in INTERNAL if name in rows.column_names])


def _renamed(table: str, rows: Any, ordinals: list[int], renamed: dict[int, str]) -> Any:
    if not any(ordinal in renamed for ordinal in ordinals):
        return rows
    pa = arrow()
    own: list[str] = rows.column("conversation").to_pylist()
    names = [renamed.get(ordinal, name) for ordinal, name in zip(ordinals, own, strict=True)]
    if "finding" in TABLES[table]:
        kept, of, numbers = (rows.column(name).to_pylist() for name in ("finding", "_name", "_number"))
        findings = [
            finding_id(name, of[at], numbers[at]) if kept[at] is not None and ordinal in renamed else kept[at]
            for at, (ordinal, name) in enumerate(zip(ordinals, names, strict=True))
        ]
        rows = rows.set_column(rows.schema.get_field_index("finding"), "finding", pa.array(findings, pa.string()))
    return rows.set_column(rows.schema.get_field_index("conversation"), "conversation", pa.array(names, pa.string()))


def write_schema(folder: Path, criterion: str, rows: Mapping[str, int]) -> None:
    """Write what a folder of tables holds, with the rows of each."""
    tables = {table: {"rows": count, "columns": TABLES[table]} for table, count in rows.items()}
    record = {"schema": TABLES_SCHEMA, "criterion": criterion, "partitioned_by": list(PARTITIONED), "tables": tables}
    dump(folder / "schema.json", record)
