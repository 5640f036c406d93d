"""The three stages' sets as rows, in the shape that TRL and ms-swift read: `messages`, and `tools` as JSON text.

Assistant messages are what is learned. Stage 1 has the policy in the system message, and answers only; stage 2 has
thoughts and no policy; `answers` has neither, to tell what the thoughts add; `rl` has turns to be tried and rewarded.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from bylaw.align.lesson import Lesson, LessonSeries, messages_of, written
from bylaw.align.prompt import PolicyPlace, pack_named, system_message, tool_schemas
from bylaw.errors import UsageError

SetName = Literal["stage1", "stage2", "answers"]
Row = dict[str, Any]


class Shape(Struct, frozen=True):
    """What a row of a supervised set shows."""

    policy: PolicyPlace
    thoughts: bool


SHAPES: dict[SetName, Shape] = {
    "stage1": Shape("context", thoughts=False),
    "stage2": Shape("none", thoughts=True),
    "answers": Shape("none", thoughts=False),
}


@cache
def tools_text(pack: str) -> str:
    return msgspec.json.encode(tool_schemas(pack)).decode()


def conversation_row(
    pack: str, talk: LessonSeries, shape: Shape, *, document: str = "", override: tuple[str, str] | None = None
) -> Row:
    """A whole conversation, of which the assistant's messages are learned; under an `override`, if one is given."""
    system = system_message(pack, shape.policy, override, document=document)
    messages = messages_of(system, talk.lessons, thoughts=shape.thoughts)
    return {"messages": messages, "tools": tools_text(pack), "id": talk.id}


def turn_row(pack: str, talk: LessonSeries, lesson: Lesson) -> Row:
    """One turn to be tried: what stands before it, and all that its rewards need."""
    prompt = messages_of(system_message(pack, "none"), talk.lessons, thoughts=True, upto=lesson.turn)
    policies = pack_named(pack).policies
    expected: Row = {"text": lesson.answer}
    if lesson.call is not None:
        expected = {"tool": lesson.call[0], "arguments": lesson.call[1]}
    return {
        "prompt": prompt,
        "tools": tools_text(pack),
        "task": talk.id,
        "turn": lesson.turn,
        "purpose": lesson.purpose,
        "expected": expected,
        "required": list(lesson.required),
        "policies": {id: policies[id].definition for id in lesson.required},
        "slots": msgspec.to_builtins(lesson.slots),
        "gold": written(lesson),
        "events": msgspec.json.encode(lesson.before).decode(),
    }


def turn_rows(
    pack: str, talks: Sequence[LessonSeries], count: int, *, seed: int = 0, for_judge: bool = False
) -> list[Row]:
    """`count` turns drawn from some conversations, in the order they stand.

    A text that nothing can be checked by is left out, unless a judge is to mark it.
    """
    turns = [(talk, lesson) for talk in talks for lesson in talk.lessons if for_judge or is_graded(lesson)]
    drawn = sorted(random.Random(seed).sample(range(len(turns)), min(count, len(turns))))
    return [turn_row(pack, *turns[place]) for place in drawn]


def is_graded(lesson: Lesson) -> bool:
    """Whether another turn in its place can be told right from wrong without a model: a call, or a text with slots."""
    return lesson.call is not None or bool(lesson.slots)


def write_rows(path: Path, rows: Iterable[Row]) -> int:
    """Write rows as JSON lines; how many."""
    count = 0
    with path.open("wb") as stream:
        for row in rows:
            stream.write(msgspec.json.encode(row) + b"\n")
            count += 1
    return count


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a file of JSON lines."""
    with path.open("rb") as stream:
        for line in stream:
            yield msgspec.json.decode(line)


NESTED = ("expected", "policies", "slots")
"""Columns whose shape differs from row to row: JSON text in Parquet."""


def write_parquet(out: Path) -> list[Path]:
    """A Parquet file beside every set of a folder."""
    try:
        table: Any = import_module("pyarrow").Table
        write: Any = import_module("pyarrow.parquet").write_table
    except ModuleNotFoundError:
        raise UsageError("Parquet needs pyarrow", hint="install `bylaw[parquet]`, or leave out --parquet") from None
    written: list[Path] = []
    for file in sorted(out.glob("*.jsonl")):
        rows = [
            {name: msgspec.json.encode(value).decode() if name in NESTED else value for name, value in row.items()}
            for row in read_rows(file)
        ]
        write(table.from_pylist(rows), file.with_suffix(".parquet"))
        written.append(file.with_suffix(".parquet"))
    return written
