"""Reads YAML, keeps the line of every value, and decodes the data to records.

Every value that does not match its declaration is reported. Only `true` and `false` are Booleans, so `yes` is text.
Dates stay text, and so do numbers that would change, such as `007` and numbers with twenty digits. Duplicate keys,
anchors and aliases are errors. Invalid values are left out, so that all errors can be reported together. The code that
uses the data can rely on its structure and needs to check only its meaning.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NoReturn,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
import yaml

from bylaw.errors import BylawError

YamlPath = tuple[str | int, ...]

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)$")
_NUMBER = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*([eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)|\.[0-9]+([eE][-+]?[0-9]+)?)$")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "~": None, "": None}
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The YAML loader. If libyaml is installed, it parses ten times faster than PyYAML's own loader."""
_DEEPEST = 40
_LARGEST = 1_000_000
_COMPLETED = ("tools", "actions", "entities")
"""Sections in which a file adds keys to the records of the same name in its base file."""


class YamlError(BylawError):
    """Raised if a YAML file in a pack cannot be read."""

    code = "BY402"


class Located:
    """The data from a YAML file, with the location of each value."""

    def __init__(self, file: str, data: Any, places: dict[YamlPath, str]) -> None:
        self.file = file
        self.data: dict[str, Any] = cast(dict[str, Any], data) if isinstance(data, dict) else {}
        self.places = places

    def place(self, *path: str | int) -> str:
        """Return the location, as `file:line`, of the value at `path`.

        If it has none, return the location of its nearest parent.
        """
        at: YamlPath = path
        while at and at not in self.places:
            at = at[:-1]
        return self.places.get(at, self.file)

    def fault(
        self, kind: type[BylawError], message: str, *path: str | int, hint: str = "", lacks: str = ""
    ) -> BylawError:
        """Return an error with the location of the value at `path`."""
        return kind(message, place=self.place(*path), hint=hint, lacks=lacks)

    def with_data(self, data: dict[str, Any]) -> "Located":
        return Located(self.file, data, self.places)

    def with_places(self, places: dict[YamlPath, str]) -> "Located":
        return Located(self.file, self.data, {**self.places, **places})

    def shared_out(self, section: str) -> "Located":
        """Return the file with a separate entry for each name, if a section has entries such as `get_a, get_b: ...`."""
        given: Any = self.data.get(section)
        if not isinstance(given, dict) or not any("," in name for name in cast(dict[str, Any], given)):
            return self
        made: dict[str, Any] = {}
        places = dict(self.places)
        for key, body in cast(dict[str, Any], given).items():
            for name in [part.strip() for part in key.split(",")] if "," in key else (key,):
                if not name or name in made:
                    what = f"`{name}` is given twice" if name else f"`{key}` has an extra comma"
                    raise YamlError(what, place=self.place(section, key))
                made[name] = body
                inside = [at for at in self.places if at[:2] == (section, key)]
                places.update({(section, name, *at[2:]): self.places[at] for at in inside})
        return Located(self.file, {**self.data, section: made}, places)

    def under(self, name: str) -> "Located":
        """If the file is a list, return a file in which this list has the key `name`."""
        return Located(self.file, {name: self.data[""]}, {(name, *at): line for at, line in self.places.items()})

    def over(self, base: "Located") -> "Located":
        """Return this file merged over `base`: sections are merged by name, and lists of records by `id`.

        In lists, and in sections that complete their base, records are merged key by key. Everywhere else, this file's
        value replaces the base's value.
        """
        data, positions = dict(base.data), dict[YamlPath, int]()
        for name, section in self.data.items():
            below = data.get(name)
            data[name] = section
            if isinstance(section, dict) and isinstance(below, dict):
                own, kept = cast(dict[str, Any], section), cast(dict[str, Any], below)
                both = own.keys() & kept.keys() if name in _COMPLETED else ()
                data[name] = {**kept, **own, **{each: _completed(own[each], kept[each]) for each in both}}
            elif isinstance(section, list) and isinstance(below, list):
                merged = list(cast(list[Any], below))
                ids = {id: place for place, record in enumerate(merged) if (id := _id(record))}
                for index, record in enumerate(cast(list[Any], section)):
                    at = positions[name, index] = ids.pop(_id(record), len(merged))
                    merged[at : at + 1] = [_completed(record, each) for each in merged[at : at + 1]] or [record]
                data[name] = merged
        moved = {(*at[:1], positions.get(at[:2], at[1]), *at[2:]): line for at, line in self.places.items() if at[1:]}
        return Located(self.file, data, {**base.places, **moved})


def _completed(record: Any, below: Any) -> Any:
    if isinstance(record, dict) and isinstance(below, dict):
        return {**cast(dict[str, Any], below), **cast(dict[str, Any], record)}
    return cast(Any, record)


def _id(record: Any) -> str:
    return str(cast(dict[str, Any], record).get("id", "")) if isinstance(record, dict) else ""


def read_yaml(text: str, *, file: str) -> Located:
    """Parse `text`. Raise `YamlError` with the location of the error."""
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
    """Explain an error in a line and how to fix it, for people who seldom write YAML."""
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
    """Builds the data from the YAML parser's events, and records the line of each value."""

    def __init__(self, text: str, file: str) -> None:
        self._events: Iterator[Any] = cast(Any, yaml).parse(text, Loader=LOADER)
        self._file = file
        self.places: dict[YamlPath, str] = {}

    def document(self) -> Any:
        """Return the only document in the file, or None if the file is empty."""
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
"""Any YAML scalar. The code that uses it converts it to text."""

MOST = 100
"""The maximum number of errors to report for a file."""
_FAULTY: Any = object()
"""Marks an invalid value, which is left out of the result."""


class ShapeError(BylawError):
    """Raised if a value in a pack's file has the wrong structure."""

    code = "BY408"


class Read(NamedTuple, Generic[FileRecord]):
    record: FileRecord
    source: Located
    """The file without its invalid parts."""
    faults: list[BylawError]


def read_record(source: Located, kind: type[FileRecord]) -> Read[FileRecord]:
    """Decode a file as a record whose fields all have defaults."""
    try:
        return Read(msgspec.convert(source.data, kind), source, [])
    except msgspec.ValidationError:
        fitting = _Fitting(source)
    left = fitting.struct(source.data, kind, ())
    faults: list[BylawError] = [*fitting.faults[:MOST]]
    if len(fitting.faults) > MOST:
        faults.append(ShapeError("there are more errors of this kind", place=source.file))
    return Read(msgspec.convert(left, kind), Located(source.file, left, fitting.places()), faults)


class _Fitting:
    """Removes the parts of a file that do not match a record type, and reports them."""

    def __init__(self, source: Located) -> None:
        self._source = source
        self._kept: dict[YamlPath, list[int]] = {}
        """For each list with an invalid item, the positions of the items that remain."""
        self.faults: list[ShapeError] = []

    def struct(self, value: dict[str, Any], kind: type[Any], at: YamlPath) -> dict[str, Any]:
        known = _types_of(kind)
        left: dict[str, Any] = {}
        for name, given in value.items():
            if name not in known:
                hint = f"known: {', '.join(sorted(known))}"
                self._fault(
                    f"`{name}` is not a known key" if name else "a list is not allowed here", *at, name, hint=hint
                )
            elif (fit := self._fit(given, known[name], (*at, name))) is not _FAULTY:
                left[name] = fit
        return left

    def _fit(self, value: Any, kind: Any, at: YamlPath) -> object:
        """Return the part of a value that matches a type. In a mapping, an empty value counts as missing."""
        options = _options(kind)
        if value is None and type(None) not in options and Any not in options and isinstance(at[-1], str):
            return _FAULTY
        for option in options:
            origin = get_origin(option)
            if isinstance(value, dict) and isinstance(option, type) and issubclass(option, msgspec.Struct):
                return self.struct(cast("dict[str, Any]", value), option, at)
            if isinstance(value, dict) and origin is dict:
                inner = {
                    name: self._fit(each, get_args(option)[1], (*at, name))
                    for name, each in cast("dict[str, Any]", value).items()
                }
                return {name: each for name, each in inner.items() if each is not _FAULTY}
            if isinstance(value, list) and origin in (list, tuple):
                items = [
                    self._fit(each, get_args(option)[0], (*at, place))
                    for place, each in enumerate(cast("list[Any]", value))
                ]
                self._kept[at] = [place for place, each in enumerate(items) if each is not _FAULTY]
                return [each for each in items if each is not _FAULTY]
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            self._misfit(value, options, at, str(error))
            return _FAULTY
        return cast(object, value)

    def _misfit(self, value: Any, options: Sequence[Any], at: YamlPath, why: str) -> None:
        names = [part for part in at if isinstance(part, str)]
        name = f"item {at[-1] + 1} of `{names[-1]}`" if isinstance(at[-1], int) else f"`{at[-1]}`"
        if "got `" not in why and not why.startswith("Invalid enum value"):
            self._fault(f"{name} cannot be `{value}`", *at, hint=why.partition(" - at")[0].lower())
            return
        words = sorted(word for option in options if get_origin(option) is Literal for word in get_args(option))
        if words and isinstance(value, str):
            self._fault(f"{name} cannot be `{value}`", *at, hint=f"known: {', '.join(words)}")
            return
        wanted = _wanted(options)
        said = "empty" if value is None else _kind_of(value)
        hint = "put the value in quotes" if wanted == "text" and not isinstance(value, dict | list) else ""
        self._fault(f"{name} must be {wanted}, not {said}", *at, hint=hint)

    def _fault(self, message: str, *at: str | int, hint: str) -> None:
        self.faults.append(ShapeError(message, place=self._source.place(*at), hint=hint))

    def places(self) -> dict[YamlPath, str]:
        """Return the locations of the remaining values. Items after a removed item have moved up."""
        return {moved: line for at, line in self._source.places.items() if (moved := self._moved(at)) is not None}

    def _moved(self, at: YamlPath) -> YamlPath | None:
        path = list(at)
        for depth, part in enumerate(at):
            kept = self._kept.get(at[:depth])
            if kept is not None and part not in kept:
                return None
            path[depth] = kept.index(int(part)) if kept is not None else part
        return tuple(path)


@cache
def _types_of(kind: type[Any]) -> dict[str, Any]:
    """Return the types of a record's fields, keyed by the fields' names in files."""
    types = get_type_hints(kind, include_extras=True)
    return {
        name: types[field] for field, name in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    }


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


_SCALARS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "float int": "a number",
    "bool": "true or false",
}


def _wanted(options: Sequence[Any]) -> str:
    shapes = {get_origin(option) or option for option in options}
    scalars = {str if shape is Literal else float if shape is Annotated else shape for shape in shapes}
    named = " ".join(sorted(each.__name__ for each in scalars & {str, int, float, bool}))
    parts = [_SCALARS.get(named, "one value")] if named else []
    parts += ["a mapping"] if any(shape is dict or issubclass(shape, msgspec.Struct) for shape in scalars) else []
    parts += ["a list"] if {list, tuple} & scalars else []
    return " or ".join(parts)


def _kind_of(value: Any) -> str:
    return "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else f"`{value}`"
