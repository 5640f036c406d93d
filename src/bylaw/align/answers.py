"""`bylaw align score --rows`: answers in, one JSON line each; what each is worth beside its row of `rl.jsonl` out."""

import sys
from collections.abc import Sequence
from typing import Any, BinaryIO, TextIO

import msgspec
from msgspec import Struct

from bylaw.align.grader import Grader, gold_of
from bylaw.align.lines import Failure
from bylaw.align.reward import Reward
from bylaw.errors import BylawError, RecordError

Row = dict[str, Any]


class Answer(Struct, frozen=True, forbid_unknown_fields=True):
    """One line: what was written, and for which row; without a row, for the row that stands on the same line."""

    answer: str
    row: int | None = None
    """Which line of the rows, from 1."""
    task: str | None = None
    turn: int | None = None
    """With `task`, which turn."""


_encoder = msgspec.json.Encoder()


def score_answers(
    stdin: BinaryIO,
    stdout: BinaryIO,
    rows: Sequence[Row],
    grader: Grader,
    *,
    name: str = "<stdin>",
    stderr: TextIO | None = None,
) -> int:
    """Score every answer; the exit status, 3 where one failed. A bad line gives a line with `error`."""
    places = {(str(row.get("task")), row.get("turn")): row for row in rows}
    status = 0
    for number, line in enumerate(stdin, start=1):
        found: Reward | Failure
        try:
            said = _read(line, f"{name}:{number}")
            found = grader.grade(said.answer, gold_of(_row(said, number, rows, places, f"{name}:{number}")))
        except BylawError as error:
            status = 3
            found = Failure(str(error))
            print(f"bylaw: {error.code} {error}", file=stderr or sys.stderr)
        stdout.write(_encoder.encode(found) + b"\n")
    stdout.flush()
    return status


def _read(line: bytes, place: str) -> Answer:
    try:
        return msgspec.json.decode(line.removeprefix(b"\xef\xbb\xbf"), type=Answer)
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
