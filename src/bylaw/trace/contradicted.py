"""JSON in which one object has a key twice, or a result comes in two versions that differ.

Parsers differ in the value they pick, so an attacker could show one value to the tool and another to Bylaw. Both values
are kept, and neither counts as known.
"""

import json
from collections.abc import Iterable
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class Contradicted(Struct, frozen=True):
    """Several values in the place of one."""

    values: tuple[Any, ...]


def decode_json(text: str | Raw) -> Any:
    """JSON as data; a key that occurs twice in an object has the value `Contradicted`, unless both values are equal."""
    value: Any = _decode(text)
    if (value.__class__ is not dict and value.__class__ is not list) or names_stand_once(text, value):
        return value
    plain = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
    try:
        return json.loads(plain, object_pairs_hook=record_of, strict=False)
    except ValueError as error:
        # Python reads no number of thousands of digits, and msgspec does.
        raise msgspec.DecodeError(str(error)) from None


def names_stand_once(text: str | bytes | Raw, value: Any) -> bool:
    """Whether no object in `text`, which was decoded to `value`, has a key twice; False if that is not certain."""
    if isinstance(text, str):
        count, has_escaped = text.count(":"), "\\u003" in text
    else:
        plain = bytes(text)
        count, has_escaped = plain.count(b":"), b"\\u003" in plain
    # Every key is followed by a colon, and encoded again it occurs once.
    if value.__class__ is dict and count == len(value):
        return True
    # An escaped colon could replace a missing one.
    return not has_escaped and count == _encode(value).count(b":")


def record_of(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """An object made of pairs in which a key may occur twice."""
    record: dict[str, Any] = {}
    for name, value in pairs:
        record[name] = either(record[name], value) if name in record else value
    return record


def either(one: Any, other: Any) -> Any:
    """A value that is told in two ways: it, where they are the same, else both."""
    told = [*one.values] if isinstance(one, Contradicted) else [one]
    # True and 1 are equal to Python alone.
    if not any(value == other and isinstance(value, bool) is isinstance(other, bool) for value in told):
        told.append(other)
    return Contradicted(tuple(told)) if len(told) > 1 else one


def merged(one: Any, other: Any) -> Any:
    """What the first of two accounts of one thing tells, with all that the other tells otherwise beside it."""
    if isinstance(one, dict) and isinstance(other, dict):
        ours, theirs = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        shared = {name: merged(value, theirs[name]) for name, value in ours.items() if name in theirs}
        return {**ours, **shared}
    if (
        isinstance(one, list)
        and isinstance(other, list)
        and len(cast("list[Any]", one)) == len(cast("list[Any]", other))
    ):
        return [merged(*both) for both in zip(cast("list[Any]", one), cast("list[Any]", other), strict=True)]
    return either(one, other)


def holds_contradiction(value: Any) -> bool:
    """Whether anything in a list or record is told in two ways."""
    parts: list[Any] = [value]
    for part in parts:
        if part.__class__ is dict:
            parts += part.values()
        elif part.__class__ is list or part.__class__ is tuple:
            parts += part
        elif part.__class__ is Contradicted:
            return True
    return False
