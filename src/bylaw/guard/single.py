"""Single expressions of the guard language, as they stand in YAML: the conditions of rules, and what a write makes of a
field."""

import ast
from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from typing import Any

from msgspec import Struct

from bylaw.errors import GuardError
from bylaw.facts.entity import FactSource
from bylaw.facts.path import NOTHING
from bylaw.guard.builtin import BuiltIns
from bylaw.guard.evaluate import evaluate
from bylaw.guard.language import PERMIT, Vocabulary
from bylaw.guard.operation import Failure, admit
from bylaw.guard.parse import Guard, parse_text, size_fault
from bylaw.guard.scope import Scope
from bylaw.guard.statement import LazyFunction, Statements

NAMES = ("args", "item", "old", "result")
"""What is computed from."""


class Condition(Struct, frozen=True):
    """A compiled boolean expression over named records and facts."""

    text: str
    parameters: tuple[str, ...]
    guard: Guard

    @property
    def place(self) -> str:
        """`file:line` of its text."""
        return self.guard.place

    def __repr__(self) -> str:
        return f"<predicate {self.text} at {self.place}>"


def compile_condition(
    text: str, *, parameters: tuple[str, ...], vocabulary: Vocabulary, file: str, line: int = 1
) -> Condition:
    """The predicate that `text` says; raises GuardError with the first fault."""
    node = _parsed(text, file, line)
    scope = Scope(file, vocabulary, call="", parameters=parameters)
    scope.note_nullable(node)
    scope.records = frozenset(parameters)
    made = Statements(scope)
    test = made.values.test(node)
    if scope.faults:
        raise scope.faults[0]
    body = ast.If(test, [ast.Return(scope.constant(PERMIT))], [ast.Return(scope.constant(("deny", "")))])
    function = made.compiled(node, [ast.copy_location(body, node)])
    return Condition(text, parameters, _guard(node, line, scope, function))


def judge_predicate(
    predicate: Condition, arguments: Mapping[str, Any], source: FactSource, *, now: datetime | None = None
) -> tuple[bool | None, str]:
    """Whether the predicate holds, None where that is not known, and then why."""
    completions = evaluate(predicate.guard, arguments, source, now=now)
    outcomes = {completion.outcome for completion in completions}
    absent = [completion.because for completion in completions if completion.outcome == "deny" and completion.because]
    if outcomes == {"permit"}:
        return True, ""
    if outcomes == {"deny"} and not absent:
        return False, ""
    failed = [completion.because for completion in completions if completion.outcome == "failed"]
    needed = dict.fromkeys(fact for completion in completions for fact in (*completion.lacking, *completion.asked))
    return None, (failed or absent or [f"needs {', '.join(map(str, needed))}"])[0]


def evaluate_condition(
    predicate: Condition, arguments: Mapping[str, Any], source: FactSource, *, now: datetime | None = None
) -> bool | None:
    """Whether the predicate holds; None where that is not known or it fails."""
    return judge_predicate(predicate, arguments, source, now=now)[0]


def _guard(node: ast.expr, line: int, scope: Scope, function: LazyFunction) -> Guard:
    """The predicate as a guard: permit for true, deny for false."""

    def call(run: Any) -> Any:
        return function.made(run, *(run.argument(name) for name in scope.parameters))

    stub = ast.FunctionDef("predicate", ast.arguments([], [], None, [], [], None, []), [ast.Expr(node)], [], None)
    stub.lineno = line
    return Guard(stub, scope, LazyFunction(lambda: call))


def compile_expression(text: str, place: str, *, zone: tzinfo | None = None) -> Callable[[Mapping[str, Any]], Any]:
    """What `text` computes of `args`, `item`, `old` and `result`: NOTHING where one it needs is not known, or where it
    fails. Raises GuardError with the first fault."""
    file, _, line = place.rpartition(":")
    node = _parsed(text, file or place, int(line) if line.isdigit() else 1)
    scope = Scope(
        file or place, Vocabulary({}, zone=zone), call="", facts="", parameters=NAMES, unavailable=("now", "done")
    )
    made = Statements(scope)
    body = ast.copy_location(ast.Return(made.values.expression(node)), node)
    if scope.faults:
        raise scope.faults[0]
    function = made.compiled(node, [body])
    used = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} & set(NAMES)

    def compute(given: Mapping[str, Any]) -> Any:
        if any(given[name] is NOTHING for name in used):
            return NOTHING
        values = [given[name] if name in used else None for name in NAMES]
        try:
            return admit(function.made(BuiltIns(zone), *values), zone)
        except (Failure, ArithmeticError, TypeError, ValueError, LookupError, NameError, RecursionError):
            return NOTHING

    return compute


def _parsed(text: str, file: str, line: int) -> ast.expr:
    """The expression that stands at a line of a file; raises GuardError with the first fault."""
    tree, faults = parse_text(text.strip(), file=file, mode="eval")
    if fault := faults[0] if faults else size_fault(tree, file):
        number = int(fault.place.rpartition(":")[2])
        raise GuardError(fault.message, place=f"{file}:{number + line - 1}", hint=fault.hint)
    ast.increment_lineno(tree, line - 1)
    return tree.body
