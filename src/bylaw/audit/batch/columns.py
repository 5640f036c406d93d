"""Rows gathered column by column, and the Arrow table they make."""

from collections.abc import Sequence
from typing import Any

from bylaw.audit.batch.schema import NESTED, TABLES, arrow, arrow_schema, arrow_type, internal_columns


class Gathered:
    """Rows of one table, in plain lists."""

    def __init__(self, table: str) -> None:
        self.table = table
        self._kinds = TABLES[table] | internal_columns(table)
        self.columns: dict[str, list[Any]] = {}
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.columns = {name: [] for name in self._kinds}

    def __len__(self) -> int:
        return len(self.columns["conversation"])

    def add(self, row: dict[str, Any]) -> None:
        """One row; what it does not name is null."""
        for name, values in self.columns.items():
            values.append(row.get(name))

    def arrow(self) -> Any:
        """The rows as an Arrow table."""
        arrays = [array_of(kind, self.columns[name]) for name, kind in self._kinds.items()]
        return arrow().Table.from_arrays(arrays, schema=arrow_schema(self.table, internal=True))


def array_of(kind: str, values: Sequence[Any]) -> Any:
    """A column as an Arrow array; coded and nested ones are put together of flat ones, which is many times faster."""
    pa = arrow()
    if kind == "word":
        return pa.array(values, pa.string()).dictionary_encode()
    if kind in NESTED:
        offsets, flat = _flattened(values)
        parts = list(zip(*flat, strict=True)) if flat else [()] * len(NESTED[kind])
        texts = [pa.array(part, pa.string()) for part in parts]
        members = pa.StructArray.from_arrays(texts, fields=list(arrow_type(kind).value_type))
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), members).cast(arrow_type(kind))
    return pa.array(values, arrow_type(kind))


def _flattened(values: Sequence[Sequence[Any]]) -> tuple[list[int], list[Any]]:
    offsets = [0]
    flat: list[Any] = []
    for each in values:
        flat.extend(each)
        offsets.append(len(flat))
    return offsets, flat
