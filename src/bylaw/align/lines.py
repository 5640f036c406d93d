"""Implements `bylaw align score`: reads turns or answers as JSON lines and writes one reward per line."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, TypeVar

import msgspec
from msgspec import Struct

from bylaw.align.grader import Grader, gold_of
from bylaw.align.reward import PAPER, Count, Judged, Reward, Switches, Text, ToolCall, Turn, score
from bylaw.engine.verdict import Verdict
from bylaw.errors import BylawError, RecordError


class Line(Struct, frozen=True):
    """One input line. Its fields show whether it contains a turn or a text."""

    required: frozenset[str]
    recalled: frozenset[str]
    hallucinated: Count
    thought_words: Count
    format_ok: bool
    expected: dict[str, Any]
    predicted: dict[str, Any]
    verdict: Verdict | None = None


_decoder = msgspec.json.Decoder(Line)
_encoder = msgspec.json.Encoder()
_Words = TypeVar("_Words", Judged, Text)


def read_turn(line: bytes, place: str) -> Turn:
    """Read a turn from a line of JSON. Raises RecordError with the reason."""
    try:
        found = _decoder.decode(line)
        return Turn(
            found.required,
            found.recalled,
            found.hallucinated,
            found.thought_words,
            found.format_ok,
            _side(found.expected, "expected", "judge", Judged),
            _side(found.predicted, "predicted", "text", Text),
            found.verdict,
        )
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RecordError(f"not a turn: {_plain(error)}", place=place) from None
    except RecursionError:
        raise RecordError("not a turn: nested too deeply", place=place) from None


def _side(found: dict[str, Any], name: str, words: str, kind: type[_Words]) -> ToolCall | _Words:
    """Return the call in this part of the line, or the value that represents a text."""
    if ("tool" in found) == (words in found):
        many = "both" if words in found else "neither"
        raise msgspec.ValidationError(
            f"{name} has {many} of `tool` and `{words}`, but must have exactly one - at `$.{name}`"
        )
    try:
        return msgspec.convert(found, ToolCall if "tool" in found else kind)
    except msgspec.ValidationError as error:
        why = str(error)
        raise msgspec.ValidationError(
            why.replace("`$", f"`$.{name}") if "`$" in why else f"{why} - at `$.{name}`"
        ) from None


def _plain(error: Exception) -> str:
    why = str(error)
    return why[:1].lower() + why[1:] if why[1:2].islower() else why


def score_lines(stdin: BinaryIO, stdout: BinaryIO, switches: Switches = PAPER) -> int:
    """Score every line. Return the exit status, which is 3 if any line failed."""
    return each_line(stdin, stdout, lambda line, number, place: score(read_turn(line, place), switches))


def each_line(stdin: BinaryIO, stdout: BinaryIO, work: Callable[[bytes, int, str], Reward]) -> int:
    """Write the result for each line, computed from the line, its number and its location. Return the exit status: 3 if
    any line failed.

    For a bad line, the output line has an `error`, so that output and input stay aligned, and a message goes to stderr.
    """
    status = 0
    for number, line in enumerate(stdin, start=1):
        answer: Reward | dict[str, str]
        try:
            answer = work(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line, number, f"<stdin>:{number}")
        except BylawError as error:
            status = 3
            answer = {"error": str(error)}
            print(f"bylaw: {error.code} {error}", file=sys.stderr)
        stdout.write(_encoder.encode(answer) + b"\n")
    stdout.flush()
    return status


Row = dict[str, Any]


class Answer(Struct, frozen=True, forbid_unknown_fields=True):
    """An output and its row. The default row is the one with the same line number."""

    answer: str
    row: int | None = None
    """The line number of the row, counted from 1."""
    task: str | None = None
    turn: int | None = None
    """The number of the turn, if `task` is given."""


def score_answers(stdin: BinaryIO, stdout: BinaryIO, rows: Sequence[Row], grader: Grader) -> int:
    """Score every answer. Return the exit status, which is 3 if any answer failed."""
    places = {(str(row.get("task")), row.get("turn")): row for row in rows}

    def scored(line: bytes, number: int, place: str) -> Reward:
        said = _read(line, place)
        return grader.grade(said.answer, gold_of(_row(said, number, rows, places, place)))

    return each_line(stdin, stdout, scored)


def _read(line: bytes, place: str) -> Answer:
    try:
        return msgspec.json.decode(line, type=Answer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = 'a line is {"answer": "...", "row": 1}'
        raise RecordError(f"not an answer: {error}", place=place, hint=hint) from None


def _row(said: Answer, number: int, rows: Sequence[Row], places: dict[tuple[str, Any], Row], place: str) -> Row:
    if said.task is not None:
        found = places.get((said.task, said.turn))
        if found is None:
            raise RecordError(f"there is no row of task `{said.task}`, turn {said.turn}", place=place)
        return found
    at = said.row if said.row is not None else number
    if not 1 <= at <= len(rows):
        raise RecordError(f"there is no row {at}; there are {len(rows)}", place=place)
    return rows[at - 1]
