"""Fields of results that no observation maps: what a pack's author may have overlooked."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from bylaw.pack import Pack
from bylaw.trace.event import Call, Event, Result

if TYPE_CHECKING:
    from bylaw.audit.cover import Redaction

_KEPT = 1 << 12
"""Sets of field names that are remembered."""


class UnmappedFields:
    """Finds them under one pack, each once: results with the same names are looked at until all have been told."""

    def __init__(self, pack: Pack, redaction: "Redaction | None") -> None:
        self._pack = pack
        self._redaction = redaction
        self._mapped: dict[str, frozenset[str]] = {}
        self._untold: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        """By tool and names, those that are not mapped and were not told yet."""

    def of(self, events: Sequence[Event]) -> Iterator[tuple[str, str]]:
        """Unmapped fields of a conversation's results, each with its tool."""
        tools = self._pack.schema.tools
        for result in events:
            if type(result) is not Result or result.call is None or not result.captured:
                continue
            call = events[result.call]
            if type(call) is not Call or call.tool not in tools:
                continue
            names = tuple(_names_in(result.value()))
            untold = self._untold.get((call.tool, names))
            if untold is None:
                mapped = self._mapped_by(call.tool)
                untold = [name for name in names if name not in mapped]
            elif not untold:
                continue
            told = untold
            if untold and self._redaction is not None:
                # A name can itself be a private value of one result, and may be told of another.
                told = self._redaction.tellable(call.tool, result.value(), untold)
            for name in told:
                yield call.tool, name
            if len(self._untold) < _KEPT:
                self._untold[call.tool, names] = [name for name in untold if name not in told]

    def _mapped_by(self, tool: str) -> frozenset[str]:
        mapped = self._mapped.get(tool)
        if mapped is None:
            shown = self._pack.schema.shows.get(tool, {})
            observations = [observation for each in shown.values() for observation in each]
            read = frozenset[str]().union(*(each.reads for each in observations))
            mapped = read.union(name for each in observations for name in (*each.entity.fields, *each.entity.key))
            self._mapped[tool] = mapped
        return mapped


def _names_in(value: Any) -> Iterable[str]:
    """The field names of a record, or of the first of several."""
    row: Any = value
    if isinstance(value, list):
        row = value[0] if value else None  # pyright: ignore[reportUnknownVariableType]
    return row if isinstance(row, dict) else ()  # pyright: ignore[reportUnknownVariableType]
