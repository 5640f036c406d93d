"""The values that data is made of, out of its lists and records."""

from collections.abc import Collection, Iterator
from typing import Any, cast

from bylaw.text.identifier import identifiers, is_prose

_LEAVES = 20_000


def leaves(value: Any) -> Iterator[Any]:
    """Every value, in order."""
    if isinstance(value, dict):
        value = list(cast("dict[str, Any]", value).values())
    if isinstance(value, list):
        for part in cast("list[Any]", value):
            yield from leaves(part)
    else:
        yield value


def with_keys(value: Any, names: Collection[str]) -> Any:
    """Data in which keys that are none of these names are values beside the others: `{"jo@x.com": "editor"}`."""
    if isinstance(value, dict):
        record = cast("dict[str, Any]", value)
        keys = [key for key in record if key not in names]
        parts = {key: with_keys(part, names) for key, part in record.items()}
        return [*keys, *parts.values()] if keys else parts
    if isinstance(value, list):
        return [with_keys(part, names) for part in cast("list[Any]", value)]
    return value


def leaf_values(arguments: Any) -> Iterator[tuple[str, str | int | float]]:
    """The traceable values inside a call's arguments, each with its path, e.g. `flights[].date`.

    Of running text only the identifiers in it (addresses, links, codes) are traced: the rest is composed.
    """
    pending: list[tuple[str, Any]] = [("", arguments)]
    left = _LEAVES
    while pending and left:
        path, value = pending.pop()
        left -= 1
        if isinstance(value, dict):
            items = cast("dict[Any, Any]", value).items()
            pending.extend((f"{path}.{name}" if path else str(name), part) for name, part in items)
        elif isinstance(value, list):
            pending.extend((f"{path}[]", part) for part in cast("list[Any]", value))
        elif isinstance(value, str) and is_prose(value):
            yield from ((path, token) for token in identifiers(value))
        elif isinstance(value, (str, int, float)) and not isinstance(value, bool) and value != "":
            yield path, value
