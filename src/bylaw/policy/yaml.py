"""YAML as pack authors expect it, with the line of every value.

Only `true` and `false` are booleans (so `yes` is a word), dates stay text, so do numbers that would not come out
as they went in (`007`, twenty digits), and duplicate keys, anchors and aliases are faults.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import yaml

from bylaw.errors import BylawError

Place = tuple[str | int, ...]

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)$")
_NUMBER = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*([eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)|\.[0-9]+([eE][-+]?[0-9]+)?)$")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "~": None, "": None}
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEEPEST = 40
_LARGEST = 1_000_000


class YamlError(BylawError):
    """A YAML file of a pack does not read."""

    code = "BY402"


class Located:
    """A YAML file's data, and where each value of it stands."""

    def __init__(self, file: str, data: Any, places: dict[Place, str]) -> None:
        self.file = file
        self.data: dict[str, Any] = cast(dict[str, Any], data) if isinstance(data, dict) else {}
        self._places = places

    def place(self, *path: str | int) -> str:
        """`file:line` of the value at `path`, or of its nearest parent."""
        at: Place = path
        while at and at not in self._places:
            at = at[:-1]
        return self._places.get(at, self.file)

    def with_data(self, data: dict[str, Any]) -> "Located":
        """The same file with what was understood of it."""
        return Located(self.file, data, self._places)

    def over(self, base: "Located") -> "Located":
        """This file laid over `base`: sections merge by name, lists of records by `id`."""
        data, places = dict(base.data), dict(base._places)
        for name, section in self.data.items():
            below = data.get(name)
            if isinstance(section, dict) and isinstance(below, dict):
                data[name] = {**cast(dict[str, Any], below), **cast(dict[str, Any], section)}
                moved = {at: at for at in self._places if at[:1] == (name,)}
            elif isinstance(section, list) and isinstance(below, list):
                own, kept = cast(list[Any], section), cast(list[Any], below)
                ids = {_id(record): index for index, record in enumerate(kept) if _id(record)}
                merged, positions = list(kept), dict[int, int]()
                for index, record in enumerate(own):
                    at = ids.get(_id(record), len(merged))
                    merged[at : at + 1] = [record]
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


def _id(record: Any) -> str:
    return str(cast(dict[str, Any], record).get("id", "")) if isinstance(record, dict) else ""


def read_yaml(text: str, *, file: str) -> Located:
    """Parse `text`; raises YamlError with its place."""
    if len(text) > _LARGEST:
        hint = f"keep it under {_LARGEST:,}; split it"
        raise YamlError(f"the file has {len(text):,} characters", place=file, hint=hint)
    places: dict[Place, str] = {}
    reader: Any = yaml
    try:
        _check_events(reader.parse(text, Loader=_LOADER), file)
        node = reader.compose(text, Loader=_LOADER)
        data = None if node is None else _build(node, (), places, file)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = mark.line + 1 if mark else 1
        raise YamlError(str(error.problem or "not YAML"), place=f"{file}:{line}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise YamlError(f"not YAML: {type(error).__name__}", place=file) from None
    if data is not None and not isinstance(data, dict):
        data = {"": data}
    return Located(file, data, places)


def _check_events(events: Iterator[yaml.Event], file: str) -> None:
    """Refuses aliases and deep nesting before anything is built."""
    depth = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            raise YamlError("aliases (`*name`) are not read here", place=file, hint="write it out")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST + 1:
                mark = event.start_mark
                raise YamlError("nested too deeply", place=f"{file}:{mark.line + 1}" if mark else file)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def read_yaml_file(path: Path, *, file: str = "") -> Located:
    """Parse the file at `path`."""
    name = file or path.name
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise YamlError("not UTF-8 text", place=name) from None
    return read_yaml(text, file=name)


def _build(node: yaml.Node, path: Place, places: dict[Place, str], file: str) -> Any:
    line = node.start_mark.line + 1
    places.setdefault(path, f"{file}:{line}")
    if len(path) > _DEEPEST:
        raise YamlError("nested too deeply", place=f"{file}:{line}")
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return [_build(item, (*path, index), places, file) for index, item in enumerate(node.value)]
    built: dict[str, Any] = {}
    for key_node, value_node in _pairs(node):
        key = str(key_node.value)
        if key in built:
            raise YamlError(f"`{key}` stands twice", place=f"{file}:{key_node.start_mark.line + 1}")
        places[(*path, key)] = f"{file}:{key_node.start_mark.line + 1}"
        built[key] = _build(value_node, (*path, key), places, file)
    return built


def _pairs(node: yaml.Node) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(problem="a key must be a plain word", problem_mark=key.start_mark)
        yield key, value


def _scalar(node: yaml.ScalarNode) -> Any:
    text: str = node.value
    if node.style in ("'", '"', "|", ">"):
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.match(text) and len(text) < 19:
        return int(text)
    if _NUMBER.match(text):
        return float(text)
    return text
