"""Evaluates a guard for one call and explores every path that unknown facts leave possible.

A run that meets an unknown system fact is repeated with the other answer. Facts that only the user or the host can
supply split the evaluation into completions. The method follows forking in symbolic execution (King 1976), for guards
small enough to run in full.
"""

import os
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Literal

from msgspec import Struct

from bylaw.facts.entity import UNSEEN, Fact, FactSource, is_known
from bylaw.facts.unknown import Stuck
from bylaw.guard.language import ALL_TICKS, COMPLETIONS, PATHS
from bylaw.guard.operation import Absent, Failure
from bylaw.guard.parse import Guard
from bylaw.guard.run import NO_ASSUMPTIONS, Assumptions, GuardRun, Hushed, Split, no_such

_GUARDS = os.path.dirname(__file__) + os.sep
_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep

GuardOutcome = Literal["permit", "deny", "undetermined", "failed"]


class Completion(Struct, frozen=True):
    """A guard's result under one assumption about the user's and the host's facts."""

    assume: Assumptions
    """Pass this to `evaluate` to restrict evaluation to this completion."""
    outcome: GuardOutcome
    because: str = ""
    """The text of the denial, the reason and line of a failure, or the limit that was reached."""
    reads: tuple[Fact, ...] = ()
    """System facts in the order of reading, up to the first unknown fact."""
    lacking: tuple[Fact, ...] = ()
    """System facts that the outcome depends on; empty if the outcome is certain."""
    asked: tuple[Fact, ...] = ()
    """User and host facts that were decided by assumption."""
    paths: int = 1
    plain: bool = False
    """Whether the result depends only on known facts that were read. The same values then give the same result."""


class Inquiry(GuardRun):
    """Runs several guards on one call. Each fact is read from the source once."""

    __slots__ = ()

    def knows(self, fact: Fact) -> bool:
        """Whether the source knew a fact that a guard read."""
        return is_known(self.given.get(fact, UNSEEN))

    def ask(
        self, guard: Guard, assume: Assumptions = NO_ASSUMPTIONS, *, coverage: set[int] | None = None
    ) -> tuple[Completion, ...]:
        """Evaluate a guard; return one completion for each relevant state of the user's facts.

        The guard runs once, and again for every other answer to an unknown question.
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
    """Evaluate `guard` for a call of `tool`; return one completion for each relevant state of the user's facts.

    If `source` is the world, pass `seen`, which tells what the agent had seen.
    """
    inquiry = Inquiry(arguments, source, tool=tool, now=now, seen=seen)
    said = inquiry.ask(guard, assume, coverage=coverage)
    inquiry.close()
    return said


def _complete(guard: Guard, function: Callable[..., Any], run: GuardRun, split: Split) -> tuple[Completion, ...]:
    """Return one completion for each state of the user's and host's facts that changes the outcome."""
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
    """Explore all paths of a completion after its first path has run."""
    reads = tuple(run.reads)
    outcomes = {outcome: because}
    limit = ""
    while outcome not in ("stuck", "failed") and len(outcomes) == 1 and _turn(run.decisions, run.position):
        if run.paths == PATHS or run.left < 0:
            limit = f"more than {PATHS} paths" if run.paths == PATHS else f"more than {ALL_TICKS} steps over all paths"
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
    """Flip the last decision that has another branch. Return False if every path was taken."""
    del decisions[used:]
    while decisions and not decisions[-1]:
        decisions.pop()
    if decisions:
        decisions[-1] = False
    return bool(decisions)


def run_path(guard: Guard, function: Callable[..., Any], run: GuardRun) -> tuple[Any, str]:
    """Run the guard along one path. No other function runs guard code."""
    try:
        return function(run)
    except Split:
        raise
    except Stuck as stuck:
        if run.hushed is None:
            return _stuck(guard, run, stuck)
    except Hushed:
        pass
    except Absent as absent:
        if run.hushed is None:
            return "deny", str(absent)
    except Exception as error:
        if is_ours(error):
            raise
        if run.hushed is None:
            line = line_of(error.__traceback__, guard)
            ends = "deny" if run.has_taken_none else "failed"
            return ends, f"{guard.file}:{line}: {reason_of(error)}{_whose(error, guard, run, line)}"
    return "deny", run.hushed or ""


def _stuck(guard: Guard, run: GuardRun, stuck: Stuck) -> tuple[Any, str]:
    try:
        run.check_counted(stuck.unknown.needs)
    except Failure as failure:
        return "failed", f"{guard.file}:{line_of(stuck.__traceback__, guard)}: {failure}"
    run.lack(stuck.unknown.needs)
    return "stuck", ""


def _whose(error: Exception, guard: Guard, run: GuardRun, line: int) -> str:
    """Name the call's arguments on a failing line, with types, if two values were incompatible."""
    if not isinstance(error, TypeError):
        return ""
    named = [name for name in guard.parts_named_at(line) if name in run.admitted]
    told = [f"`{name}` is {_KINDS.get(type(run.admitted[name]).__name__, 'a value')}" for name in named]
    return f" (argument {', '.join(told)})" if told else ""


def is_ours(error: Exception) -> bool:
    """Whether an error is a bug in Bylaw, not the guard's or a badly typed value's."""
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
    """Return the guard's line that raised an error."""
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
    "str": "a text",
    **dict.fromkeys(("int", "float", "Decimal", "Amount"), "a number"),
    "bool": "a boolean",
    "NoneType": "nothing",
    "list": "a list",
    "dict": "a record",
    "date": "a date",
    "datetime": "a time",
    "timedelta": "a duration",
}
"""Python types as messages name them."""


def reason_of(error: Exception) -> str:
    """Return a one-line message. Bylaw's errors stay unchanged; Python's errors are reworded."""
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
            return f"{_KINDS.get(kinds[1], kinds[1])} and {_KINDS.get(kinds[2], kinds[2])} do not go together"
        case _:
            text = " ".join(str(error).split())[:200]
            return text[:1].lower() + text[1:] or type(error).__name__
