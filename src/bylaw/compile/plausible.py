"""Decides whether a generated situation could occur, using the tools' schemas and recorded values.

A number is negative only if the schema or a record says so. Some records have two dates that always come in the same
order, such as the start and end of a stay. The opposite order is implausible.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from operator import ge, gt, le, lt
from typing import Any, cast

from bylaw.compile.schema import Schema, record, section

_OFTEN = 5
"""The minimum number of records that establish an order of dates, or of calls that establish a list's minimum length.
"""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")

Place = tuple[str, str]
"""The path of a record, and the name of a field in it."""


def arguments_of(tool: str) -> str:
    """Return the name under which a tool's arguments are recorded. An entity's fields are recorded under its name."""
    return f"{tool}()"


class Plausible:
    """Values known from calls and entities."""

    def __init__(self, schemas: Mapping[str, Schema], recorded: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        self._schemas = schemas
        self._negative = {place for owner, schema in schemas.items() for place in _declared_negative(owner, schema)}
        self._lengths: dict[Place, list[int]] = {}
        earlier: dict[tuple[str, str, str], set[tuple[datetime, datetime]]] = {}
        """Pairs of dates that are always in the same order, the earlier first, keyed by path and by the two field
        names.
        """
        for owner, whole in recorded:
            for path, found in _records(owner, whole):
                self._negative |= {(path, name) for name, value in found.items() if _is_negative(value)}
                moments = _moments(found)
                for one, first in moments.items():
                    for other, last in moments.items():
                        if first < last:
                            earlier.setdefault((path, one, other), set()).add((first, last))
            for name, value in whole.items():
                if isinstance(value, list):
                    self._lengths.setdefault((owner, name), []).append(len(cast(list[Any], value)))
        self._ordered = [
            each
            for each, pairs in earlier.items()
            if len(pairs) >= _OFTEN and (each[0], each[2], each[1]) not in earlier
        ]

    def may_occur(self, owner: str, values: Mapping[str, Any]) -> bool:
        if _is_out_of_bounds(values, self._schemas.get(owner)):
            return False
        if any(self._is_short(owner, name, value) for name, value in values.items()):
            return False
        return all(self._fits(path, found) for path, found in _records(owner, values))

    def _is_short(self, owner: str, name: str, value: Any) -> bool:
        lengths = self._lengths.get((owner, name), [])
        return isinstance(value, list) and len(lengths) >= _OFTEN and len(cast(list[Any], value)) < min(lengths)

    def _fits(self, path: str, values: Mapping[str, Any]) -> bool:
        if any(_is_negative(value) and (path, name) not in self._negative for name, value in values.items()):
            return False
        moments = _moments(values)
        return not any(
            at == path and first in moments and last in moments and moments[first] > moments[last]
            for at, first, last in self._ordered
        )


def _is_out_of_bounds(value: Any, schema: Any) -> bool:
    """Whether any number or list length, at any depth, is outside the schema's bounds."""
    found = record(schema)
    if isinstance(value, list):
        items = cast(list[Any], value)
        return len(items) < found.get("minItems", 0) or any(
            _is_out_of_bounds(each, found.get("items")) for each in items
        )
    if isinstance(value, dict):
        inner, parts = found.get("additionalProperties"), section(found, "properties")
        return any(
            _is_out_of_bounds(part, parts.get(name, inner)) for name, part in cast(dict[str, Any], value).items()
        )
    is_number = isinstance(value, int | float)
    return is_number and any(name in found and is_outside(value, found[name]) for name, is_outside in _BOUNDS.items())


_BOUNDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "minimum": lt,
    "maximum": gt,
    "exclusiveMinimum": le,
    "exclusiveMaximum": ge,
}


def _records(path: str, value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every record in a value with its path. All items of a list share one path."""
    if isinstance(value, list):
        for item in cast(list[Any], value):
            yield from _records(path, item)
    elif isinstance(value, dict):
        yield path, cast(dict[str, Any], value)
        for name, part in cast(dict[str, Any], value).items():
            yield from _records(f"{path}.{name}", part)


def _declared_negative(path: str, schema: Any) -> Iterator[Place]:
    found = record(schema)
    if found.get("type") == "array":
        yield from _declared_negative(path, found.get("items"))
    for name, part in section(found, "properties").items():
        if record(part).get("minimum", 0) < 0:
            yield path, name
        yield from _declared_negative(f"{path}.{name}", part)


def _is_negative(value: Any) -> bool:
    return isinstance(value, int | float) and value < 0


def _moments(record: Mapping[str, Any]) -> dict[str, datetime]:
    """Return the dates and times in a record. Values with a time zone are never mixed with values without one."""
    found: dict[str, datetime] = {}
    for name, value in record.items():
        if isinstance(value, str) and _DAY.match(value):
            try:
                found[name] = datetime.fromisoformat(value)
            except ValueError:
                continue
    zoned = {each.tzinfo is not None for each in found.values()}
    return found if len(zoned) <= 1 else {}
