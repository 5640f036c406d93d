"""Beside the sets: `data.json`, which names the pack and what each file held when it was written, and the data card."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from bylaw.align.dataset import read_rows
from bylaw.errors import UsageError
from bylaw.pack import Pack

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
    "unfiltered": "stage 2 with faults planted in its thoughts, to learn what filtering is worth",
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
