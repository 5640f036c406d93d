"""Writes YAML that people can edit. It has no aliases, and any name in the logs is written safely."""

import json
import re
from collections.abc import Callable
from typing import Any, cast

import yaml

_WIDE = 110
_WORD = re.compile(r"[A-Za-z_][\w.-]*")


class _Plain(yaml.SafeDumper):
    """Writes repeated values in full, because packs do not allow aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


class _OneLine(_Plain):
    """Writes every string on one line."""


def _text(dumper: yaml.SafeDumper, data: str) -> yaml.ScalarNode:
    style = '"' if "\n" in data else None
    return cast(Any, dumper).represent_scalar("tag:yaml.org,2002:str", data, style=style)


_OneLine.add_representer(str, _text)


_Quick: Any = type("_Quick", (getattr(yaml, "CSafeDumper", _Plain),), {"ignore_aliases": _Plain.ignore_aliases})
"""The C version of this dumper, which is faster. If PyYAML lacks it, this is the Python version."""


def dump(data: Any) -> str:
    return _quickly(lambda dumper: yaml.dump(data, Dumper=dumper, sort_keys=False, allow_unicode=True, width=_WIDE))


def _quickly(write: Callable[[Any], str]) -> str:
    """Return the output of the fast dumper, unless it has escaped non-ASCII characters that are readable."""
    text = str(write(_Quick))
    return text if text.isascii() and "\\" not in text else str(write(_Plain))


def packed(data: Any) -> str:
    """Return data in the layout that people use: on one line if it fits, otherwise as a block."""
    node: yaml.Node = cast(Any, _Plain)(None, sort_keys=False).represent_data(data)
    _pack(node, at=0, is_section=True, is_file=True)
    return _serialized(node, width=_WIDE)


def _serialized(node: yaml.Node, width: int) -> str:
    return _quickly(lambda dumper: cast(Any, yaml).serialize(node, Dumper=dumper, allow_unicode=True, width=width))


def _pack(node: yaml.Node, at: int, *, is_section: bool = False, is_file: bool = False) -> None:
    """Put a node on one line if it fits.

    Otherwise, do this for each of its parts. Sections of a file, and the entries of lists in sections, are always
    blocks, so that they are easy to find.
    """
    if isinstance(node, yaml.ScalarNode):
        return
    if not is_section and at + _length(node) <= _WIDE:
        cast(Any, node).flow_style = True
        return
    cast(Any, node).flow_style = False
    if isinstance(node, yaml.SequenceNode):
        for each in node.value:
            _pack(each, at + 2, is_section=is_section and isinstance(each, yaml.MappingNode))
    elif isinstance(node, yaml.MappingNode):
        for name, part in node.value:
            column = at + _length(name) + 2
            fits = column + _length(part) <= _WIDE
            inner = column if fits else at + 2 * isinstance(part, yaml.MappingNode)
            _pack(part, inner, is_section=is_file)


def _length(node: yaml.Node) -> int:
    """Return the length of a node if written in brackets on one line.

    If it contains text of several lines, it never fits.
    """
    text = _serialized(yaml.SequenceNode("tag:yaml.org,2002:seq", [node], flow_style=True), width=1 << 30).strip()
    return _WIDE + 1 if "\n" in text else len(text) - 2


def flow(data: Any, width: int = 10_000) -> str:
    """Return data on one line, or on several lines if it is too long."""
    text = yaml.dump(data, Dumper=_OneLine, sort_keys=False, allow_unicode=True, width=width, default_flow_style=True)
    return str(text).removesuffix("\n...\n").strip()


def wrapped(start: str, data: Any) -> str:
    """Return data to be written after a name: on one line, or on several lines if it is too long."""
    one = flow([data])[1:-1]
    if len(start) + len(one) <= _WIDE:
        return start + one
    margin = " " * (len(start) - len(start.lstrip()) + 2)
    first, *rest = flow([data], _WIDE - 8)[1:-1].split("\n")
    return "\n".join([start + first, *(margin + line.strip() for line in rest)])


def word(text: str) -> str:
    """Return a name, quoted if YAML needs this on one line."""
    return text if _WORD.fullmatch(text) and text not in ("true", "false", "null") else json.dumps(text)


def remark(text: str) -> str:
    """Return text for a YAML comment, as one line of printable characters."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())
