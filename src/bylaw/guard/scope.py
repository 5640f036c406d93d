"""What a translation knows while it goes through one function: names, constants, branches, faults."""

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from bylaw.errors import GuardError, meant
from bylaw.guard.language import OF_LOOKUPS, REFUSED, RESERVED, Vocabulary
from bylaw.guard.nullable import parts_compared, variables_compared
from bylaw.guard.syntax import parts_of


class Helper(Struct, frozen=True):
    """A translated function that guards call."""

    kind: str | None
    """The entity that it gives, if it gives a thing."""
    called: Any
    """The function that the compiled code calls."""


class Helpers(Protocol):
    """The functions of a file that its guards call."""

    nodes: Mapping[str, ast.FunctionDef]

    def find(self, scope: "Scope", node: ast.Call, kinds: Sequence[str | None]) -> Helper | None:
        """The one that `node` calls, translated for arguments of these kinds; None where it has faults."""
        ...

    def is_answering(self, name: str) -> bool:
        """Whether that function permits or denies, in place of giving a value."""
        ...


class Scope:
    """The names in force, and what has been found so far; faults are collected, not raised."""

    def __init__(
        self,
        file: str,
        vocabulary: Vocabulary,
        *,
        cover: bool = False,
        call: str = "call",
        facts: str = "facts",
        history: str = "",
        parameters: Sequence[str] = (),
        unavailable: Iterable[str] = (),
    ) -> None:
        self.file = file
        self.vocabulary = vocabulary
        self.cover = cover
        self.faults: list[GuardError] = []
        self.constants: dict[str, Any] = {}
        self.branches: list[tuple[int, str]] = []
        self.parameters = tuple(parameters)
        """Names of the function's own that hold values, as they are given: the records a predicate speaks of."""
        self.kinds: dict[str, str | None] = dict.fromkeys(parameters)
        """Every name of the function; its entity where it stands for a thing."""
        self.sure: set[str] = set(parameters)
        """Names that have a value here whatever path was taken."""
        self.scopes: list[dict[str, str | None]] = []
        """Names of the comprehensions around this expression."""
        self.call, self.facts, self.history = call, facts, history
        """What these are called here; empty where there is none."""
        self.reserved = RESERVED | OF_LOOKUPS if history else RESERVED
        self.unavailable = frozenset(unavailable)
        """Built-ins that have no meaning in this kind of function."""
        self.nullable: frozenset[str] = frozenset()
        """Parts of records that are compared with `None`, and so may be none; and names of loops that are."""
        self.nullable_names: frozenset[str] = frozenset()
        self.records: frozenset[str] = frozenset()
        """Parameters that stand for records of our own making, in which `None` says that there is none."""
        self.looped: set[str] = set()
        """Names that loops have given items of a list."""
        self.helpers: Helpers | None = None
        self.label = ""
        """Says which question is asked, where the same words ask another for things of another kind."""

    def note_nullable(self, node: ast.AST) -> None:
        """Look through a function for what it compares with `None`."""
        parts = parts_of(node)
        self.nullable, self.nullable_names = parts_compared(parts), variables_compared(parts)

    def fault(self, node: ast.AST, message: str, hint: str, *, lacks: str = "") -> ast.expr:
        place = f"{self.file}:{getattr(node, 'lineno', 1)}"
        error = GuardError(message, place=place, hint=hint, lacks=lacks)
        if str(error) not in {str(known) for known in self.faults}:
            self.faults.append(error)
        return ast.Constant(None)

    def refuse(self, node: ast.AST) -> ast.expr:
        name = type(node).__name__
        message, hint = REFUSED.get(
            type(node), (f"`{name}` is not part of the language", "see the guard language page")
        )
        return self.fault(node, message, hint)

    def run(self, method: str, *arguments: ast.expr) -> ast.expr:
        return ast.Call(ast.Attribute(ast.Name("_", ast.Load()), method, ast.Load()), list(arguments), [])

    def constant(self, value: Any) -> ast.expr:
        """A name for an object the compiled code needs."""
        for name, known in self.constants.items():
            if known is value:
                return ast.Name(name, ast.Load())
        name = f"_{len(self.constants)}"
        self.constants[name] = value
        return ast.Name(name, ast.Load())

    def branch(self, node: ast.AST, kind: str) -> int:
        self.branches.append((getattr(node, "lineno", 0), kind))
        return len(self.branches) - 1

    def kind(self, name: str) -> str | None:
        """The entity that `name` stands for, where it stands for a thing."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return self.kinds.get(name)

    def is_of_ours(self, node: ast.expr) -> bool:
        """Whether `node` reads a part of a record of our own making."""
        return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self.records

    def is_local(self, name: str) -> bool:
        """Whether a comprehension gives `name` items of a list."""
        return any(name in scope and scope[name] is None for scope in self.scopes)

    def is_root(self, node: ast.expr, name: str) -> bool:
        shadowed = isinstance(node, ast.Name) and any(node.id in scope for scope in self.scopes)
        return bool(name) and isinstance(node, ast.Name) and node.id == name and not shadowed

    def meant(self, name: str, known: Iterable[str]) -> str:
        return meant(name, known)

    def check_new_name(self, node: ast.AST, name: str) -> None:
        if name in self.reserved or name in (self.call, self.facts, self.history):
            self.fault(node, f"`{name}` has a meaning already", "choose another name")
        elif self.helpers is not None and name in self.helpers.nodes:
            self.fault(node, f"`{name}` is a function that guards share", "choose another name")
        elif name.startswith("_"):
            self.fault(node, f"`{name}` begins with an underscore", "choose another name")
