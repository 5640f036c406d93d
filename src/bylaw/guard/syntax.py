"""Going through a syntax tree, in a fraction of the time that Python's own `ast.walk` takes."""

import ast
from typing import Any

_NONE: list[ast.AST] = []


def children_of(node: ast.AST) -> list[ast.AST]:
    """The parts right below a node."""
    if not node._fields:
        return _NONE
    found: list[ast.AST] = []
    for name in node._fields:
        value: Any = getattr(node, name, None)
        if value.__class__ is list:
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def parts_of(node: ast.AST) -> list[ast.AST]:
    """A node and all below it, level by level; found once, as a guard's own tree is never changed."""
    kept = vars(node)
    parts: list[ast.AST] | None = kept.get("parts")
    if parts is None:
        parts = kept["parts"] = [node]
        for part in parts:
            parts += children_of(part)
    return parts
