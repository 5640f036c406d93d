"""The three stages' sets as rows, in the shape that TRL and ms-swift read: `messages`, and `tools` as JSON text.

Assistant messages are what is learned. Stage 1 has the policy in the system message, and answers only; stage 2 has
thoughts and no policy; `answers` has neither, to tell what the thoughts add; `rl` has turns to be tried and rewarded.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from bylaw.align.lesson import Lesson, LessonSeries, messages_of, written
from bylaw.align.prompt import PolicyPlace, pack_named, system_message, tool_schemas
from bylaw.errors import UsageError
from bylaw.pack import Pack

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


def conversation_row(pack: str, talk: LessonSeries, shape: Shape, *, document: str = "") -> Row:
    """A whole conversation, of which the assistant's messages are learned."""
    system = system_message(pack, shape.policy, document=document)
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


def write_parquet(out: Path) -> None:
    """A Parquet file next to every set of a folder."""
    for file in sorted(out.glob("*.jsonl")):
        rows = (
            {name: msgspec.json.encode(value).decode() if name in NESTED else value for name, value in row.items()}
            for row in read_rows(file)
        )
        write_table(file.with_suffix(".parquet"), rows)


def write_table(path: Path, rows: Iterable[Row]) -> None:
    """Write rows as Parquet."""
    try:
        table: Any = import_module("pyarrow").Table
        write: Any = import_module("pyarrow.parquet").write_table
    except ModuleNotFoundError:
        raise UsageError("Parquet needs pyarrow", hint="install `bylaw[parquet]`") from None
    write(table.from_pylist(list(rows)), path)


NAME = "data.json"
SCHEMA = "bylaw.align.data/1"


class SetFile(Struct, frozen=True):
    """One file of rows."""

    rows: int
    sha256: str


class Manifest(Struct, frozen=True):
    """What a folder of sets was made with."""

    schema: str
    pack: str
    """As the command named it."""
    pack_version: str
    pack_digest: str
    command: str
    sets: dict[str, SetFile]


def write_manifest(out: Path, name: str, pack: Pack, command: str, sets: Iterable[str]) -> Manifest:
    """Write it for the sets that lie there."""
    paths = {each: out / f"{each}.jsonl" for each in sets}
    files = {name: SetFile(len(path.read_bytes().splitlines()), digest_of(path)) for name, path in paths.items()}
    found = Manifest(SCHEMA, name, pack.version, pack.digest, command, files)
    (out / NAME).write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return found


def find_manifest(data: Path) -> Manifest | None:
    """The manifest of a folder of sets, or of the folder that a file of rows lies in; None where there is none."""
    path = (data if data.is_dir() else data.parent) / NAME
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except msgspec.DecodeError as error:
        raise UsageError(f"not a manifest: {error}", place=str(path), hint="`bylaw align data` writes it") from None


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


WHAT = {
    "stage1": "tool calling with the policy in the system message; answers only",
    "stage2": "the same conversations without the policy; every turn begins with a thought in `<think>`",
    "answers": "the same conversations without policy and without thoughts",
    "rl": "turns held out from the other sets, to be tried and rewarded",
}


SHAPE = """\
Rows are JSON lines: `messages` as chat messages, `tools` as JSON text. Tools are told in the system message, and a call
is the assistant's text, so train on assistant messages only, and hand no `tools` to a template, which would tell them
again: `bylaw align export` writes the rows as TRL, verl, ms-swift and verifiers load them. Rows of `rl` hold `prompt`,
what was `expected`, the policies `required`, the `slots` that a text must fill, the `gold` turn, and the `events`
before it."""
THOUGHTS = {
    "verified": "Thoughts are put together from what the guards found at each turn; no model wrote them.",
    "written": "A model wrote the thoughts; those that did not reach the rubrics' thresholds are not among them.",
}


class Source(Struct, frozen=True):
    """Where the conversations came from."""

    what: str
    """In a sentence."""
    command: str
    dropped: Mapping[str, int]
    """Conversations left out, by why."""
    thoughts: Literal["verified", "written"] = "verified"


def sets_in(out: Path) -> list[str]:
    return [name for name in WHAT if (out / f"{name}.jsonl").exists()]


def write_card(out: Path, pack: Pack, source: Source, *, ungraded: int = 0) -> Path:
    """`README.md` beside the sets. `ungraded`: held-out texts that are not in `rl`."""
    files = sets_in(out)
    configs = "\n".join(f"  - config_name: {name}\n    data_files: {name}.jsonl" for name in files)
    dropped = "\n".join(f"| {why} | {count} |" for why, count in sorted(source.dropped.items()))
    parts = [
        f"---\nconfigs:\n{configs}\n---",
        f"# Learning the policies of {pack.title}",
        f"{source.what} Made by `{source.command}` with pack `{pack.name}` {pack.version} (`{pack.digest[:16]}`).",
        "| set | rows | turns | words a row | thought words a turn | what it is |\n|---|---|---|---|---|---|",
    ]
    parts[-1] += "".join(f"\n{_line(name, list(read_rows(out / f'{name}.jsonl')))}" for name in files)
    if (out / "rl.jsonl").exists() and (turns := list(read_rows(out / "rl.jsonl"))):
        parts.append(_policies(turns))
    if dropped:
        parts.append(f"Conversations left out:\n\n| why | conversations |\n|---|---|\n{dropped}")
    if ungraded:
        parts.append(
            f"{ungraded} texts of the held-out conversations are not in `rl`: they tell no value that a result, a guard"
            " or the next write knows, or they deny something, so only a judge can mark them (`--for-judge`)."
        )
    parts += [SHAPE, THOUGHTS[source.thoughts]]
    path = out / "README.md"
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path


def _line(name: str, rows: Sequence[dict[str, Any]]) -> str:
    messages = [message for row in rows for message in row.get("messages") or row["prompt"]]
    written = [message["content"] for message in messages if message["role"] == "assistant"]
    words = sum(len(message["content"].split()) for message in messages)
    thought = [len(text.split("</think>")[0].split()) for text in written if text.startswith("<think>")]
    turns = len(rows) if name == "rl" else len(written)
    mean = f"{sum(thought) / len(thought):.0f}" if thought else ""
    return f"| `{name}` | {len(rows)} | {turns} | {words / max(1, len(rows)):.0f} | {mean} | {WHAT[name]} |"


def _policies(rows: Sequence[dict[str, Any]]) -> str:
    counts = Counter(policy for row in rows for policy in row["required"])
    kinds = Counter(row["purpose"] for row in rows)
    listed = "\n".join(f"| {policy} | {count} |" for policy, count in counts.most_common())
    told = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
    said = f"What the turns of `rl` are for: {told}."
    return (
        f"{said}\n\n| policy | turns of `rl` that need it |\n|---|---|\n{listed}"
        if listed
        else f"{said} None needs a policy."
    )
