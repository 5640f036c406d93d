"""Python text as a syntax tree, for one thread at a time: up to 3.11 the depth of a tree is counted for all threads at
once, and two that are made side by side fail."""

import ast
import threading
from typing import Any

_PARSING = threading.Lock()


def parse_python(text: str | bytes, file: str = "<unknown>", mode: str = "exec") -> Any:
    """As `ast.parse`: the only place where it is called."""
    with _PARSING:
        return ast.parse(text, file, mode)
