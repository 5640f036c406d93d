"""Decodes a pack's files to records with `msgspec`. Every value that does not fit is reported with its location.

Faulty values are left out, so that all errors are reported together. Later readers can rely on shapes and only check
meaning.
"""

import re
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast

import msgspec

from bylaw.errors import BylawError
from bylaw.policy.yaml import Located, YamlPath, replaced

FileRecord = TypeVar("FileRecord")

Scalar = str | int | float | bool
"""Any YAML scalar. Its reader converts it to text."""

_WORDS = {
    "str": "text",
    "int": "a whole number",
    "int | float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
}
MOST = 100
"""The maximum number of errors reported per file."""
_PART = re.compile(r"\.(\w+)|\[(\d+)\]|\[(\.\.\.)\]")
_EXPECTED = re.compile(r"Expected `(.*)`, got `(\w+)`")
_INVALID = "Invalid enum value"


class ShapeError(BylawError):
    """A value in a pack's file has the wrong shape."""

    code = "BY408"


class Read(NamedTuple, Generic[FileRecord]):
    record: FileRecord
    source: Located
    """The file without its faulty parts."""
    faults: list[BylawError]


def read_record(source: Located, kind: type[FileRecord]) -> Read[FileRecord]:
    """Decode a file as a record. All fields of the record have defaults."""
    faults: list[BylawError] = []
    for _ in range(MOST):
        try:
            return Read(msgspec.convert(source.data, kind), source, faults)
        except msgspec.ValidationError as error:
            at, names, found = _found(source, kind, str(error))
            faults += found[: MOST - len(faults)]
            source = source.without(at, names)
    faults.append(ShapeError("there are more such faults than are listed", place=source.file))
    return Read(kind(), source, faults)


def _found(source: Located, kind: type[Any], message: str) -> tuple[YamlPath, Sequence[str | int], list[BylawError]]:
    """Return an error's location with names, and the message; no message for an empty value."""
    expected = _EXPECTED.match(message)
    at = _place(source, kind, message)
    if message.startswith(_INVALID):
        words = ", ".join(str(word) for each in _types(kind, at) for word in getattr(each, "values", ()))
        message = f"{_name(at)} cannot be `{source.at(at)}`"
        return at[:-1], at[-1:], [ShapeError(message, place=source.place(*at), hint=f"known: {words}")]
    if expected is None:
        # Unknown keys are searched, because a key may contain any text, even part of a message.
        at, names = next(found for each in (at, ()) if (found := (each, _unknown(source, kind, each)))[1])
        hint = f"known: {', '.join(sorted(_known(kind, at)))}"
        told = [
            ShapeError(
                f"{f'`{name}`' if name else 'a list'} is not known here", place=source.place(*at, name), hint=hint
            )
            for name in names[:MOST]
        ]
        return at, names, list(told)
    wanted = [part for part in expected[1].split(" | ") if part != "null"]
    if expected[2] == "null" and isinstance(at[-1], str):
        return at[:-1], at[-1:], []
    value = source.at(at)
    said = "empty" if value is None else _kind_of(value)
    hint = "put it in quotes" if wanted == ["str"] and not isinstance(value, dict | list) else ""
    fault = ShapeError(f"{_name(at)} must be {_words(wanted)}, not {said}", place=source.place(*at), hint=hint)
    return at[:-1], at[-1:], [fault]


def _unknown(source: Located, kind: type[Any], at: YamlPath) -> list[str]:
    known = _known(kind, at)
    return [name for name, _ in _items(source, at) if known and name not in known]


def _items(source: Located, at: YamlPath) -> list[tuple[str, Any]]:
    """Return the mapping at a location; empty if there is none."""
    try:
        here: Any = source.at(at)
    except (KeyError, IndexError, TypeError):
        return []
    return list(cast(dict[str, Any], here).items()) if isinstance(here, dict) else []


def _place(source: Located, kind: type[Any], message: str) -> YamlPath:
    """Return the location in a msgspec message, completed with the mapping keys that it leaves out."""
    at: YamlPath = ()
    _, stands_there, path = message.rpartition(" - at `$")
    for name, index, key in _PART.findall(path) if stands_there else ():
        at = (*at, _first_key(source, kind, message, at) if key else name or int(index))
    return at


def _first_key(source: Located, kind: type[Any], message: str, at: YamlPath) -> str:
    """Return the faulty key: the last of the smallest set of keys that still gives the message."""
    keys = _items(source, at)
    low, high = 0, len(keys) - 1
    while low < high:
        middle = (low + high) // 2
        try:
            msgspec.convert(replaced(source.data, at, dict(keys[: middle + 1])), kind)
            fits = True
        except msgspec.ValidationError as error:
            fits = str(error) != message
        low, high = (middle + 1, high) if fits else (low, middle)
    return keys[low][0] if keys else ""


def _known(kind: type[Any], at: YamlPath) -> list[str]:
    """Return the names allowed at a location; empty if any name is."""
    return next((list(_fields(each)) for each in _types(kind, at) if hasattr(each, "fields")), list[str]())


def _types(kind: type[Any], at: YamlPath) -> list[Any]:
    from msgspec import inspect

    kinds: list[Any] = [inspect.type_info(kind)]
    for part in (*at, None):
        kinds = [each for one in kinds for each in (one.types if isinstance(one, inspect.UnionType) else (one,))]
        if part is None:
            break
        inside: list[Any] = []
        for each in kinds:
            if isinstance(each, inspect.StructType):
                inside += [_fields(each)[part]] if part in _fields(each) else []
            elif isinstance(each, inspect.DictType):
                inside.append(each.value_type)
            elif isinstance(each, inspect.ListType | inspect.VarTupleType):
                inside.append(each.item_type)
        kinds = inside
    return kinds


def _fields(struct: Any) -> dict[Any, Any]:
    return {field.encode_name: field.type for field in struct.fields}


def _words(parts: list[str]) -> str:
    scalars = [part for part in parts if part not in ("array", "object")]
    one = _WORDS.get(" | ".join(scalars), "one value")
    return " or ".join(([one] if scalars else []) + [_WORDS[part] for part in parts if part in ("array", "object")])


def _kind_of(value: Any) -> str:
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, dict) else f"`{value}`"


def _name(at: YamlPath) -> str:
    names = [part for part in at if isinstance(part, str)]
    name = f"`{names[-1]}`" if names else "this"
    return f"item {at[-1] + 1} of {name}" if at and isinstance(at[-1], int) else name
