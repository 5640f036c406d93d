"""The names, methods, limits and error messages of the guard language, which is a subset of Python."""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from msgspec import Struct

from bylaw.facts.entity import Entity

PERMIT = ("permit", "")
ANSWERS = ("permit", "deny")

TICKS = 10_000
"""The maximum number of loop iterations and calls on one path."""
ALL_TICKS = 100_000
"""The maximum number of loop iterations and calls on all paths of one evaluation."""
PATHS = 256
COMPLETIONS = 64
LARGEST = 10**18
SMALLEST = 100
"""The maximum number of decimal places."""
LONGEST = 10_000
"""The maximum length of a string or list."""

SOURCE = 100_000
"""The maximum length of a guard file in characters."""
NODES = 4_000
"""The maximum number of syntax nodes in one function."""
DEPTH = 40
"""The maximum nesting depth of one function."""
HELPERS = 64
"""The maximum number of functions that a guard may call. Each combination of argument kinds counts separately."""
LOOPS = 12
"""The maximum nesting depth of loops. Python allows twenty nested blocks."""
UNKNOWN_TICKS = 4
"""The ticks for reading or deciding an unknown value, because this takes about four times as long as for a known
value.
"""
NODES_PER_TICK = 50
"""The number of syntax nodes in a loop body that count as one tick, so that ticks limit the run time."""


class Vocabulary(Struct, frozen=True):
    """The names that the guards of a pack may use."""

    entities: Mapping[str, Entity]
    arguments: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    declared: Mapping[str, frozenset[str]] | None = None
    texts: frozenset[str] = frozenset()
    """Arguments that are text in all their tools."""
    zone: tzinfo | None = None
    """The time zone in which guards see all times. None means UTC."""


GATHERING = frozenset(("any", "all", "sum", "min", "max", "len", "sorted", "count"))
_OF_ONE = ("len", "any", "all", "sum", "count", "sorted", "abs", "date", "days", "hours", "money")
ARITY: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys((*_OF_ONE, "lower", "strip", "provenance"), (1, 1)),
    **dict.fromkeys(("min", "max"), (1, 20)),
    **dict.fromkeys(("now", "requested"), (0, 0)),
    **dict.fromkeys(("round", "time"), (1, 2)),
    "get": (2, 3),
}
BUILT_INS = frozenset((*ARITY, "done"))
TEXT_METHODS: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(("lower", "upper", "strip", "isdigit", "isalpha"), (0, 0)),
    **dict.fromkeys(("startswith", "endswith"), (1, 1)),
    "split": (0, 1),
}
DATE_METHODS: Mapping[str, tuple[int, int]] = {"weekday": (0, 0), "isoformat": (0, 0)}
DATE_PARTS = frozenset(("year", "month", "day", "hour", "minute", "days"))
LOOPING = frozenset(("range", "zip", "enumerate"))
"""Built-ins allowed only directly after `in` in a `for`."""
RESERVED = BUILT_INS | LOOPING | {"call", "facts", "permit", "deny"}
OF_LOOKUPS = frozenset(("found", "unseen", "history"))
"""Names that are reserved in look-up functions but not in guards."""

INSTEAD: Mapping[str, str] = {
    "datetime": "write now(), date(x), time(x), days(n) or hours(n)",
    "combine": "write time(day, clock)",
    "timedelta": "write days(n) or hours(n)",
    "Decimal": 'write money("19.99")',
    "isinstance": "fields and arguments have their declared types",
    "str": "compare strings directly",
    **dict.fromkeys(("int", "float"), "write money(x) for an amount in text; numbers need no conversion"),
    **dict.fromkeys(("set", "list", "dict", "filter", "map"), "loop over the list, or use any, all, sum, count or len"),
    "hasattr": "use get() for a value that may be missing",
    "getattr": "use get() for a value that may be missing",
}
"""Hints for Python names that the guard language does not have."""
METHODS_INSTEAD: Mapping[str, str] = {
    "get": "use get(record, key, default)",
    "date": "write date(x)",
    "now": "write now()",
    "title": "compare lower(x)",
    "casefold": "compare lower(x)",
    **dict.fromkeys(("items", "keys", "values"), "name the parts of a record, or loop over a list"),
    **dict.fromkeys(("append", "add", "extend"), "use any, all, sum, count or len over the list"),
}
"""Hints for methods that the guard language does not have."""

REFUSED: Mapping[type[ast.AST], tuple[str, str]] = {
    ast.While: ("`while` is not part of the language", "loop over a list with `for`"),
    ast.Try: ("`try` is not part of the language", "use get() for a value that may be missing"),
    ast.TryStar: ("`try` is not part of the language", "use get() for a value that may be missing"),
    ast.With: ("`with` is not part of the language", "remove it"),
    ast.AsyncWith: ("`async` is not part of the language", "remove it"),
    ast.AsyncFor: ("`async` is not part of the language", "use a plain `for`"),
    ast.AsyncFunctionDef: ("`async` is not part of the language", "write `def`"),
    ast.Await: ("`await` is not part of the language", "remove it"),
    ast.Match: ("`match` is not part of the language", "use if/elif/else"),
    ast.FunctionDef: ("a function inside a function is not allowed", "write it at the top of the file"),
    ast.ClassDef: ("`class` is not part of the language", "remove it"),
    ast.Import: ("`import` is not part of the language", "use the built-ins"),
    ast.ImportFrom: ("`import` is not part of the language", "use the built-ins"),
    ast.Global: ("`global` is not part of the language", "assign to a local name"),
    ast.Nonlocal: ("`nonlocal` is not part of the language", "assign to a local name"),
    ast.Delete: ("`del` is not part of the language", "remove it"),
    ast.Raise: ("`raise` is not part of the language", 'write `return deny("why")`'),
    ast.Assert: ("`assert` is not part of the language", 'write `if ...: return deny("why")`'),
    ast.AnnAssign: ("annotations are not part of the language", "write `name = value`"),
    ast.Lambda: ("`lambda` is not part of the language", "write the expression inline"),
    ast.NamedExpr: ("`:=` is not part of the language", "assign on a line of its own"),
    ast.Yield: ("`yield` is not part of the language", "write `return permit()` or `return deny(...)`"),
    ast.YieldFrom: ("`yield` is not part of the language", "write `return permit()` or `return deny(...)`"),
    ast.Starred: ("`*` arguments are not part of the language", "name each argument"),
    ast.JoinedStr: ("f-strings are allowed only in the text of deny()", "compare the parts themselves"),
    ast.DictComp: ("a dict comprehension is not part of the language", "loop over the list"),
    ast.ListComp: (
        "comprehensions are allowed only inside any, all, sum, min, max, len, sorted, count",
        "loop with `for`",
    ),
    ast.GeneratorExp: (
        "comprehensions are allowed only inside any, all, sum, min, max, len, sorted, count",
        "loop with `for`",
    ),
    ast.SetComp: ("set comprehensions are allowed only inside len", "use a list comprehension"),
    ast.Set: ("a set is allowed only on the right of `in`", "write a list"),
    ast.Slice: ("a slice is allowed only in `x[a:b]`", "index one item"),
}

BINARY: Mapping[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.FloorDiv: "divide_floor",
    ast.Mod: "remainder",
}
ORDER: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "equal",
    ast.NotEq: "differ",
    ast.Lt: "less",
    ast.LtE: "at_most",
    ast.Gt: "more",
    ast.GtE: "at_least",
    ast.In: "within",
    ast.NotIn: "without",
}


_NONE: list[ast.AST] = []


def children_of(node: ast.AST) -> list[ast.AST]:
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
    """Return a node and its descendants, level by level. The result is cached, because the tree of a guard never
    changes.
    """
    kept = vars(node)
    parts: list[ast.AST] | None = kept.get("parts")
    if parts is None:
        parts = kept["parts"] = [node]
        for part in parts:
            parts += children_of(part)
    return parts


def fields_compared(parts: Sequence[ast.AST]) -> frozenset[str]:
    """Return the attributes that are compared with `None`, directly or through a variable."""
    return _compared(parts, _after_dot)


def parts_compared(parts: Sequence[ast.AST]) -> frozenset[str]:
    """Return the fields of records, such as `get(x, "name")`, that are compared with `None`. Call arguments are not
    included.
    """
    return _compared(parts, _part)


def variables_compared(parts: Sequence[ast.AST]) -> frozenset[str]:
    return frozenset(side.id for side in _sides(parts) if isinstance(side, ast.Name))


def named_once(parts: Sequence[ast.AST]) -> dict[str, ast.expr]:
    """Return the variables with exactly one assignment, each with its value."""
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


def _compared(parts: Sequence[ast.AST], read: _Reader) -> frozenset[str]:
    """Return the names that `read` finds in operands of comparisons with `None`, or in the values of variables that are
    such operands.
    """
    variables = variables_compared(parts)
    sides = [side for side in _sides(parts) if not isinstance(side, ast.Name)]
    sides += [
        node.value
        for node in parts
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id in variables
    ]
    return frozenset(map(read, sides)) - {""}


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
"""The name of the arguments in a predicate. In a guard, `act` is an ordinary name."""


def unnamed_kinds(parts: Sequence[ast.AST], shared: Mapping[str, ast.FunctionDef]) -> frozenset[str]:
    """Return the entities whose key is not simply an argument of the call.

    `parts` are the nodes of a function and of the shared functions that it calls.
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
    """Yield each entity that a call reads, with the parts of its key. A search has no key parts."""
    match node.func:
        case ast.Attribute(value=ast.Name(id="facts"), attr=kind):
            yield kind, [*node.args, *(keyword.value for keyword in node.keywords)]
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="facts"), attr=kind), attr="seen"):
            yield kind, []
        case _:
            pass


def _is_argument(node: ast.expr, named: frozenset[str]) -> bool:
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
    """Return the variables that contain only arguments. Functions that use the same variable name are treated as
    sharing the variable.
    """
    named = frozenset(name for name, _ in bindings)
    named |= frozenset[str]() if "act" in named else {_OF_ACT}
    while others := {name for name, value in bindings if value is None or not _is_argument(value, named)} & named:
        named -= others
    return named


def _bindings(parts: Sequence[ast.AST], shared: Mapping[str, ast.FunctionDef]) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield every assigned variable with its value or, for a loop variable, its list. None for other assignments."""
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
