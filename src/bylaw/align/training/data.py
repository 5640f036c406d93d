"""Reads the rows of a training stage, as `bylaw align data` writes them, and the pack that grades them.

A conversation becomes ChatML text, with tool results in Hermes format. Training, evaluation and servers share this
template. The system message lists the tools, and a call is ordinary text. `chatml.jinja` marks the agent's turns, so
that TRL trains only on these.
"""

import gzip
from pathlib import Path
from typing import Any

import msgspec

from bylaw.align.dataset import find_manifest
from bylaw.align.prompt import pack_named
from bylaw.errors import UsageError

OPEN, CLOSE = "<|im_start|>", "<|im_end|>"
_TEMPLATE = Path(__file__).parent / "chatml.jinja"
FILES = {1: "stage1", 2: "stage2", 3: "rl"}


def pack_of(data: Path, named: str | None) -> str:
    """Return the name of the pack that grades rows: the given one, or the one in `data.json`.

    Raises if neither is known, or if the pack has changed since the rows were made.
    """
    made = find_manifest(data)
    if named is None and made is None:
        raise UsageError(f"cannot tell which pack `{data}` was made with", hint="name it with --pack")
    name = named or (made.pack if made is not None else "")
    if made is not None and named is None and pack_named(name).digest != made.pack_digest:
        raise UsageError(
            f"pack `{name}` has changed since the rows were made",
            place=str(data),
            hint="make them again with `bylaw align data`, or name the pack with --pack to grade by it anyway",
        )
    return name


def rows_file(path: Path, stage: int) -> Path:
    """Return the file of a stage's rows: the named file, or the stage's file in a folder."""
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
    """Return the rows of a file, or of a folder's file for the stage. JSON lines may be compressed."""
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
    """Return the tokenizer with this template and its end of turn."""
    tokenizer.chat_template = _TEMPLATE.read_text(encoding="utf-8").strip()
    tokenizer.eos_token = CLOSE
    tokenizer.pad_token = tokenizer.pad_token or CLOSE
    return tokenizer
