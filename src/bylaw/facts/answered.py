"""The answered calls of one tool, found by what they asked for without looking through all of them."""

from bisect import insort
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from bylaw.facts.value import loose, names_several
from bylaw.trace.event import Call


class AnsweredCall(Protocol):
    """A call of the conversation, as the ledger keeps it."""

    step: int
    call: Call


R = TypeVar("R", bound=AnsweredCall)


class Answered(Generic[R]):
    """Calls of one tool whose results came, in the order they were made."""

    __slots__ = ("_indexes", "records")

    def __init__(self) -> None:
        self.records: list[R] = []
        self._indexes: dict[tuple[str, ...], _Index[R]] = {}

    def add(self, record: R) -> None:
        """One more; results may come in another order than the calls were made."""
        if not self.records or self.records[-1].step < record.step:
            self.records.append(record)
        else:
            insort(self.records, record, key=_step)

    def about(self, arguments: Mapping[str, Any]) -> Sequence[R]:
        """Those that may be taken for a call with these arguments, whatever others they have; and perhaps more."""
        names = tuple(arguments)
        index = self._indexes.get(names)
        if index is None or not index.covers(self.records):
            index = self._indexes[names] = _Index(names, index, self.records)
        wanted = _rough(arguments, names)
        if wanted is None:
            return self.records
        found = index.by_value.get(wanted, ())
        return sorted((*found, *index.unsure), key=_step) if index.unsure else found


class _Index(Generic[R]):
    """Records by the rough values of some arguments; those of which they are not plain stand apart."""

    def __init__(self, names: tuple[str, ...], before: "_Index[R] | None", records: Sequence[R]) -> None:
        # Mostly the records since have only been added at the end.
        kept = before if before is not None and before.last is records[before.count - 1] else None
        self.by_value: dict[tuple[str, ...], list[R]] = kept.by_value if kept is not None else {}
        self.unsure: list[R] = kept.unsure if kept is not None else []
        for record in records[kept.count if kept is not None else 0 :]:
            value = None if record.call.fault else _rough(record.call.arguments, names)
            (self.unsure if value is None else self.by_value.setdefault(value, [])).append(record)
        self.count = len(records)
        self.last = records[-1]

    def covers(self, records: Sequence[R]) -> bool:
        """Whether nothing was added since."""
        return self.count == len(records) and self.last is records[-1]


def _rough(arguments: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...] | None:
    """What tools may take the values for; None where one is neither a plain text nor a whole number."""
    found: list[str] = []
    for name in names:
        value = arguments.get(name)
        kind = value.__class__
        if kind is not str and kind is not int and value is not None:
            return None
        if names_several(value):
            return None
        found.append(loose(str(value)))
    return tuple(found)


def _step(record: AnsweredCall) -> int:
    return record.step
