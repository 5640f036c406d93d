"""How YAML is written for people to correct: plain, unabridged, and safe whatever names the logs hold."""

import json
import re
from typing import Any, cast

import yaml

_WIDE = 110
_WORD = re.compile(r"[A-Za-z_][\w.-]*")


class _Plain(yaml.SafeDumper):
    """Writes every repeated value out: packs allow no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


class _OneLine(_Plain):
    """Writes no text over several lines of its own."""


def _text(dumper: yaml.SafeDumper, data: str) -> yaml.ScalarNode:
    style = '"' if "\n" in data else None
    return cast(Any, dumper).represent_scalar("tag:yaml.org,2002:str", data, style=style)


_OneLine.add_representer(str, _text)


_Quick: Any = type("_Quick", (getattr(yaml, "CSafeDumper", _Plain),), {"ignore_aliases": _Plain.ignore_aliases})
"""The same in C, where PyYAML has it."""


def dump(data: Any) -> str:
    """Data as a block."""
    text = _block(data, _Quick)
    # Signs outside ASCII are written as escapes by the quick one where a reader wants to see them.
    return text if text.isascii() and "\\" not in text else _block(data, _Plain)


def _block(data: Any, dumper: Any) -> str:
    return str(yaml.dump(data, Dumper=dumper, sort_keys=False, allow_unicode=True, width=110))


def flow(data: Any, width: int = 10_000) -> str:
    """Data on one line, or as many as the width takes."""
    text = yaml.dump(data, Dumper=_OneLine, sort_keys=False, allow_unicode=True, width=width, default_flow_style=True)
    return str(text).removesuffix("\n...\n").strip()


def wrapped(start: str, data: Any) -> str:
    """Data after a name, on one line or, where that would be long, on several."""
    one = flow([data])[1:-1]
    if len(start) + len(one) <= _WIDE:
        return start + one
    margin = " " * (len(start) - len(start.lstrip()) + 2)
    first, *rest = flow([data], _WIDE - 8)[1:-1].split("\n")
    return "\n".join([start + first, *(margin + line.strip() for line in rest)])


def word(text: str) -> str:
    """A name as YAML takes it on one line."""
    return text if _WORD.fullmatch(text) and text not in ("true", "false", "null") else json.dumps(text)


def indent(text: str, by: int) -> str:
    """A block further to the right."""
    return "\n".join(" " * by + line if line else line for line in text.rstrip("\n").split("\n"))


def remark(text: str) -> str:
    """What may stand after a `#`: one line, printable."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())


def switched_off(text: str) -> str:
    """Lines made comments."""
    return "".join(f"# {line}\n" if line else "#\n" for line in text.rstrip("\n").split("\n"))
