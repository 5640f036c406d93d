"""One record in a tool's result, and the records it was listed with."""

from collections.abc import Mapping, Sequence
from typing import Any

from bylaw.engine.consent.once import once
from bylaw.facts.folded_text import fold_name
from bylaw.policy.verb import words_of

_NODES = 50_000


class Entry:
    """One record that bears an id, and the others it was listed with."""

    def __init__(self, step: int, fields: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> None:
        self.step = step
        self.fields = fields
        self.others = others

    def has(self, name: str, value: str) -> bool:
        """Whether a field of this name, at any depth, has a value, folded."""
        return value in self._values.get(name, ())

    def is_one_of_several(self, value: str) -> bool:
        """Whether fields of the same name, at any depth, have other values too."""
        own = fold_name(value)
        return all(len(values) > 1 for values in self._values.values() if own in values)

    @once
    def _values(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for name, value in scalars(self.fields):
            found.setdefault(name, set()).add(fold_name(str(value)))
        return found

    @once
    def parts(self) -> list[str | int | float]:
        """Its plain values at any depth."""
        return [value for _, value in scalars(self.fields)]

    @once
    def id_field(self) -> str | None:
        """The name of the field that holds its own id, the first that is named so."""
        ids = (name for name in self.fields if name in ("", "id") or words_of(name)[-1:] == ["id"])
        return next(ids, None)


def entries_in(step: int, data: Any) -> list[Entry]:
    """Every record in the data of a result. One that is listed under an id bears it too."""
    found: list[Entry] = []
    pending: list[tuple[Any, Sequence[Mapping[str, Any]]]] = [(data, ())]
    left = _NODES
    while pending and left:
        left -= 1
        value, others = pending.pop()
        if value.__class__ is list:
            records: list[Mapping[str, Any]] = []
            for item in value:
                if item.__class__ is dict:
                    records.append(item)
                    pending.append((item, records))
                elif item.__class__ is list:
                    pending.append((item, records))
        elif value.__class__ is dict:
            found.append(Entry(step, value, others))
            inner: list[Mapping[str, Any]] = []
            for name, part in value.items():
                if part.__class__ is dict:
                    inner.append({"": name, **part})
                elif part.__class__ is list:
                    pending.append((part, ()))
            pending += [(part, inner) for part in inner]
    return found


def scalars(record: Mapping[str, Any]) -> list[tuple[str, str | int | float]]:
    """The plain values in a record at any depth, each with the name of its field."""
    found: list[tuple[str, str | int | float]] = []
    pending: list[tuple[str, Any]] = list(record.items())
    left = _NODES
    while pending and left:
        left -= 1
        pair = pending.pop()
        value = pair[1]
        kind = value.__class__
        if kind is str or kind is int or kind is float:
            found.append(pair)
        elif kind is dict:
            pending += value.items()
        elif kind is list:
            name = pair[0]
            pending += [(name, item) for item in value]
    return found
