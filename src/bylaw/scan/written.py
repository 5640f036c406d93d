"""How YAML is written for people to correct: plain, unabridged, and safe whatever names the logs hold."""

import json
import re
from typing import Any

import yaml

_WORD = re.compile(r"[A-Za-z_][\w.-]*")


class _Plain(yaml.SafeDumper):
    """Writes every repeated value out: packs allow no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def dump(data: Any) -> str:
    """Data as a block."""
    return str(yaml.dump(data, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=110))


def flow(data: Any) -> str:
    """Data on one line."""
    text = yaml.dump(data, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=10_000, default_flow_style=True)
    return str(text).removesuffix("\n...\n").strip()


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
