"""Which things code reads that the arguments of the call do not name: found through other facts, or by a fixed key."""

import ast
from collections.abc import Iterator, Mapping, Sequence

_OF_ACT = "act.arguments"
"""What a predicate calls the arguments; in a guard `act` is a name like any other."""


def unnamed_kinds(parts: Sequence[ast.AST], shared: Mapping[str, ast.FunctionDef]) -> frozenset[str]:
    """The kinds of things that are read by anything but arguments as they stand in the call; `parts` are those of a
    function and of the shared ones that it calls."""
    named = _named(list(_bindings(parts, shared)))
    return frozenset(
        kind
        for node in parts
        if isinstance(node, ast.Call)
        for kind, keys in _reads(node)
        if not keys or not all(_is_argument(key, named) for key in keys)
    )


def _reads(node: ast.Call) -> Iterator[tuple[str, list[ast.expr]]]:
    """The kind that a call reads things of, with what their key is made of: nothing where they are searched for."""
    match node.func:
        case ast.Attribute(value=ast.Name(id="facts"), attr=kind):
            yield kind, [*node.args, *(keyword.value for keyword in node.keywords)]
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="facts"), attr=kind), attr="seen"):
            yield kind, []
        case _:
            pass


def _is_argument(node: ast.expr, named: frozenset[str]) -> bool:
    """Whether a value stands in the arguments just so; what is made of them need not."""
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


def _named(bindings: Sequence[tuple[str, ast.expr | None]]) -> frozenset[str]:
    """The names that stand for arguments only. One name in two functions counts as one."""
    named = frozenset(name for name, _ in bindings)
    named |= frozenset[str]() if "act" in named else {_OF_ACT}
    while others := {name for name, value in bindings if value is None or not _is_argument(value, named)} & named:
        named -= others
    return named


def _bindings(parts: Sequence[ast.AST], shared: Mapping[str, ast.FunctionDef]) -> Iterator[tuple[str, ast.expr | None]]:
    """Every name that is given a value, with what the value is or is an item of; None for anything else."""
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
