"""Boolean expressions in the guard language, for rules: true, false, or not known."""

import ast
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bylaw.errors import GuardError
from bylaw.facts.entity import FactSource
from bylaw.guard.evaluate import evaluate
from bylaw.guard.language import PERMIT, Vocabulary
from bylaw.guard.parse import Guard, parse_text, size_fault
from bylaw.guard.scope import Scope
from bylaw.guard.statement import LazyFunction, Statements


class Condition:
    """A compiled boolean expression over named records and facts."""

    __slots__ = ("guard", "parameters", "text")

    def __init__(self, text: str, parameters: tuple[str, ...], guard: Guard) -> None:
        self.text = text
        self.parameters = parameters
        self.guard = guard

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
    tree, faults = parse_text(text.strip(), file=file, mode="eval")
    if faults:
        raise _moved(faults[0], line)
    too_large = size_fault(tree, file)
    if too_large:
        raise _moved(too_large, line)
    ast.increment_lineno(tree, line - 1)
    scope = Scope(file, vocabulary, call="", parameters=parameters)
    scope.note_nullable(tree.body)
    scope.records = frozenset(parameters)
    made = Statements(scope)
    test = made.values.test(tree.body)
    if scope.faults:
        raise scope.faults[0]
    body = ast.If(test, [ast.Return(scope.constant(PERMIT))], [ast.Return(scope.constant(("deny", "")))])
    function = made.compiled(tree.body, [ast.copy_location(body, tree.body)])
    return Condition(text, parameters, _guard(tree.body, line, scope, function))


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


def _moved(fault: GuardError, line: int) -> GuardError:
    """The same fault where the text stands in its file."""
    file, _, number = fault.place.rpartition(":")
    return GuardError(fault.message, place=f"{file}:{int(number) + line - 1}", hint=fault.hint)
