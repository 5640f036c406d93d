"""`bylaw rules eval`: formulas and traces in, one JSON line each; values and verdicts out, one line for every line."""

from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO

import msgspec

from bylaw.errors import BylawError, FormulaError
from bylaw.rule.automaton import StateVerdict
from bylaw.rule.formula import Formula
from bylaw.rule.monitor import Walk
from bylaw.rule.parser import parse
from bylaw.rule.program import program
from bylaw.rule.progression import TooLargeError
from bylaw.rule.semantics import values_of


class EvalQuestion(msgspec.Struct, frozen=True):
    """One input line."""

    formula: str
    trace: list[dict[str, bool | None]]


class EvalAnswer(msgspec.Struct, frozen=True):
    """One output line; None where the completions of unknown predicates disagree."""

    holds: bool | None
    verdict: StateVerdict | None


class LineFailure(msgspec.Struct, frozen=True):
    """The output line for an input line that could not be answered."""

    error: str


_decoder = msgspec.json.Decoder(EvalQuestion)


def evaluate_formula(formula: Formula, trace: Sequence[Mapping[str, bool | None]]) -> EvalAnswer:
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
        return EvalAnswer(values_of(formula, trace)[0], None)
    return EvalAnswer(report.holds, report.verdict)


def answer_lines(stdin: BinaryIO, stdout: BinaryIO, answer: Callable[[bytes], object]) -> int:
    """Answer every line of JSON with one; the exit status, 3 where some line could not be answered."""
    status = 0
    for number, line in enumerate(stdin):
        reply: object
        try:
            # Some editors put a byte order mark before the first line.
            given = line.removeprefix(b"\xef\xbb\xbf") if number == 0 else line
            reply = answer(given) if given.strip() else LineFailure("the line is empty")
        except (msgspec.MsgspecError, UnicodeDecodeError, BylawError) as error:
            reply = LineFailure(str(error))
        except RecursionError:
            reply = LineFailure("the line is nested too deep")
        if isinstance(reply, LineFailure):
            status = 3
        stdout.write(msgspec.json.encode(reply) + b"\n")
        stdout.flush()
    return status


def eval_lines(stdin: BinaryIO, stdout: BinaryIO) -> int:
    """What `bylaw rules eval` does."""

    def answer(line: bytes) -> EvalAnswer:
        question = _decoder.decode(line)
        return evaluate_formula(parse(question.formula), question.trace)

    return answer_lines(stdin, stdout, answer)
