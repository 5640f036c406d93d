"""`bylaw align score --rows`: answers in, one JSON line each; what each is worth beside its row of `rl.jsonl` out."""

from collections.abc import Sequence
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct

from bylaw.align.grader import Grader, gold_of
from bylaw.align.lines import each_line
from bylaw.align.reward import Reward
from bylaw.errors import RecordError

Row = dict[str, Any]


class Answer(Struct, frozen=True, forbid_unknown_fields=True):
    """One line: what was written, and for which row; without a row, for the row that stands on the same line."""

    answer: str
    row: int | None = None
    """Which line of the rows, from 1."""
    task: str | None = None
    turn: int | None = None
    """With `task`, which turn."""


def score_answers(stdin: BinaryIO, stdout: BinaryIO, rows: Sequence[Row], grader: Grader) -> int:
    """Score every answer; the exit status, 3 where one failed. A bad line gives a line with `error`."""
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
