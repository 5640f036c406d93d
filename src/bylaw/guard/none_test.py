"""The fields of which a pack's code asks whether there is one: its author knows that `null` means none."""

import ast
from collections.abc import Iterable, Sequence

from bylaw.guard.parse import parse_text
from bylaw.guard.syntax import parts_of


def compared_with_none(functions: Iterable[str], expressions: Iterable[str] = ()) -> frozenset[str]:
    """The names of fields that are compared with `None`, at once or under a name given to them; faults are not told."""
    trees = [parse_text(text, file="")[0] for text in functions if "None" in text]
    trees += [parse_text(text.strip(), file="", mode="eval")[0] for text in expressions if "None" in text]
    found: set[str] = set()
    for tree in trees:
        parts = parts_of(tree)
        named = _named(parts)
        for node in parts:
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                if any(map(_is_none, sides)):
                    found.update(name for side in sides for name in _fields(side, named))
    return frozenset(found)


def _named(parts: Sequence[ast.AST]) -> dict[str, set[str]]:
    """By name, the fields that it may stand for."""
    named: dict[str, set[str]] = {}
    for node in parts:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    named.setdefault(target.id, set()).add(node.value.attr)
    return named


def _fields(side: ast.expr, named: dict[str, set[str]]) -> Iterable[str]:
    if isinstance(side, ast.Attribute):
        return (side.attr,)
    return named.get(side.id, ()) if isinstance(side, ast.Name) else ()


def _is_none(side: ast.expr) -> bool:
    if isinstance(side, ast.Set | ast.List | ast.Tuple):
        return any(map(_is_none, side.elts))
    return isinstance(side, ast.Constant) and side.value is None
