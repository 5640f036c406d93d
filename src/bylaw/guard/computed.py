"""Expressions of the guard language that compute a value from records alone: what a write makes of a field."""

import ast
from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Any

from bylaw.facts.path import NOTHING
from bylaw.guard.builtin import BuiltIns
from bylaw.guard.language import Vocabulary
from bylaw.guard.operation import Failure, admit
from bylaw.guard.parse import parse_text, size_fault
from bylaw.guard.scope import Scope
from bylaw.guard.statement import Statements

NAMES = ("args", "item", "old", "result")


def compile_expression(text: str, place: str, *, zone: tzinfo | None = None) -> Callable[[Mapping[str, Any]], Any]:
    """What `text` computes of `args`, `item`, `old` and `result`: NOTHING where one it needs is not known, or where it
    fails. Raises GuardError with the first fault."""
    file, _, line = place.rpartition(":")
    tree, faults = parse_text(text.strip(), file=file or place, mode="eval")
    if not faults and (too_large := size_fault(tree, file or place)):
        faults = [too_large]
    if faults:
        raise faults[0]
    ast.increment_lineno(tree, (int(line) if line.isdigit() else 1) - 1)
    scope = Scope(
        file or place, Vocabulary({}, zone=zone), call="", facts="", parameters=NAMES, unavailable=("now", "done")
    )
    made = Statements(scope)
    body = ast.copy_location(ast.Return(made.values.expression(tree.body)), tree.body)
    if scope.faults:
        raise scope.faults[0]
    function = made.compiled(tree.body, [body])
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & set(NAMES)

    def compute(given: Mapping[str, Any]) -> Any:
        if any(given[name] is NOTHING for name in used):
            return NOTHING
        values = [given[name] if name in used else None for name in NAMES]
        try:
            return admit(function.made(BuiltIns(zone), *values), zone)
        except (Failure, ArithmeticError, TypeError, ValueError, LookupError, NameError, RecursionError):
            return NOTHING

    return compute
