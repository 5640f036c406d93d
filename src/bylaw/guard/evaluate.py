"""Evaluates a guard for one call on every possible path, given the unknown facts.

If a condition depends on an unknown system fact, the run is repeated for each possible answer. For facts that only the
user or host can supply, the evaluation splits into completions, one for each relevant combination of values. The method
follows forking in symbolic execution (King 1976), with guards small enough to run in full. Single expressions in YAML
(conditions of rules, effects of writes) are also compiled here.
"""

import ast
import os
import re
from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from types import TracebackType
from typing import Any, Literal

from msgspec import Struct

from bylaw.errors import GuardError
from bylaw.facts.entity import UNSEEN, Fact, FactSource, is_known
from bylaw.facts.observation import NOTHING
from bylaw.facts.schema import Computed
from bylaw.facts.unknown import Stuck, gathered
from bylaw.guard.builtin import BuiltIns
from bylaw.guard.language import ALL_TICKS, COMPLETIONS, PATHS, PERMIT, Vocabulary
from bylaw.guard.operation import Absent, Failure, admit
from bylaw.guard.parse import Guard, parse_text, size_fault
from bylaw.guard.run import NO_ASSUMPTIONS, Assumptions, GuardRun, Split, UnknownInDenial, no_such
from bylaw.guard.scope import Scope, Spec
from bylaw.guard.statement import LazyFunction, Statements
from bylaw.trace.recorded_value import values_inside

_GUARDS = os.path.dirname(__file__) + os.sep
_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep

GuardOutcome = Literal["permit", "deny", "undetermined", "failed"]


class Completion(Struct, frozen=True):
    """The result of a guard under one set of assumptions about the facts that only the user or host can supply."""

    assume: Assumptions
    """The assumptions of this completion. Pass them to `evaluate` to evaluate only this completion."""
    outcome: GuardOutcome
    because: str = ""
    """The text of the denial, the reason and line of the failure, or the limit that was exceeded."""
    reads: tuple[Fact, ...] = ()
    """System facts in reading order, up to the first unknown fact."""
    lacking: tuple[Fact, ...] = ()
    """System facts on which the outcome depends. Empty if the outcome is certain."""
    asked: tuple[Fact, ...] = ()
    """User and host facts whose values are assumed."""
    paths: int = 1
    plain: bool = False
    """Whether the result depends only on known facts, so that equal values always give the same result."""


class Inquiry(GuardRun):
    """Runs several guards on one call. Each fact is read from the source only once."""

    __slots__ = ()

    def knows(self, fact: Fact) -> bool:
        return is_known(self.given.get(fact, UNSEEN))

    def ask(
        self, guard: Guard, assume: Assumptions = NO_ASSUMPTIONS, *, coverage: set[int] | None = None
    ) -> tuple[Completion, ...]:
        """Evaluate a guard. Return one completion for each relevant combination of the user's facts.

        The guard runs once, and once more for each further answer to a question about an unknown fact.
        """
        self.zone = guard.zone
        self.begin(assume, coverage)
        function = guard.function if coverage is None else guard.covering
        try:
            outcome, because = run_path(guard, function, self)
            if not self.decisions and outcome != "stuck" and not self.doubtful:
                asked = tuple(self.asked)
                return (Completion(assume, outcome, because, tuple(self.reads), (), asked, 1, not self.is_open),)
            return (_explore(guard, function, self, outcome, because),)
        except Split as split:
            return _complete(guard, function, self, split)


def evaluate(
    guard: Guard,
    arguments: Mapping[str, Any],
    source: FactSource,
    *,
    tool: str = "",
    now: datetime | None = None,
    assume: Assumptions = NO_ASSUMPTIONS,
    seen: Callable[[Fact], bool] | None = None,
    coverage: set[int] | None = None,
) -> tuple[Completion, ...]:
    """Evaluate `guard` for a call to `tool`. Return one completion for each relevant combination of the user's facts.

    If `source` is ground truth, `seen` says whether the agent had seen a fact.
    """
    inquiry = Inquiry(arguments, source, tool=tool, now=now, seen=seen)
    said = inquiry.ask(guard, assume, coverage=coverage)
    inquiry.close()
    return said


def _complete(guard: Guard, function: Callable[..., Any], run: GuardRun, split: Split) -> tuple[Completion, ...]:
    start = run.assumptions
    pending = [start.narrowed(split.variable, split.rest), start.narrowed(split.variable, split.region)]
    found: list[Completion] = []
    asked: dict[Fact, None] = {}
    while pending:
        run.complete(pending.pop())
        run.restart()
        try:
            outcome, because = run_path(guard, function, run)
            found.append(_explore(guard, function, run, outcome, because))
        except Split as further:
            asked.update(dict.fromkeys(further.variable.needs))
            pending.append(run.assumptions.narrowed(further.variable, further.rest))
            pending.append(run.assumptions.narrowed(further.variable, further.region))
        if len(found) + len(pending) > COMPLETIONS or run.left < 0:
            because = f"depends on the user's facts in more than {COMPLETIONS} ways"
            lacking = tuple(dict.fromkeys(fact for one in found for fact in one.lacking))
            reads = max((one.reads for one in found), key=len, default=tuple(run.reads))
            return (Completion(start, "undetermined", because, reads, lacking, tuple(asked), len(found)),)
    return tuple(found)


def _explore(guard: Guard, function: Callable[..., Any], run: GuardRun, outcome: str, because: str) -> Completion:
    reads = tuple(run.reads)
    outcomes = {outcome: because}
    limit = ""
    while outcome not in ("stuck", "failed") and len(outcomes) == 1 and _turn(run.decisions, run.position):
        if run.paths == PATHS or run.left < 0:
            limit = f"has more than {PATHS} paths" if run.paths == PATHS else f"takes more than {ALL_TICKS} steps"
            break
        run.restart()
        outcome, because = run_path(guard, function, run)
        outcomes.setdefault(outcome, because)
        run.paths += 1
    for fact, thing in run.doubtful.items():
        run.lacking.setdefault(fact)
        if "deny" not in outcomes:
            outcomes["deny"] = no_such(*thing)
    result: GuardOutcome
    if "failed" in outcomes:
        result, because = "failed", outcomes["failed"]
    elif "stuck" in outcomes or len(outcomes) > 1 or limit:
        result, because = "undetermined", limit
    else:
        ((only, because),) = outcomes.items()
        result = "permit" if only == "permit" else "deny"
    lacking = tuple(run.lacking) if result == "undetermined" else ()
    return Completion(run.assumptions, result, because, reads, lacking, tuple(run.asked), run.paths)


def _turn(decisions: list[bool], used: int) -> bool:
    """Flip the last decision that has an untried branch. Return False if every path has been run."""
    del decisions[used:]
    while decisions and not decisions[-1]:
        decisions.pop()
    if decisions:
        decisions[-1] = False
    return bool(decisions)


def run_path(guard: Guard, function: Callable[..., Any], run: GuardRun) -> tuple[Any, str]:
    """Run the guard along one path. Guard code is run only by this function."""
    try:
        return function(run)
    except Split:
        raise
    except Stuck as stuck:
        if run.denial_fallback is None:
            return _stuck(guard, run, stuck)
    except UnknownInDenial:
        pass
    except Absent as absent:
        if run.denial_fallback is None:
            return "deny", str(absent)
    except Exception as error:
        if is_ours(error):
            raise
        if run.denial_fallback is None:
            line = line_of(error.__traceback__, guard)
            ends = "deny" if run.has_taken_none else "failed"
            return ends, f"{guard.file}:{line}: {reason_of(error)}{_whose(error, guard, run, line)}"
    return "deny", run.denial_fallback or ""


def _stuck(guard: Guard, run: GuardRun, stuck: Stuck) -> tuple[Any, str]:
    try:
        run.check_counted(stuck.unknown.needs)
    except Failure as failure:
        return "failed", f"{guard.file}:{line_of(stuck.__traceback__, guard)}: {failure}"
    run.lack(stuck.unknown.needs)
    return "stuck", ""


def _whose(error: Exception, guard: Guard, run: GuardRun, line: int) -> str:
    """Describe the types of the arguments on the failing line, for an error about two incompatible values."""
    if not isinstance(error, TypeError):
        return ""
    named = [name for name in guard.parts_named_at(line) if name in run.admitted]
    told = [f"`{name}` is {_KINDS.get(type(run.admitted[name]).__name__, 'a value')}" for name in named]
    return f" (argument {', '.join(told)})" if told else ""


def is_ours(error: Exception) -> bool:
    """Whether an error is a bug in Bylaw, rather than an error in the guard or a value of the wrong type."""
    if isinstance(error, Failure | ValueError | ArithmeticError | RecursionError | MemoryError):
        return False
    last = ""
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        last = file if file.startswith(_PACKAGE) else last
        trace = trace.tb_next
    return bool(last) and not last.startswith(_GUARDS)


def line_of(trace: TracebackType | None, guard: Guard) -> int:
    """Return the line in the guard that raised an error."""
    line = guard.line
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == guard.file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


_UNLIKE = re.compile(
    r"(?:between instances of|unsupported operand type\(s\) for .*:) '(?:\w+\.)*(\w+)' and '(?:\w+\.)*(\w+)'"
)
_KINDS = {
    "str": "text",
    **dict.fromkeys(("int", "float", "Decimal", "Amount"), "a number"),
    "bool": "a boolean",
    "NoneType": "None",
    "list": "a list",
    "dict": "a record",
    "date": "a date",
    "datetime": "a time",
    "timedelta": "a duration",
}
"""The names of Python types, as messages use them."""


def reason_of(error: Exception) -> str:
    """Return an error's message on one line. Errors from Python are reworded, and errors from Bylaw are not."""
    match error:
        case Failure():
            return str(error)
        case ZeroDivisionError():
            return "division by zero; test for it first"
        case ArithmeticError():
            return "a number or date is out of range"
        case RecursionError() | MemoryError():
            return "values are nested too deeply"
        case TypeError() if (kinds := _UNLIKE.search(str(error))) is not None:
            verb = "compare" if "between" in str(error) else "combine"
            return f"cannot {verb} {_KINDS.get(kinds[1], kinds[1])} with {_KINDS.get(kinds[2], kinds[2])}"
        case _:
            text = " ".join(str(error).split())[:200]
            return text[:1].lower() + text[1:] or type(error).__name__


NAMES = ("args", "item", "old", "result")
_NOT_OF_FACTS = ("now", "done", "requested", "provenance")
"""Built-ins whose results may differ even if all facts are the same."""


class Condition(Struct, frozen=True):
    text: str
    parameters: tuple[str, ...]
    guard: Guard

    @property
    def place(self) -> str:
        """The position of the expression as `file:line`."""
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
    """Return whether the predicate holds. If this is unknown, return None and the reason."""
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
    """Return whether the predicate holds. None if this is unknown or the predicate fails."""
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
                scope.fault(node, f"`{fact}` is private", "a card would show the private fact in a message")
    if scope.faults:
        raise scope.faults[0]
    return _guard(node, line, scope, made.compiled(node, [body]))


def compute_value(guard: Guard, arguments: Mapping[str, Any], source: FactSource) -> Computed:
    """Return the value of a compiled expression for one call, or the unknown facts on which the value depends."""
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
    lacking.update(gathered(values_inside(value)))
    # If several paths are possible, the value is unknown, because each path may give a different one.
    lacking.update(dict.fromkeys((*run.lacking, *run.asked, *run.doubtful)))
    run.close()
    return Computed(None, tuple(lacking)) if lacking else Computed(value, (), fault)


def _guard(node: ast.expr, line: int, scope: Scope, function: LazyFunction) -> Guard:
    def call(run: Any) -> Any:
        return function.made(run, *(run.argument(name) for name in scope.parameters))

    named = ast.arguments([], [ast.arg(name) for name in (scope.call, scope.facts)], None, [], [], None, [])
    stub = ast.FunctionDef("predicate", named, [ast.Expr(node)], [], None)
    stub.lineno = line
    return Guard(stub, scope, LazyFunction(lambda: call))


def compile_expression(text: str, place: str, *, zone: tzinfo | None = None) -> Callable[[Mapping[str, Any]], Any]:
    """Compile an expression over `args`, `item`, `old` and `result`. Raises GuardError with the first error.

    The compiled function returns NOTHING if it fails or needs an unknown value.
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
    """Parse an expression from a line of a file. Raises GuardError with the first error."""
    tree, faults = parse_text(text.strip(), file=file, mode="eval")
    if fault := faults[0] if faults else size_fault(tree, file):
        number = int(fault.place.rpartition(":")[2])
        raise GuardError(fault.message, place=f"{file}:{number + line - 1}", hint=fault.hint)
    ast.increment_lineno(tree, line - 1)
    return tree.body
