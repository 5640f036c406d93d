"""Fields of results that no observation maps: what a pack's author may have overlooked."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from bylaw.audit.redaction import Redaction
from bylaw.engine.pack import Pack
from bylaw.trace.event import Call, Event, Result

_KEPT = 1 << 12
"""Sets of field names that are remembered."""


class UnmappedFields:
    """Finds them under one pack; results with the same names are compared with it once."""

    def __init__(self, pack: Pack, redaction: Redaction | None) -> None:
        self._pack = pack
        self._redaction = redaction
        self._mapped: dict[str, frozenset[str]] = {}
        self._known: dict[tuple[str, tuple[str, ...]], list[str]] = {}

    def of(self, events: Sequence[Event]) -> Iterator[tuple[str, str]]:
        """Each unmapped field of a conversation's results, with its tool."""
        tools = self._pack.schema.tools
        for result in events:
            if not isinstance(result, Result) or result.call is None or not result.captured:
                continue
            call = events[result.call]
            if not isinstance(call, Call) or call.tool not in tools:
                continue
            names = tuple(_names_in(result.value()))
            if not names:
                continue
            unmapped = self._known.get((call.tool, names))
            if unmapped is None:
                mapped = self._mapped_by(call.tool)
                unmapped = [name for name in names if name not in mapped]
                if len(self._known) < _KEPT:
                    self._known[call.tool, names] = unmapped
            if unmapped and self._redaction is not None:
                unmapped = self._redaction.tellable(call.tool, result.value(), unmapped)
            for name in unmapped:
                yield call.tool, name

    def _mapped_by(self, tool: str) -> frozenset[str]:
        mapped = self._mapped.get(tool)
        if mapped is None:
            shown = self._pack.schema.shows.get(tool, {})
            kinds = [observation.entity for each in shown.values() for observation in each]
            mapped = frozenset(name for entity in kinds for name in (*entity.fields, *entity.key))
            self._mapped[tool] = mapped
        return mapped


def _names_in(value: Any) -> Iterable[str]:
    """The field names of a record, or of the first of several."""
    row: Any = value
    if isinstance(value, list):
        row = value[0] if value else None  # pyright: ignore[reportUnknownVariableType]
    return row if isinstance(row, dict) else ()  # pyright: ignore[reportUnknownVariableType]
