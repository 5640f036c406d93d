"""Look-up functions, which search earlier tool results if a mapping cannot describe those results.

They are written in the guard language. `def find_<Entity>_<field>(key, history)` returns `found(value)` or `unseen()`.
"""

import ast
from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Any

from msgspec import Struct

from bylaw.errors import GuardError
from bylaw.facts.entity import EXISTS, UNSEEN, Entity, Field, Key
from bylaw.facts.schema import ShownResults
from bylaw.guard.builtin import BuiltIns
from bylaw.guard.language import Vocabulary
from bylaw.guard.operation import Failure, admit
from bylaw.guard.parse import functions_of
from bylaw.guard.scope import Scope
from bylaw.guard.statement import LazyFunction, Statements


class LookupFunction(Struct, frozen=True):
    entity: Entity
    field: Field
    name: str
    file: str
    line: int
    function: LazyFunction
    zone: tzinfo | None = None

    @property
    def place(self) -> str:
        """The position of the function as `file:line`."""
        return f"{self.file}:{self.line}"

    @property
    def search(self) -> Callable[..., Any]:
        """The compiled function, which takes earlier results and a key."""
        return self.function.made

    def __repr__(self) -> str:
        return f"<look-up {self.name} at {self.place}>"


class _Search(BuiltIns):
    __slots__ = ("history",)

    def __init__(self, history: ShownResults, zone: tzinfo | None) -> None:
        super().__init__(zone)
        self.history = history

    def results(self, tool: Any, match: Mapping[str, Any]) -> list[Any]:
        self.spend(1)
        if tool.__class__ is not str:
            raise Failure("history.results() takes a tool's name")
        return admit([dict(record) for record in self.history.results(tool, match)])

    def found(self, value: Any) -> Any:
        return value

    def unseen(self) -> Any:
        return UNSEEN


def parse_lookups(
    text: str, *, file: str, vocabulary: Vocabulary
) -> tuple[dict[str, LookupFunction], list[GuardError]]:
    """Return the look-up functions in a file, by name, and all errors."""
    functions, faults = functions_of(text, file=file)
    lookups: dict[str, LookupFunction] = {}
    for node in functions:
        target = _target(node, vocabulary)
        if target is None:
            hint = "name it find_<Entity>_<field> after a declared field"
            faults.append(
                GuardError(f"`{node.name}` does not match a declared field", place=f"{file}:{node.lineno}", hint=hint)
            )
            continue
        scope = Scope(
            file, vocabulary, call="", facts="", history="history", parameters=("key",), unavailable=("now", "done")
        )
        function = Statements(scope, ("found", "unseen")).function(node, ("key", "history"))
        faults.extend(scope.faults)
        if function is not None:
            lookups[node.name] = LookupFunction(*target, node.name, file, node.lineno, function, vocabulary.zone)
    return lookups, faults


def run_lookup(lookup: LookupFunction, key: Key, history: ShownResults) -> Any:
    """Return the found value, or UNSEEN. Raises ValueError if the look-up fails or the value is malformed."""
    record = dict(zip(lookup.entity.key, key, strict=True))
    try:
        return lookup.search(_Search(history, lookup.zone), record)
    except (Failure, ArithmeticError, TypeError, LookupError, NameError, RecursionError) as error:
        raise ValueError(f"{lookup.place}: {lookup.name} failed: {error}") from None


def _target(node: ast.FunctionDef, vocabulary: Vocabulary) -> tuple[Entity, Field] | None:
    for entity in vocabulary.entities.values():
        prefix = f"find_{entity.name}_"
        if node.name.startswith(prefix):
            name = node.name.removeprefix(prefix)
            field = EXISTS if name == "exists" else entity.fields.get(name)
            if field is not None:
                return entity, field
    return None
