"""Properties of guard code read from its syntax tree: its nodes, the names compared with `None`, and the entities no
argument names.
"""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

_NONE: list[ast.AST] = []


def children_of(node: ast.AST) -> list[ast.AST]:
    """The direct children of a node."""
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
    """A node and all its descendants, level by level; cached, because a guard's tree never changes."""
    kept = vars(node)
    parts: list[ast.AST] | None = kept.get("parts")
    if parts is None:
        parts = kept["parts"] = [node]
        for part in parts:
            parts += children_of(part)
    return parts


def fields_compared(parts: Sequence[ast.AST]) -> frozenset[str]:
    """The attribute names compared with `None`, directly or through a variable."""
    named = _named(parts, _after_dot)
    return frozenset(name for side in _sides(parts) for name in _names(side, named, _after_dot))


def parts_compared(parts: Sequence[ast.AST]) -> frozenset[str]:
    """The parts of records compared with `None`, including `x["name"]` and `get(x, "name")`, but not the call's
    arguments.
    """
    named = _named(parts, _part)
    return frozenset(name for side in _sides(parts) for name in _names(side, named, _part))


def variables_compared(parts: Sequence[ast.AST]) -> frozenset[str]:
    """The variables compared with `None`."""
    return frozenset(side.id for side in _sides(parts) if isinstance(side, ast.Name))


def named_once(parts: Sequence[ast.AST]) -> dict[str, ast.expr]:
    """The variables assigned exactly once, by a plain assignment, with their values."""
    stored: dict[str, int] = {}
    for node in parts:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored[node.id] = stored.get(node.id, 0) + 1
    return {
        target.id: node.value
        for node in parts
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and stored[target.id] == 1
    }


def _sides(parts: Sequence[ast.AST]) -> Iterable[ast.expr]:
    for node in parts:
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(map(_is_none, sides)):
                yield from sides


_Reader = Callable[[ast.expr], str]


def _named(parts: Sequence[ast.AST], read: _Reader) -> dict[str, set[str]]:
    """For each variable, the fields it may refer to."""
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


_OF_ACT = "act.arguments"
"""The arguments in a predicate; in a guard `act` is an ordinary name."""


def unnamed_kinds(parts: Sequence[ast.AST], shared: Mapping[str, ast.FunctionDef]) -> frozenset[str]:
    """The entities read by a key that is not simply an argument of the call.

    `parts` are the nodes of a function and of the shared functions it calls.
    """
    named = _names_of_arguments(list(_bindings(parts, shared)))
    return frozenset(
        kind
        for node in parts
        if isinstance(node, ast.Call)
        for kind, keys in _reads(node)
        if not keys or not all(_is_argument(key, named) for key in keys)
    )


def _reads(node: ast.Call) -> Iterator[tuple[str, list[ast.expr]]]:
    """The entities a call reads, with the parts of their keys; empty for searches."""
    match node.func:
        case ast.Attribute(value=ast.Name(id="facts"), attr=kind):
            yield kind, [*node.args, *(keyword.value for keyword in node.keywords)]
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="facts"), attr=kind), attr="seen"):
            yield kind, []
        case _:
            pass


def _is_argument(node: ast.expr, named: frozenset[str]) -> bool:
    """Whether an expression is an unchanged argument of the call."""
    match node:
        case ast.Name(id=name):
            return name in named
        case ast.Attribute(value=ast.Name(id="call"), attr=name):
            return name != "tool"
        case ast.Attribute(value=ast.Name(id="act"), attr="arguments") if _OF_ACT in named:
            return True
        case ast.Call(func=ast.Name(id="get"), args=[ast.Name(id="call"), _]):
            return True
        case ast.Call(func=ast.Name(id="get"), args=[value, ast.Constant()]):
            return _is_argument(value, named)
        case ast.Attribute(value=value) | ast.Subscript(value=value, slice=ast.Constant(value=str())):
            return _is_argument(value, named)
        case _:
            return False


def _names_of_arguments(bindings: Sequence[tuple[str, ast.expr | None]]) -> frozenset[str]:
    """The variables that only ever hold arguments. The same name in two functions counts as one."""
    named = frozenset(name for name, _ in bindings)
    named |= frozenset[str]() if "act" in named else {_OF_ACT}
    while others := {name for name, value in bindings if value is None or not _is_argument(value, named)} & named:
        named -= others
    return named


def _bindings(parts: Sequence[ast.AST], shared: Mapping[str, ast.FunctionDef]) -> Iterator[tuple[str, ast.expr | None]]:
    """Every assigned variable, with the expression it equals or iterates over; None for anything else."""
    plain: set[int] = set()
    for node in parts:
        match node:
            case ast.Assign(targets=[ast.Name() as target], value=value):
                pass
            case ast.For(target=ast.Name() as target, iter=value):
                pass
            case ast.comprehension(target=ast.Name() as target, iter=value):
                pass
            case ast.Call(func=ast.Name(id=name)) if name in shared:
                yield from zip((each.arg for each in shared[name].args.args), node.args, strict=False)
                continue
            case _:
                continue
        plain.add(id(target))
        yield target.id, value
    for node in parts:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in plain:
            yield node.id, None
