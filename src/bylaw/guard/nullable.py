"""The names that code compares with `None`: its author knows that there may be none."""

import ast
from collections.abc import Callable, Iterable, Sequence


def fields_compared(parts: Sequence[ast.AST]) -> frozenset[str]:
    """The names after a dot that are compared with `None`, at once or under a name given to them."""
    named = _named(parts, _after_dot)
    return frozenset(name for side in _sides(parts) for name in _names(side, named, _after_dot))


def parts_compared(parts: Sequence[ast.AST]) -> frozenset[str]:
    """The same of parts of records, which `x["name"]` and `get(x, "name")` read too; not of arguments of the call."""
    named = _named(parts, _part)
    return frozenset(name for side in _sides(parts) for name in _names(side, named, _part))


def variables_compared(parts: Sequence[ast.AST]) -> frozenset[str]:
    """The names of the code's own that are compared with `None`."""
    return frozenset(side.id for side in _sides(parts) if isinstance(side, ast.Name))


def _sides(parts: Sequence[ast.AST]) -> Iterable[ast.expr]:
    for node in parts:
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(map(_is_none, sides)):
                yield from sides


_Reader = Callable[[ast.expr], str]


def _named(parts: Sequence[ast.AST], read: _Reader) -> dict[str, set[str]]:
    """By name, the fields that it may stand for."""
    named: dict[str, set[str]] = {}
    for node in parts:
        if isinstance(node, ast.Assign) and (field := read(node.value)):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    named.setdefault(target.id, set()).add(field)
    return named


def _names(side: ast.expr, named: dict[str, set[str]], read: _Reader) -> Iterable[str]:
    if isinstance(side, ast.Name):
        return named.get(side.id, ())
    return filter(None, (read(side),))


def _after_dot(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else ""


def _part(node: ast.expr) -> str:
    match node:
        case (
            ast.Attribute(value=ast.Name(id="call")) | ast.Call(func=ast.Name(id="get"), args=[ast.Name(id="call"), *_])
        ):
            return ""
        case ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str() as name)):
            return name
        case ast.Call(func=ast.Name(id="get"), args=[_, ast.Constant(value=str() as name), *_]):
            return name
        case _:
            return ""


def _is_none(side: ast.expr) -> bool:
    if isinstance(side, ast.Set | ast.List | ast.Tuple):
        return any(map(_is_none, side.elts))
    return isinstance(side, ast.Constant) and side.value is None
