"""Python text as a syntax tree, for one thread at a time: up to 3.11 the depth of a tree is counted for all threads at
once, and two that are made side by side fail."""

import ast
import re
import threading
from functools import lru_cache
from typing import Any

_PARSING = threading.Lock()
_LINE = re.compile(r"[^\r\n]*(?:\r\n|[\r\n]|$)")


def parse_python(text: str | bytes, file: str = "<unknown>", mode: str = "exec") -> Any:
    """As `ast.parse`: the only place where it is called."""
    with _PARSING:
        return ast.parse(text, file, mode)


def text_of(source: str, node: ast.stmt) -> str:
    """As `ast.get_source_segment`, which goes through the whole source letter by letter each time."""
    assert node.end_lineno is not None
    lines = _lines(source)[node.lineno - 1 : node.end_lineno]
    lines[-1] = lines[-1].encode()[: node.end_col_offset].decode()
    lines[0] = lines[0].encode()[node.col_offset :].decode()
    return "".join(lines)


@lru_cache(maxsize=4)
def _lines(source: str) -> list[str]:
    """The lines as the parser counts them: a form feed ends none."""
    return _LINE.findall(source)
