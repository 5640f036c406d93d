"""Parses Python code in only one thread at a time.

Up to Python 3.11, `ast.parse` counts its recursion depth across threads, so that concurrent calls can fail.
"""

import ast
import re
import threading
from functools import lru_cache
from typing import Any

_PARSING = threading.Lock()
_LINE = re.compile(r"[^\r\n]*(?:\r\n|[\r\n]|$)")


def parse_python(text: str | bytes, file: str = "<unknown>", mode: str = "exec") -> Any:
    """Parse Python code like `ast.parse`. All other code must call this in place of `ast.parse`."""
    with _PARSING:
        return ast.parse(text, file, mode)


def text_of(source: str, node: ast.stmt) -> str:
    """Return the source code of a node. It is faster than `ast.get_source_segment`, which scans the whole source."""
    assert node.end_lineno is not None
    lines = _lines(source)[node.lineno - 1 : node.end_lineno]
    lines[-1] = lines[-1].encode()[: node.end_col_offset].decode()
    lines[0] = lines[0].encode()[node.col_offset :].decode()
    return "".join(lines)


@lru_cache(maxsize=4)
def _lines(source: str) -> list[str]:
    """Split source code into lines as the parser does: a form feed does not end a line."""
    return _LINE.findall(source)
