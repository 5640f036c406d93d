"""`bylaw rules eval`: formulas and traces in, one JSON line each; values and verdicts out, one line for every line."""

from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

import msgspec

from bylaw.errors import BylawError, FormulaError
from bylaw.rule.automaton import StateVerdict
from bylaw.rule.formula import Formula
from bylaw.rule.monitor import Walk
from bylaw.rule.parser import parse
from bylaw.rule.program import program
from bylaw.rule.progression import TooLargeError
from bylaw.rule.sweep import sweep


class Question(msgspec.Struct, frozen=True):
    """One input line."""

    formula: str
    trace: list[dict[str, bool | None]]


class Answer(msgspec.Struct, frozen=True):
    """One output line; None where the completions of unknown predicates disagree."""

    holds: bool | None
    verdict: StateVerdict | None


class Failure(msgspec.Struct, frozen=True):
    """The output line for an input line that could not be answered."""

    error: str


_decoder = msgspec.json.Decoder(Question)
_encode = msgspec.json.Encoder().encode


def evaluate(formula: Formula, trace: Sequence[Mapping[str, bool | None]]) -> Answer:
    """A formula at the first step of a whole trace: plain LTL-f, no re-arming."""
    if not trace:
        raise FormulaError("the trace is empty", hint="LTL-f speaks of traces with at least one step")
    try:
        ready = program(formula)
        walk = Walk(ready, ready.pair.plain)
        for step in trace[:-1]:
            walk.move(step)
        _, report = walk.look(trace[-1])
    except TooLargeError:
        return Answer(sweep(formula, trace)[0], None)
    return Answer(report.holds, report.verdict)


def evaluate_line(line: bytes) -> Answer | Failure:
    """The answer to one line of JSON."""
    if not line.strip():
        return Failure("not a question: the line is empty")
    try:
        question = _decoder.decode(line)
        return evaluate(parse(question.formula), question.trace)
    except BylawError as error:
        return Failure(str(error))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Failure(f"not a question: {error}")
    except RecursionError:
        return Failure("not a question: nested too deep")


def lines_of(stdin: BinaryIO) -> Iterator[bytes]:
    """Each line of JSON, without the byte order mark that some editors put before the first."""
    for number, line in enumerate(stdin):
        yield line.removeprefix(b"\xef\xbb\xbf") if number == 0 else line


def eval_lines(stdin: BinaryIO, stdout: BinaryIO) -> int:
    """Answer every line; the exit status, 3 where one failed."""
    status = 0
    for line in lines_of(stdin):
        answer = evaluate_line(line)
        if isinstance(answer, Failure):
            status = 3
        stdout.write(_encode(answer) + b"\n")
        stdout.flush()
    return status
