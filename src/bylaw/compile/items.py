"""Converts a pack's files to items (policies, tools, entities, cases, functions) and back.

An item is identified by its name, in whichever file it is. In an edited file, all other lines stay unchanged.
"""

import ast
from collections.abc import Iterator
from typing import Any, cast

import msgspec
import yaml
from msgspec import Struct

from bylaw.compile.guards import functions_of
from bylaw.errors import UsageError
from bylaw.policy.python import parse_python
from bylaw.policy.yaml import LOADER, YamlError, read_yaml
from bylaw.scan.written import packed

Key = tuple[str, ...]
"""`(guards, NAME)`, `(cases, POLICY: NOTE)`, or the file, its section and the name in that section."""
Items = dict[Key, Any]

_ANYWHERE = ("guards", "lookups", "cases")
"""Folders in which any file may contain an item."""
_LISTS = {"policies.yaml": ("policies",), "rules.yaml": ("rules", "limits")}


def read_items(path: str, text: str) -> Items:
    """Return the items of one file. Raises an error with the place if it cannot be read."""
    folder = path.split("/")[0]
    if path.endswith(".py"):
        try:
            return {(folder, name): code.strip() for name, code in functions_of(text).items()}
        except SyntaxError as error:
            hint = "correct it, then run the same command again"
            raise UsageError(f"not Python: {error.msg}", place=f"{path}:{error.lineno}", hint=hint) from None
    found: Items = {}
    for section, value in read_yaml(text, file=path).data.items():
        for name, part in entries(value).items():
            found[key_of(path, section, name)] = part
    return found


def key_of(path: str, section: str, name: str) -> Key:
    folder = path.split("/")[0]
    if folder in _ANYWHERE:
        return (folder, name or path)
    return (path, section, name) if name else (path, section)


def entries(value: Any) -> dict[str, Any]:
    """Return a section's entries by name. A section without names is one unnamed entry."""
    listed = cast(list[Any], value) if isinstance(value, list) else [None]
    if isinstance(value, dict):
        return cast(dict[str, Any], value)
    return named(listed) if all(isinstance(each, dict) for each in listed) else {"": value}


def named(listed: list[Any]) -> dict[str, Any]:
    """Return the members of a list by identifying name."""
    found: dict[str, Any] = {}
    for each in listed:
        name, count = _name(each), 1
        while (unique := name if count == 1 else f"{name} ({count})") in found:
            count += 1
        found[unique] = each
    return found


def _name(member: Any) -> str:
    record = cast(dict[str, Any], member) if isinstance(member, dict) else {}
    if "note" in record:
        of = record.get("policy") or record.get("rule")
        return f"{of}: {record['note']}" if of else str(record["note"])
    return str(record["id"]) if "id" in record else msgspec.json.encode(member, order="sorted").decode()


class _Chunk(Struct):
    """Lines of a file: an item, a section's head (named `*`), or text in between."""

    key: Key | None
    text: str


def edited(path: str, text: str, made: str, wanted: Items) -> str:
    """Return a file's text with these items, each from `text` if unchanged, or else from `made`."""
    try:
        found = _edited(path, text, made, wanted)
        if read_items(path, found) == wanted:
            return found
    except (YamlError, yaml.YAMLError, UsageError):
        pass
    return _whole(path, wanted)


def _edited(path: str, text: str, made: str, wanted: Items) -> str:
    mine, known = read_items(path, text), read_items(path, made)
    fresh = {chunk.key: chunk.text for chunk in _chunks(path, made) if chunk.key is not None}
    chunks = list(_chunks(path, text))
    kept: list[_Chunk] = []
    for chunk in chunks:
        key = chunk.key
        if key is not None and key[-1] != "*" and (key not in wanted or wanted[key] != mine[key]):
            if key not in wanted:
                continue
            instead = fresh[key] if wanted[key] == known.get(key) and key in fresh else _packed(path, key, wanted[key])
            remarks = [line for line in chunk.text.splitlines(keepends=True) if line.lstrip().startswith("#")]
            chunk = _Chunk(key, "".join(line for line in remarks if line not in instead) + instead)
        kept.append(chunk)
    at = -1
    for chunk in _chunks(path, made):
        places = [number for number, each in enumerate(kept) if each.key == chunk.key]
        is_head = chunk.key is not None and chunk.key[-1] == "*"
        if chunk.key is None:
            continue
        if places:
            at = places[0]
        elif is_head or (chunk.key in wanted and chunk.key not in mine):
            new = (
                chunk.text
                if is_head or wanted[chunk.key] == known[chunk.key]
                else _packed(path, chunk.key, wanted[chunk.key])
            )
            at = len(kept) if is_head else at + 1
            kept.insert(at, _Chunk(chunk.key, ("\n\n" if path.endswith(".py") and at else "") + new))
    return "".join(_ended(chunk.text) for chunk in kept)


def _ended(text: str) -> str:
    return text if text.endswith("\n") or not text else f"{text}\n"


def _chunks(path: str, text: str) -> Iterator[_Chunk]:
    """Yield the chunks of a file, in whole lines and in order."""
    lines = text.splitlines(keepends=True)
    starts = list(_functions(path, text) if path.endswith(".py") else _sections(path, text))
    place = 0
    for number, (start, end, key) in enumerate(starts):
        end = end or (starts[number + 1][0] if number + 1 < len(starts) else len(lines))
        if start < place:
            raise yaml.YAMLError("two items on one line")
        if path.endswith(".yaml"):
            while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
                end -= 1
        if start > place:
            yield _Chunk(None, "".join(lines[place:start]))
        yield _Chunk(key, "".join(lines[start:end]))
        place = end
    if place < len(lines):
        yield _Chunk(None, "".join(lines[place:]))


def _functions(path: str, text: str) -> Iterator[tuple[int, int, Key]]:
    for node in parse_python(text).body:
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            yield first - 1, node.end_lineno or node.lineno, (path.split("/")[0], node.name)


def _sections(path: str, text: str) -> Iterator[tuple[int, int, Key]]:
    """Yield where each item of a YAML file begins. A section on one line is a single item."""
    root: Any = cast(Any, yaml).compose(text, Loader=LOADER)
    data = read_yaml(text, file=path).data
    if isinstance(root, yaml.SequenceNode):
        for name, node in zip(entries(data[""]), root.value, strict=True):
            yield node.start_mark.line, 0, key_of(path, "", name)
        return
    for section, node in root.value if root is not None else ():
        names = entries(data[section.value])
        line = section.start_mark.line
        if "" in names or not names:
            yield line, 0, key_of(path, section.value, "")
            continue
        if node.flow_style or node.start_mark.line == line:
            raise yaml.YAMLError("a section on one line")
        yield line, 0, (path, section.value, "*")
        for name, each in zip(names, node.value, strict=True):
            first = each[0] if isinstance(node, yaml.MappingNode) else each
            yield first.start_mark.line, 0, key_of(path, section.value, name)


def _packed(path: str, key: Key, value: Any) -> str:
    """Return one item as the compiler writes it."""
    if path.endswith(".py"):
        return f"{value}\n"
    text = _whole(path, {key: value})
    return text.split("\n", 1)[1] if len(key) == 3 else text


def _whole(path: str, wanted: Items) -> str:
    """Return a file with only these items."""
    if path.endswith(".py"):
        return "\n\n\n".join(wanted.values()) + "\n"
    if path.startswith("cases/"):
        return packed(list(wanted.values()))
    data: dict[str, Any] = {}
    for key, value in wanted.items():
        if len(key) == 2:
            data[key[1]] = value
        elif key[1] in _LISTS.get(path, ()):
            data.setdefault(key[1], []).append(value)
        else:
            data.setdefault(key[1], {})[key[2]] = value
    return packed(data)
