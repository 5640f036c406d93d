"""The rows a stage learns from, as `bylaw align data` writes them."""

import gzip
from pathlib import Path
from typing import Any

import msgspec

from bylaw.errors import UsageError

FILES = {1: "stage1", 2: "stage2", 3: "rl"}


def training_rows(path: Path, stage: int) -> list[dict[str, Any]]:
    """The rows of a file, or of the stage's file in a folder; JSON lines, compressed or not."""
    if path.is_dir():
        named = [path / f"{FILES[stage]}{ending}" for ending in (".jsonl", ".jsonl.gz")]
        found = next((file for file in named if file.exists()), None)
        if found is None:
            raise UsageError(f"there is no `{named[0].name}` in `{path}`", hint="write it with `bylaw align data`")
        path = found
    if not path.exists():
        raise UsageError(f"there is no file `{path}`", hint="write it with `bylaw align data`")
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows: list[dict[str, Any]] = []
    wanted = "prompt" if stage == 3 else "messages"
    for number, line in enumerate(raw.splitlines(), start=1):
        try:
            row = msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise UsageError(f"not a row: {error}", place=f"{path}:{number}") from None
        if wanted not in row:
            raise UsageError(f"a row of stage {stage} has `{wanted}`", place=f"{path}:{number}")
        rows.append(row)
    if not rows:
        raise UsageError(f"`{path}` has no rows", hint="write it with `bylaw align data`")
    return rows
