"""The state for translating one function, and the translation of reads of facts and arguments.

For example: `facts.Reservation(call.reservation_id).cabin`.
"""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from msgspec import Struct

from bylaw.errors import GuardError, meant
from bylaw.facts.entity import EXISTS, Entity, Field, Origin
from bylaw.guard.language import (
    ANSWERS,
    HELPERS,
    OF_LOOKUPS,
    REFUSED,
    RESERVED,
    Vocabulary,
    named_once,
    parts_compared,
    parts_of,
    variables_compared,
)


class Helper(Struct, frozen=True):
    kind: str | None
    """The entity that the function returns, if any."""
    called: Any


class FileHelpers:
    """The shared functions that a guard may call. Each is translated on first use."""

    def __init__(
        self, nodes: Mapping[str, ast.FunctionDef], files: Mapping[str, str], translate: "TranslateHelper"
    ) -> None:
        self.nodes = nodes
        self._translate = translate
        self.files = files
        """The file of each function outside the guard's own file."""
        self.used: set[str] = set()
        self._made: dict[tuple[str, tuple[str | None, ...]], Helper | None] = {}
        self._open: list[str] = []

    def find(self, scope: "Scope", node: ast.Call, kinds: Sequence[str | None]) -> Helper | None:
        """Return the function that `node` calls, translated for arguments of these kinds. None if the function has
        errors.
        """
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        self.used.add(name)
        if name in self._open:
            scope.fault(node, f"`{name}` calls itself", "loop over a list with `for`")
            return None
        known = (name, tuple(kinds))
        if known not in self._made:
            if len(self._made) == HELPERS:
                scope.fault(node, f"a guard calls more than {HELPERS} functions", "split the policy")
                return None
            self._open.append(name)
            self._made[known] = self._translate(scope, self.nodes[name], kinds)
            self._open.pop()
        return self._made[known]

    def is_answering(self, name: str) -> bool:
        """Whether the function permits or denies instead of returning a value."""
        seen: set[str] = set()
        pending = [name]
        while pending:
            found = pending.pop()
            if found in ANSWERS:
                return True
            if found in self.nodes and found not in seen:
                seen.add(found)
                pending.extend(_returned(self.nodes[found]))
        return False


def _returned(node: ast.FunctionDef) -> Iterator[str]:
    ways: list[ast.expr | None] = [each.value for each in ast.walk(node) if isinstance(each, ast.Return)]
    for way in ways:
        if isinstance(way, ast.IfExp):
            ways += [way.body, way.orelse]
        elif isinstance(way, ast.Call) and isinstance(way.func, ast.Name):
            yield way.func.id


TranslateHelper = Callable[["Scope", ast.FunctionDef, Sequence[str | None]], Helper | None]
"""Translates a function for arguments of these kinds."""


class Scope:
    """The names in scope and the errors so far. Errors are collected, not raised."""

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
        self.branches: list[tuple[str, int, int, str]] = []
        self.parameters = tuple(parameters)
        """Parameters with ordinary values: the records that a predicate reads."""
        self.kinds: dict[str, str | None] = dict.fromkeys(parameters)
        """All variables in the function, each with the name of the entity that it holds, or None."""
        self.sure: set[str] = set(parameters)
        """Variables that are assigned on every path up to this point."""
        self.scopes: list[dict[str, str | None]] = []
        self.call, self.facts, self.history = call, facts, history
        """The names of these parameters in the function. Empty if the function does not have the parameter."""
        self.reserved = RESERVED | OF_LOOKUPS if history else RESERVED
        self.unavailable = frozenset(unavailable)
        """Built-ins that a function of this kind may not use."""
        self.nullable: frozenset[str] = frozenset()
        """Fields of records that may be None, because the function compares them with `None`."""
        self.nullable_names: frozenset[str] = frozenset()
        """Loop variables that may be None."""
        self.aliases: dict[str, ast.expr] = {}
        """Variables that are assigned exactly once, each with its value."""
        self.records: frozenset[str] = frozenset()
        """Parameters that contain records built by Bylaw. In such a record, `None` means absent."""
        self.looped: set[str] = set()
        self.helpers: FileHelpers | None = None
        self.label = ""
        """Distinguishes questions with the same text about different entities."""

    def note_nullable(self, node: ast.AST) -> None:
        parts = parts_of(node)
        self.nullable, self.nullable_names = parts_compared(parts), variables_compared(parts)
        self.aliases = named_once(parts)

    def fault(self, node: ast.AST, message: str, hint: str, *, lacks: str = "") -> ast.expr:
        place = f"{self.file}:{getattr(node, 'lineno', 1)}"
        error = GuardError(message, place=place, hint=hint, lacks=lacks)
        if str(error) not in {str(known) for known in self.faults}:
            self.faults.append(error)
        return ast.Constant(None)

    def refuse(self, node: ast.AST) -> ast.expr:
        name = type(node).__name__
        message, hint = REFUSED.get(
            type(node), (f"`{name}` is not part of the language", "write it with `if`, `for` and the built-ins")
        )
        return self.fault(node, message, hint)

    def run(self, method: str, *arguments: ast.expr) -> ast.expr:
        return ast.Call(ast.Attribute(ast.Name("_", ast.Load()), method, ast.Load()), list(arguments), [])

    def constant(self, value: Any) -> ast.expr:
        """Return a name for an object that compiled code needs."""
        for name, known in self.constants.items():
            if known is value:
                return ast.Name(name, ast.Load())
        name = f"_{len(self.constants)}"
        self.constants[name] = value
        return ast.Name(name, ast.Load())

    def branch(self, node: ast.AST, kind: str) -> int:
        self.branches.append((self.file, getattr(node, "lineno", 0), getattr(node, "col_offset", 0), kind))
        return len(self.branches) - 1

    def kind(self, name: str) -> str | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return self.kinds.get(name)

    def is_of_ours(self, node: ast.expr) -> bool:
        """Whether `node` reads a field of a record built by Bylaw."""
        return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self.records

    def is_local(self, name: str) -> bool:
        return any(name in scope and scope[name] is None for scope in self.scopes)

    def is_root(self, node: ast.expr, name: str) -> bool:
        shadowed = isinstance(node, ast.Name) and any(node.id in scope for scope in self.scopes)
        return bool(name) and isinstance(node, ast.Name) and node.id == name and not shadowed

    def meant(self, name: str, known: Iterable[str]) -> str:
        return meant(name, known)

    def check_new_name(self, node: ast.AST, name: str) -> None:
        if name in self.reserved or name in (self.call, self.facts, self.history):
            self.fault(node, f"`{name}` is already defined", "choose another name")
        elif self.helpers is not None and name in self.helpers.nodes:
            self.fault(node, f"`{name}` is a shared function", "choose another name")
        elif name.startswith("_"):
            self.fault(node, f"`{name}` begins with an underscore", "choose another name")


Translate = Callable[[ast.expr], ast.expr]


class Spec:
    """A field of an entity, as named in compiled code."""

    __slots__ = ("entity", "entity_name", "field", "field_name", "is_system", "origin")

    def __init__(self, entity: Entity, field: Field) -> None:
        self.entity = entity
        self.field = field
        self.entity_name = entity.name
        self.field_name = field.name
        # A fact established in the conversation counts as a system fact, because tools show it.
        self.origin: Origin = (
            "context" if entity.name == "context" else "system" if field.origin == "conversation" else field.origin
        )
        self.is_system = self.origin == "system"


class Reading:
    """Translates reads of facts, arguments and records. `expression` translates their parts."""

    def __init__(self, scope: Scope, expression: Translate) -> None:
        self.scope = scope
        self.fault, self.run, self.meant = self.scope.fault, self.scope.run, self.scope.meant
        self.expression = expression

    def entity(self, node: ast.expr) -> Entity | None:
        if isinstance(node, ast.Attribute) and self.scope.is_root(node.value, self.scope.facts):
            found = self.scope.vocabulary.entities.get(node.attr)
            if found is None:
                meant = self.meant(node.attr, self.scope.vocabulary.entities)
                self.fault(node, f"there is no entity `{node.attr}`", meant, lacks=f"entity {node.attr}")
            return found
        return None

    def thing(self, node: ast.expr) -> tuple[Entity, ast.expr] | None:
        """Return the entity and key of an expression, or None if it is not an entity."""
        if isinstance(node, ast.Name):
            entity = self.scope.kind(node.id)
            if entity is None:
                return None
            if node.id not in self.scope.sure and not any(node.id in scope for scope in self.scope.scopes):
                self.fault(node, f"`{node.id}` may have no value here", "assign a value before the `if` or `for`")
            return self.scope.vocabulary.entities[entity], ast.copy_location(ast.Name(node.id, ast.Load()), node)
        if isinstance(node, ast.Call):
            if (given := self.is_thing(node)) is not None and isinstance(node.func, ast.Name):
                return self.scope.vocabulary.entities[given], ast.copy_location(self.helped(node), node)
            entity = self.entity(node.func)
            return None if entity is None else (entity, ast.copy_location(self.key(node, entity), node))
        entity = self.entity(node)
        if entity is None:
            return None
        if entity.key:
            keys = ", ".join(entity.key)
            self.fault(node, f"`{entity.name}` needs its key", f"write `facts.{entity.name}({keys})`")
        return entity, ast.copy_location(ast.Tuple([], ast.Load()), node)

    def is_thing(self, node: ast.expr) -> str | None:
        """Return the name of the entity if an assigned expression is an entity. The expression is not translated."""
        func = node.func if isinstance(node, ast.Call) else node
        if (
            isinstance(func, ast.Attribute)
            and self.scope.is_root(func.value, self.scope.facts)
            and func.attr in self.scope.vocabulary.entities
        ):
            return func.attr
        if isinstance(node, ast.Name):
            return self.scope.kind(node.id)
        helper = self.helper(node) if self.is_helped(node) else None
        return helper.kind if helper is not None else None

    def is_helped(self, node: ast.expr) -> TypeGuard[ast.Call]:
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and self.scope.helpers is not None
            and node.func.id in self.scope.helpers.nodes
        )

    def is_answering(self, node: ast.expr) -> bool:
        helpers = self.scope.helpers
        return (
            self.is_helped(node)
            and isinstance(node.func, ast.Name)
            and helpers is not None
            and helpers.is_answering(node.func.id)
        )

    def helper(self, node: ast.Call) -> Helper | None:
        """Return the shared function that is called, translated for these arguments. None after an error.

        `call` and `facts` must be passed under these names, and keep their meaning in the function.
        """
        assert self.scope.helpers is not None
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        parameters = [argument.arg for argument in self.scope.helpers.nodes[name].args.args]
        if node.keywords or len(node.args) != len(parameters):
            hint = f"write {name}({', '.join(parameters)})"
            self.fault(node, f"`{name}` takes {len(parameters)} positional arguments", hint)
            return None
        for parameter, argument in zip(parameters, node.args, strict=True):
            given = next(
                (root for root in (self.scope.call, self.scope.facts) if self.scope.is_root(argument, root)), ""
            )
            if given != (parameter if parameter in ("call", "facts") else ""):
                hint = "pass `call` and `facts` under their own names"
                self.fault(node, f"`{name}` takes `{parameter}` here", hint)
                return None
        return self.scope.helpers.find(self.scope, node, [self.is_thing(value) for value in self.given(node)])

    def given(self, node: ast.Call) -> list[ast.expr]:
        """Return the arguments of a shared function without `call` and `facts`."""
        return [
            value
            for value in node.args
            if not (self.scope.is_root(value, self.scope.call) or self.scope.is_root(value, self.scope.facts))
        ]

    def helped(self, node: ast.Call) -> ast.expr:
        found = self.helper(node)
        things = [(value, self.thing(value)) for value in self.given(node)]
        values = [thing[1] if thing else self.expression(value) for value, thing in things]
        if found is None:
            return ast.Constant(None)
        return ast.Call(self.scope.constant(found.called), [ast.Name("_", ast.Load()), *values], [])

    def key(self, node: ast.Call, entity: Entity) -> ast.expr:
        parts: dict[str, ast.expr] = {}
        if len(node.args) > len(entity.key):
            self.fault(
                node, f"`{entity.name}` has {len(entity.key)} key parts", f"pass {', '.join(entity.key) or 'none'}"
            )
        parts.update(zip(entity.key, node.args, strict=False))
        for keyword in node.keywords:
            if keyword.arg not in entity.key or keyword.arg in parts:
                keys = f"pass its key, {', '.join(entity.key) or 'none'}"
                search = f"to search, write any(... for x in facts.{entity.name}.seen({keyword.arg}=...))"
                hint = f"{keys}; {search}" if keyword.arg in entity.fields else keys
                return self.fault(node, f"`{keyword.arg}` is not a key of `{entity.name}`", hint)
            parts[keyword.arg] = keyword.value
        missing = [name for name in entity.key if name not in parts]
        if missing:
            return self.fault(
                node, f"`{entity.name}` needs its key", f"pass {', '.join(f'`{name}`' for name in missing)}"
            )
        values = [self.expression(parts[name]) for name in entity.key]
        return self.run("key_of", ast.Constant(entity.name), ast.Tuple(values, ast.Load()))

    def field_of(self, node: ast.expr) -> Field | None:
        """Return the field that `node` is certain to read, directly or through a variable."""
        if isinstance(node, ast.Name):
            value = self.scope.aliases.get(node.id)
            return self.field_of(value) if isinstance(value, ast.Attribute) else None
        if not isinstance(node, ast.Attribute):
            return None
        entity = self.is_thing(node.value)
        return self.scope.vocabulary.entities[entity].fields.get(node.attr) if entity else None

    def attribute(self, node: ast.Attribute) -> ast.expr:
        name = node.attr
        if name.startswith("_"):
            return self.fault(node, f"`{name}` begins with an underscore", "read a declared field")
        if self.scope.is_root(node.value, self.scope.call):
            if name == "tool":
                return self.run("tool_name")
            if name not in self.scope.vocabulary.arguments:
                return self.fault(
                    node,
                    f"no tool in scope has the argument `{name}`",
                    self.meant(name, self.scope.vocabulary.arguments),
                    lacks=f"argument {name}",
                )
            return self.run("argument", ast.Constant(name))
        if self.scope.is_root(node.value, self.scope.facts):
            if self.entity(node) is None:
                return ast.Constant(None)
            return self.fault(node, f"`facts.{name}` is not a value", "read one of its fields")
        thing = self.thing(node.value)
        if thing is not None:
            entity, key = thing
            if name in entity.key:
                return self.key_part(entity, key, name)
            field = EXISTS if name == "exists" else entity.fields.get(name)
            if field is None:
                return self.fault(
                    node,
                    f"`{entity.name}` has no field `{name}`",
                    self.meant(name, [*entity.fields, "exists"]),
                    lacks=f"field {entity.name}.{name}",
                )
            return self.run("read", self.spec(entity, field), key)
        part = self.run("part", self.expression(node.value), ast.Constant(name))
        return part if self.scope.is_of_ours(node) else self.present(part, name)

    def present(self, part: ast.expr, name: str) -> ast.expr:
        """Translate a field of a record. It must not be `null`, unless the function compares it with None."""
        return part if name in self.scope.nullable else self.run("present", part, ast.Constant(name))

    def key_part(self, entity: Entity, key: ast.expr, name: str) -> ast.expr:
        """Translate a part of an entity's key. Translating it needs no look-up."""
        part = self.run("key_part", key, ast.Constant(entity.key.index(name)), ast.Constant(len(entity.key) > 1))
        declared = entity.fields.get(name)
        match declared.type if declared else "string":
            case "date":
                return self.run("do_date", part)
            case "datetime":
                return self.run("do_time", part)
            case _:
                return part

    def spec(self, entity: Entity, field: Field) -> ast.expr:
        for name, known in self.scope.constants.items():
            if isinstance(known, Spec) and known.entity is entity and known.field is field:
                return ast.Name(name, ast.Load())
        return self.scope.constant(Spec(entity, field))

    def optional_argument(self, node: ast.Call) -> ast.expr:
        name = node.args[1]
        if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
            return self.fault(
                node, "get(call, ...) needs the argument's name as text", 'write get(call, "name", default)'
            )
        if name.value not in self.scope.vocabulary.arguments:
            return self.fault(
                node,
                f"no tool in scope has the argument `{name.value}`",
                self.meant(name.value, self.scope.vocabulary.arguments),
                lacks=f"argument {name.value}",
            )
        default = self.expression(node.args[2]) if len(node.args) == 3 else ast.Constant(None)
        return self.run("optional", name, default)

    def named(self, keywords: Iterable[ast.keyword]) -> ast.expr:
        pairs = [(keyword.arg, self.expression(keyword.value)) for keyword in keywords]
        return ast.Dict([ast.Constant(name) for name, _ in pairs], [value for _, value in pairs])
