"""Reads YAML, keeps the line of every value, and decodes the data to records. Reports every value that does not match
its declaration.

Only `true` and `false` are Booleans, so `yes` is a word. Dates stay text. So do numbers that would change, such as
`007` and numbers with twenty digits. Duplicate keys, anchors and aliases are errors. Faulty values are left out, so
that all errors are reported together. Later readers can rely on the structure and need to check only the meaning.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar, cast

import msgspec
import yaml

from bylaw.errors import BylawError

YamlPath = tuple[str | int, ...]

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)$")
_NUMBER = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*([eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)|\.[0-9]+([eE][-+]?[0-9]+)?)$")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "~": None, "": None}
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""With libyaml installed, this parses ten times faster than PyYAML's own loader."""
_DEEPEST = 40
_LARGEST = 1_000_000
_COMPLETED = ("tools", "actions", "entities")
"""Sections in which a file extends the records of its base."""


class YamlError(BylawError):
    """Raised if a YAML file in a pack cannot be read."""

    code = "BY402"


class Located:
    """The data from a YAML file, with the place of each value."""

    def __init__(self, file: str, data: Any, places: dict[YamlPath, str]) -> None:
        self.file = file
        self.data: dict[str, Any] = cast(dict[str, Any], data) if isinstance(data, dict) else {}
        self._places = places

    def place(self, *path: str | int) -> str:
        """Return the `file:line` of the value at `path`, or of its nearest parent."""
        at: YamlPath = path
        while at and at not in self._places:
            at = at[:-1]
        return self._places.get(at, self.file)

    def with_data(self, data: dict[str, Any]) -> "Located":
        return Located(self.file, data, self._places)

    def with_places(self, places: dict[YamlPath, str]) -> "Located":
        return Located(self.file, self.data, {**self._places, **places})

    def shared_out(self, section: str) -> "Located":
        """If a section uses `get_a, get_b: ...`, return the file with a separate entry for each name."""
        given: Any = self.data.get(section)
        if not isinstance(given, dict) or not any("," in name for name in cast(dict[str, Any], given)):
            return self
        made: dict[str, Any] = {}
        places = dict(self._places)
        for key, body in cast(dict[str, Any], given).items():
            for name in [part.strip() for part in key.split(",")] if "," in key else (key,):
                if not name or name in made:
                    what = f"`{name}` is given twice" if name else f"`{key}` has an extra comma"
                    raise YamlError(what, place=self.place(section, key))
                made[name] = body
                inside = [at for at in self._places if at[:2] == (section, key)]
                places.update({(section, name, *at[2:]): self._places[at] for at in inside})
        return Located(self.file, {**self.data, section: made}, places)

    def under(self, name: str) -> "Located":
        """If the file is a list, return a file with the list under this name."""
        return Located(self.file, {name: self.data[""]}, {(name, *at): line for at, line in self._places.items()})

    def at(self, path: YamlPath) -> Any:
        value: Any = self.data
        for part in path:
            value = value[part]
        return value

    def without(self, path: YamlPath, names: Sequence[str | int]) -> "Located":
        """Return the file without these keys in the mapping at `path`, or without this item in the list."""
        left: Any = self.at(path).copy()
        for name in names:
            del left[name]
        places, depth = self._places, len(path)
        if isinstance(index := names[0], int):
            inside = [at for at in places if at[:depth] == path and len(at) > depth and int(at[depth]) >= index]
            moved = {(*path, int(at[depth]) - 1, *at[depth + 1 :]): at for at in inside if at[depth] != index}
            gone = frozenset(inside)
            places = {at: line for at, line in places.items() if at not in gone}
            places |= {now: self._places[before] for now, before in moved.items()}
        return Located(self.file, replaced(self.data, path, left), places)

    def over(self, base: "Located") -> "Located":
        """Merge this file over `base`: sections by name, lists of records by `id`.

        Records in lists are merged key by key. So are records in sections that extend their base. Elsewhere, this
        file's value replaces the base's value.
        """
        data, places = dict(base.data), dict(base._places)
        for name, section in self.data.items():
            below = data.get(name)
            if isinstance(section, dict) and isinstance(below, dict):
                own, kept = cast(dict[str, Any], section), cast(dict[str, Any], below)
                both = own.keys() & kept.keys() if name in _COMPLETED else ()
                data[name] = {**kept, **own, **{each: _completed(own[each], kept[each]) for each in both}}
                moved = {at: at for at in self._places if at[:1] == (name,)}
            elif isinstance(section, list) and isinstance(below, list):
                own, kept = cast(list[Any], section), cast(list[Any], below)
                ids = {_id(record): index for index, record in enumerate(kept) if _id(record)}
                merged, positions = list(kept), dict[int, int]()
                for index, record in enumerate(own):
                    at = ids.pop(_id(record), len(merged))
                    merged[at : at + 1] = [_completed(record, merged[at]) if at < len(kept) else record]
                    positions[index] = at
                data[name] = merged
                moved = {
                    at: (name, positions[int(at[1])], *at[2:]) for at in self._places if at[:1] == (name,) and at[1:]
                }
            else:
                data[name] = section
                moved = {at: at for at in self._places if at[:1] == (name,)}
            places.update({there: self._places[here] for here, there in moved.items()})
        return Located(self.file, data, places)


def _completed(record: Any, below: Any) -> Any:
    if isinstance(record, dict) and isinstance(below, dict):
        return {**cast(dict[str, Any], below), **cast(dict[str, Any], record)}
    return cast(Any, record)


def replaced(data: Any, path: YamlPath, value: Any) -> Any:
    if not path:
        return value
    copy = data.copy()
    copy[path[0]] = replaced(data[path[0]], path[1:], value)
    return copy


def _id(record: Any) -> str:
    return str(cast(dict[str, Any], record).get("id", "")) if isinstance(record, dict) else ""


def read_yaml(text: str, *, file: str) -> Located:
    """Parse `text`. Raises `YamlError` with the error's location."""
    if len(text) > _LARGEST:
        hint = f"split the file; the maximum is {_LARGEST:,} characters"
        raise YamlError(f"the file has {len(text):,} characters", place=file, hint=hint)
    builder = _Builder(text, file)
    try:
        data = builder.document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = mark.line + 1 if mark else 1
        what, hint = _told(str(error.problem or ""), text.splitlines(), line)
        raise YamlError(what, place=f"{file}:{line}", hint=hint) from None
    except yaml.YAMLError as error:
        raise YamlError(f"not YAML: {type(error).__name__}", place=file) from None
    if data is not None and not isinstance(data, dict):
        data = {"": data}
    return Located(file, data, builder.places)


def _told(problem: str, lines: Sequence[str], line: int) -> tuple[str, str]:
    """Explain a fault on a line, and how to fix it, to a person who seldom writes YAML."""
    text = lines[line - 1] if line <= len(lines) else ""
    if "\t" in text[: len(text) - len(text.lstrip())]:
        return "not YAML: the line is indented with a tab", "indent with spaces"
    indent = "start all lines of a list or mapping in the same column"
    hints = {
        "mapping values are not allowed": f"{indent}, and put a value with `: ` in it in quotes",
        "did not find expected key": f"{indent}, and close every quote",
        "did not find expected '-'": indent,
        "did not find expected ',' or": "close the bracket, and put a comma between entries",
        "could not find expected ':'": "write `name: value`",
        "found character that cannot start": "put the value in quotes",
        "found unexpected end of stream": "close the quote or bracket that was opened above",
    }
    hint = next((hint for start, hint in hints.items() if problem.startswith(start)), indent)
    return f"not YAML: {problem or 'it cannot be read'}", hint


def read_yaml_file(path: Path, *, file: str = "") -> Located:
    name = file or path.name
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise YamlError("not UTF-8 text", place=name) from None
    return read_yaml(text, file=name)


class _Builder:
    """Builds data from the parser's events and records the line of each value."""

    def __init__(self, text: str, file: str) -> None:
        self._events: Iterator[Any] = cast(Any, yaml).parse(text, Loader=LOADER)
        self._file = file
        self.places: dict[YamlPath, str] = {}

    def document(self) -> Any:
        """Return the file's only document, or None for an empty file."""
        data: Any = None
        count = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                count += 1
                if count > 1:
                    self._fail("a second document begins here", event, hint="put each document in its own file")
                data = self._value(next(self._events), ())
        return data

    def _value(self, event: Any, path: YamlPath) -> Any:
        self.places.setdefault(path, f"{self._file}:{event.start_mark.line + 1}")
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event)
        if isinstance(event, yaml.AliasEvent):
            self._fail("aliases (`*name`) are not allowed", event, hint="write the value out")
        if len(path) > _DEEPEST:
            self._fail("nested too deeply", event)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[Any] = []
            while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
                items.append(self._value(event, (*path, len(items))))
            return items
        built: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            line = f"{self._file}:{event.start_mark.line + 1}"
            if not isinstance(event, yaml.ScalarEvent):
                self._fail("a key must be a plain word", event)
            key = str(event.value)
            if key in built:
                self._fail(f"`{key}` is given twice", event)
            self.places[(*path, key)] = line
            built[key] = self._value(next(self._events), (*path, key))
        return built

    def _fail(self, message: str, event: Any, *, hint: str = "") -> NoReturn:
        raise YamlError(message, place=f"{self._file}:{event.start_mark.line + 1}", hint=hint)


def _scalar(event: yaml.ScalarEvent) -> Any:
    text: str = event.value
    if event.style in ("'", '"', "|", ">"):
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.match(text) and len(text) < 19:
        return int(text)
    if _NUMBER.match(text):
        return float(text)
    return text


FileRecord = TypeVar("FileRecord")

Scalar = str | int | float | bool
"""Any YAML scalar. The code that reads it converts it to text."""

_KINDS = {
    "str": "text",
    "int": "a whole number",
    "int | float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
}
MOST = 100
_PART = re.compile(r"\.(\w+)|\[(\d+)\]|\[(\.\.\.)\]")
_EXPECTED = re.compile(r"Expected `(.*)`, got `(\w+)`")
_INVALID = "Invalid enum value"


class ShapeError(BylawError):
    """Raised if a value in a pack's file has the wrong structure."""

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
    faults.append(ShapeError("there are more errors of this kind", place=source.file))
    return Read(kind(), source, faults)


def _found(source: Located, kind: type[Any], message: str) -> tuple[YamlPath, Sequence[str | int], list[BylawError]]:
    """Return the location and names in an error, and the errors to report. Nothing is reported for an empty value."""
    expected = _EXPECTED.match(message)
    at = _place(source, kind, message)
    if message.startswith(_INVALID):
        words = ", ".join(str(word) for each in _types(kind, at) for word in getattr(each, "values", ()))
        message = f"{_name(at)} cannot be `{source.at(at)}`"
        return at[:-1], at[-1:], [ShapeError(message, place=source.place(*at), hint=f"known: {words}")]
    if expected is None:
        # Search for unknown keys one by one. A key may contain any text, even part of a message.
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
    hint = "put the value in quotes" if wanted == ["str"] and not isinstance(value, dict | list) else ""
    fault = ShapeError(f"{_name(at)} must be {_words(wanted)}, not {said}", place=source.place(*at), hint=hint)
    return at[:-1], at[-1:], [fault]


def _unknown(source: Located, kind: type[Any], at: YamlPath) -> list[str]:
    known = _known(kind, at)
    return [name for name, _ in _items(source, at) if known and name not in known]


def _items(source: Located, at: YamlPath) -> list[tuple[str, Any]]:
    try:
        here: Any = source.at(at)
    except (KeyError, IndexError, TypeError):
        return []
    return list(cast(dict[str, Any], here).items()) if isinstance(here, dict) else []


def _place(source: Located, kind: type[Any], message: str) -> YamlPath:
    at: YamlPath = ()
    _, stands_there, path = message.rpartition(" - at `$")
    for name, index, key in _PART.findall(path) if stands_there else ():
        at = (*at, _first_key(source, kind, message, at) if key else name or int(index))
    return at


def _first_key(source: Located, kind: type[Any], message: str, at: YamlPath) -> str:
    """Return the faulty key. It is the last key in the smallest set that still produces the message."""
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
    one = _KINDS.get(" | ".join(scalars), "one value")
    return " or ".join(([one] if scalars else []) + [_KINDS[part] for part in parts if part in ("array", "object")])


def _kind_of(value: Any) -> str:
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, dict) else f"`{value}`"


def _name(at: YamlPath) -> str:
    names = [part for part in at if isinstance(part, str)]
    name = f"`{names[-1]}`" if names else "this"
    return f"item {at[-1] + 1} of {name}" if at and isinstance(at[-1], int) else name
