"""The rows a stage learns from, as `bylaw align data` writes them, and the pack that they are graded by.

A conversation becomes text as ChatML, with the results of tools as Hermes shows them. Training and evaluation use the
same template, and so do servers that load a checkpoint. The system message lists the tools, and a call is text like any
other. `chatml.jinja` marks the agent's turns, so that TRL learns only from them.
"""

import gzip
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bylaw.align.dataset import find_manifest
from bylaw.align.prompt import pack_named
from bylaw.errors import UsageError
from bylaw.pack import Pack


class Held(Struct, frozen=True):
    """The pack of some rows."""

    name: str
    pack: Pack


OPEN, CLOSE = "<|im_start|>", "<|im_end|>"
_TEMPLATE = Path(__file__).parent / "chatml.jinja"
FILES = {1: "stage1", 2: "stage2", 3: "rl"}


def pack_of(data: Path, named: str | None) -> Held:
    """The pack that rows are graded by: the one that is named, or the one that `data.json` beside them tells of.

    An error where neither is there, and where the pack that made the rows has since changed.
    """
    made = find_manifest(data)
    if named is None and made is None:
        raise UsageError(f"cannot tell which pack `{data}` was made with", hint="name it with --pack")
    name = named or (made.pack if made is not None else "")
    pack = pack_named(name)
    if made is not None and named is None and pack.digest != made.pack_digest:
        raise UsageError(
            f"pack `{name}` has changed since the rows were made",
            place=str(data),
            hint="make them again with `bylaw align data`, or name the pack with --pack to grade by it anyway",
        )
    return Held(name, pack)


def rows_file(path: Path, stage: int) -> Path:
    """The file of a stage's rows: the one that is named, or the stage's own in a folder."""
    if path.is_dir():
        named = [path / f"{FILES[stage]}{ending}" for ending in (".jsonl", ".jsonl.gz")]
        found = next((file for file in named if file.exists()), None)
        if found is None:
            raise UsageError(f"there is no `{named[0].name}` in `{path}`", hint="write it with `bylaw align data`")
        path = found
    if not path.exists():
        raise UsageError(f"there is no file `{path}`", hint="write it with `bylaw align data`")
    return path


def training_rows(path: Path, stage: int) -> list[dict[str, Any]]:
    """The rows of a file, or of the stage's file in a folder; JSON lines, compressed or not."""
    path = rows_file(path, stage)
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows: list[dict[str, Any]] = []
    wanted = "prompt" if stage == 3 else "messages"
    for number, line in enumerate(raw.splitlines(), start=1):
        try:
            row = msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise UsageError(f"not a row: {error}", place=f"{path}:{number}") from None
        if wanted not in row:
            raise UsageError(f"a row of stage {stage} needs `{wanted}`", place=f"{path}:{number}")
        rows.append(row)
    if not rows:
        raise UsageError(f"`{path}` has no rows", hint="write it with `bylaw align data`")
    return rows


def with_dialect(tokenizer: Any) -> Any:
    """The tokenizer, with this template and its end of a turn."""
    tokenizer.chat_template = _TEMPLATE.read_text(encoding="utf-8").strip()
    tokenizer.eos_token = CLOSE
    tokenizer.pad_token = tokenizer.pad_token or CLOSE
    return tokenizer
