"""The subset of Python that guards may use: names, methods, limits, and the messages for everything else."""

import ast
from collections.abc import Mapping
from datetime import tzinfo

from msgspec import Struct

from bylaw.facts.entity import Entity

PERMIT = ("permit", "")
ANSWERS = ("permit", "deny")
"""The calls that end a guard."""

TICKS = 10_000
"""Loop iterations and calls along one path."""
ALL_TICKS = 100_000
"""The same over all paths of one evaluation."""
PATHS = 256
COMPLETIONS = 64
LARGEST = 10**18
SMALLEST = 100
"""Decimal places."""
LONGEST = 10_000
"""Characters of a string, items of a list."""

SOURCE = 100_000
"""Characters of one guard file."""
NODES = 4_000
"""Syntax nodes of one function."""
DEPTH = 40
"""Nesting depth of one function."""
HELPERS = 64
"""Functions one guard may call, counted once for each combination of argument kinds."""
LOOPS = 12
"""Nested loops; Python's own limit is twenty blocks."""
UNKNOWN_TICKS = 4
"""Ticks for reading or deciding something unknown, which takes about that much longer."""
NODES_PER_TICK = 50
"""A larger loop body costs more ticks, so that ticks bound the run time."""


class Vocabulary(Struct, frozen=True):
    """The names available to the guards of one pack."""

    entities: Mapping[str, Entity]
    arguments: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    declared: Mapping[str, frozenset[str]] | None = None
    """The declared arguments of each tool, if they are known."""
    texts: frozenset[str] = frozenset()
    """Arguments that are text in every tool that takes them."""
    zone: tzinfo | None = None
    """The time zone of all times; None for UTC."""


GATHERING = frozenset(("any", "all", "sum", "min", "max", "len", "sorted", "count"))
"""Built-ins that take a comprehension."""
_OF_ONE = ("len", "any", "all", "sum", "count", "sorted", "abs", "date", "time", "days", "hours", "money")
ARITY: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys((*_OF_ONE, "lower", "strip", "provenance"), (1, 1)),
    **dict.fromkeys(("min", "max"), (1, 20)),
    **dict.fromkeys(("now", "requested"), (0, 0)),
    "round": (1, 2),
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
"""Allowed only after the `in` of a `for`."""
RESERVED = BUILT_INS | LOOPING | {"call", "facts", "permit", "deny"}
OF_LOOKUPS = frozenset(("found", "unseen", "history"))
"""Reserved in look-up functions; ordinary names in guards."""

INSTEAD: Mapping[str, str] = {
    "datetime": "write now(), date(x), time(x), days(n) or hours(n)",
    "timedelta": "write days(n) or hours(n)",
    "Decimal": 'write money("19.99")',
    "isinstance": "fields and arguments have their declared types",
    "str": "compare texts directly",
    **dict.fromkeys(("int", "float"), "write money(x) for an amount in a text; numbers need no conversion"),
    **dict.fromkeys(("set", "list", "dict", "filter", "map"), "loop over the list, or use any, all, sum, count or len"),
    "hasattr": "use get() for what may be missing",
    "getattr": "use get() for what may be missing",
}
"""What to write for names of Python that guards do not have."""
METHODS_INSTEAD: Mapping[str, str] = {
    "get": "use get(record, key, default)",
    "date": "write date(x)",
    "now": "write now()",
    "title": "compare lower(x)",
    "casefold": "compare lower(x)",
    **dict.fromkeys(("items", "keys", "values"), "name the parts of a record, or loop over a list"),
    **dict.fromkeys(("append", "add", "extend"), "use any, all, sum, count or len over the list"),
}
"""The same of methods."""

REFUSED: Mapping[type[ast.AST], tuple[str, str]] = {
    ast.While: ("`while` is not part of the language", "loop over a list with `for`"),
    ast.Try: ("`try` is not part of the language", "use get() for what may be missing"),
    ast.TryStar: ("`try` is not part of the language", "use get() for what may be missing"),
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
    ast.Lambda: ("`lambda` is not part of the language", "write the expression in place"),
    ast.NamedExpr: ("`:=` is not part of the language", "assign on a line of its own"),
    ast.Yield: ("`yield` is not part of the language", "write `return permit()` or `return deny(...)`"),
    ast.YieldFrom: ("`yield` is not part of the language", "write `return permit()` or `return deny(...)`"),
    ast.Starred: ("`*` arguments are not part of the language", "name each argument"),
    ast.JoinedStr: ("f-strings are allowed in deny texts only", "compare the parts themselves"),
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
