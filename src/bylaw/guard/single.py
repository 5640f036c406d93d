"""Compiles single expressions of the guard language in YAML: conditions of rules and effects of writes."""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any, cast

from msgspec import Struct

from bylaw.errors import GuardError
from bylaw.facts.entity import Fact, FactSource
from bylaw.facts.observation import NOTHING
from bylaw.facts.schema import Computed
from bylaw.facts.unknown import Stuck, Unknown
from bylaw.guard.builtin import BuiltIns
from bylaw.guard.evaluate import Inquiry, evaluate, is_ours, reason_of
from bylaw.guard.language import PERMIT, Vocabulary
from bylaw.guard.operation import Absent, Failure, admit
from bylaw.guard.parse import Guard, parse_text, size_fault
from bylaw.guard.run import Split
from bylaw.guard.scope import Scope, Spec
from bylaw.guard.statement import LazyFunction, Statements

NAMES = ("args", "item", "old", "result")
"""Names available in these expressions."""
_NOT_OF_FACTS = ("now", "done", "requested", "provenance")
"""Built-ins whose results may change while all facts stay the same."""


class Condition(Struct, frozen=True):
    """A compiled boolean expression over named records and facts."""

    text: str
    parameters: tuple[str, ...]
    guard: Guard

    @property
    def place(self) -> str:
        """The text's position as `file:line`."""
        return self.guard.place

    def __repr__(self) -> str:
        return f"<predicate {self.text} at {self.place}>"


def compile_condition(
    text: str, *, parameters: tuple[str, ...], vocabulary: Vocabulary, file: str, line: int = 1
) -> Condition:
    """Compile a predicate. Raises GuardError with the first error."""
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
    """Whether the predicate holds; None with the reason if this is unknown."""
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
    """Whether the predicate holds; None if this is unknown or the predicate fails."""
    return judge_predicate(predicate, arguments, source, now=now)[0]


def compile_value(text: str, *, vocabulary: Vocabulary, file: str, line: int = 1) -> Guard:
    """Compile an expression over a call and facts. Raises GuardError with the first error."""
    node = _parsed(text, file, line)
    scope = Scope(file, vocabulary, unavailable=_NOT_OF_FACTS)
    scope.note_nullable(node)
    made = Statements(scope)
    body = ast.copy_location(ast.Return(made.values.expression(node)), node)
    for each in scope.constants.values():
        if isinstance(each, Spec):
            fact = f"{each.entity_name}.{each.field_name}"
            if not each.is_system:
                scope.fault(node, f"no tool shows `{fact}`", "only facts that a tool shows can be shown to the user")
            elif each.field.private:
                scope.fault(node, f"`{fact}` is private", "a card would put it into a message")
    if scope.faults:
        raise scope.faults[0]
    return _guard(node, line, scope, made.compiled(node, [body]))


def compute_value(guard: Guard, arguments: Mapping[str, Any], source: FactSource) -> Computed:
    """Return the value of a compiled expression for one call, or the unknown facts behind it."""
    run = Inquiry(arguments, source)
    run.zone = guard.zone
    run.begin()
    value, lacking, fault = None, dict[Fact, Any](), ""
    try:
        value = guard.function(run)
    except (Stuck, Split) as open:
        lacking.update(open.unknown.needs if isinstance(open, Stuck) else open.variable.needs)
    except Absent as absent:
        fault = str(absent)
    except Exception as error:
        if is_ours(error):
            raise
        fault = reason_of(error)
    for unknown in _unknown_parts(value):
        lacking.update(unknown.needs)
    # A value from one of several possible paths is not known.
    lacking.update(dict.fromkeys((*run.lacking, *run.asked, *run.doubtful)))
    run.close()
    return Computed(None, tuple(lacking)) if lacking else Computed(value, (), fault)


def _unknown_parts(value: Any) -> Iterator[Unknown]:
    """Yield the unknown values inside a value, at any depth."""
    pending = [value]
    for part in pending:
        if isinstance(part, Unknown):
            yield part
        elif isinstance(part, list | tuple):
            pending += cast("Sequence[Any]", part)
        elif isinstance(part, dict):
            pending += cast("dict[str, Any]", part).values()


def _guard(node: ast.expr, line: int, scope: Scope, function: LazyFunction) -> Guard:
    """Return a guard that permits exactly if the predicate is true."""

    def call(run: Any) -> Any:
        return function.made(run, *(run.argument(name) for name in scope.parameters))

    named = ast.arguments([], [ast.arg(name) for name in (scope.call, scope.facts)], None, [], [], None, [])
    stub = ast.FunctionDef("predicate", named, [ast.Expr(node)], [], None)
    stub.lineno = line
    return Guard(stub, scope, LazyFunction(lambda: call))


def compile_expression(text: str, place: str, *, zone: tzinfo | None = None) -> Callable[[Mapping[str, Any]], Any]:
    """Compile an expression over `args`, `item`, `old` and `result`. Raises GuardError with the first error.

    The function returns NOTHING if it fails or needs an unknown value.
    """
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
    """Parse an expression at a line of a file. Raises GuardError with the first error."""
    tree, faults = parse_text(text.strip(), file=file, mode="eval")
    if fault := faults[0] if faults else size_fault(tree, file):
        number = int(fault.place.rpartition(":")[2])
        raise GuardError(fault.message, place=f"{file}:{number + line - 1}", hint=fault.hint)
    ast.increment_lineno(tree, line - 1)
    return tree.body
