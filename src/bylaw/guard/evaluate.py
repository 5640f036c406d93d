"""What a guard says of a call, given what a source knows: every path the unknown facts leave open is looked at.

A run that meets an unknown system fact is repeated with the other answer; what only the user or the host can say
splits the evaluation into completions, inside each of which it is settled. After forking execution in symbolic
execution (King 1976), on guards that are small enough to be run whole.
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
    """What a guard says under one way the user's and the host's facts may be."""

    assume: Assumptions
    """Given back to `evaluate`, it stays inside this completion."""
    outcome: GuardOutcome
    because: str = ""
    """The text of a denial, the reason and line of a failure, the limit that was reached."""
    reads: tuple[Fact, ...] = ()
    """System facts in the order they were read, up to and including the first unknown one."""
    lacking: tuple[Fact, ...] = ()
    """System facts whose values the outcome depends on; empty unless undetermined."""
    asked: tuple[Fact, ...] = ()
    """User and context facts decided by assumption."""
    paths: int = 1
    plain: bool = False
    """It hangs on the facts it read, all of them known, and on nothing else: a source that gives the same values gives
    the same answer."""


class Inquiry(GuardRun):
    """One call put to guards, one after the other, over one source, which is asked for each fact once."""

    __slots__ = ()

    def knows(self, fact: Fact) -> bool:
        """Whether the source had an answer when a guard asked for the fact."""
        return is_known(self.given.get(fact, UNSEEN))

    def ask(
        self, guard: Guard, assume: Assumptions = NO_ASSUMPTIONS, *, coverage: set[int] | None = None
    ) -> tuple[Completion, ...]:
        """What a guard says, one completion for each way the user's facts matter.

        It is run, and run again for every other answer where it meets something unknown.
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
    """What `guard` says of a call of `tool` with `arguments`, one completion for each way the user's facts matter.

    `seen` is given when the source is the world, and tells what the agent had seen.
    """
    inquiry = Inquiry(arguments, source, tool=tool, now=now, seen=seen)
    said = inquiry.ask(guard, assume, coverage=coverage)
    inquiry.close()
    return said


def _complete(guard: Guard, function: Callable[..., Any], run: GuardRun, split: Split) -> tuple[Completion, ...]:
    """One completion for each way the user's and the host's facts lead somewhere else."""
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
    """Every path of one completion, the first of which has just been run."""
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
    """Turns the last decision that can still be turned; False if every path has been taken."""
    del decisions[used:]
    while decisions and not decisions[-1]:
        decisions.pop()
    if decisions:
        decisions[-1] = False
    return bool(decisions)


def run_path(guard: Guard, function: Callable[..., Any], run: GuardRun) -> tuple[Any, str]:
    """Runs the guard along one path. The one place where guard code runs."""
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
    """Of values that do not go together, the arguments of the call that stand at the line, and what they are."""
    if not isinstance(error, TypeError):
        return ""
    named = [name for name in guard.parts_named_at(line) if name in run.admitted]
    told = [f"`{name}` is {_KINDS.get(type(run.admitted[name]).__name__, 'a value')}" for name in named]
    return f" (argument {', '.join(told)})" if told else ""


def is_ours(error: Exception) -> bool:
    """Whether an error is a fault of our own: raised below the guards, and not because a value is not as declared."""
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
    """The line of the guard an error came from."""
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
"""What Python calls kinds of values, in our words."""


def reason_of(error: Exception) -> str:
    """One line for a person: ours as they are, Python's in our words."""
    match error:
        case Failure():
            return str(error)
        case ZeroDivisionError():
            return "division by zero; test for it first"
        case ArithmeticError():
            return "a number or date is out of range"
        case RecursionError() | MemoryError():
            return "values are nested too deep"
        case TypeError() if (kinds := _UNLIKE.search(str(error))) is not None:
            return f"{_KINDS.get(kinds[1], kinds[1])} and {_KINDS.get(kinds[2], kinds[2])} do not go together"
        case _:
            text = " ".join(str(error).split())[:200]
            return text[:1].lower() + text[1:] or type(error).__name__
