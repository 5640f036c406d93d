"""The folder an audit writes to: an earlier audit's files stay whole until all of the new ones are there."""

import json
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from bylaw.audit.summary import SCHEMA
from bylaw.errors import UsageError

WRITTEN = ("calls.jsonl", "conversations.jsonl", "findings.jsonl", "policies.json", "summary.json")
DERIVED = ("comparison.json", "report.html", "audited.json")
"""What other commands and options write beside them, from them."""


@contextmanager
def written_aside(out: Path) -> Generator[Path]:
    """A folder to write to; at the end its files take their places in `out`, and what was made from older ones goes."""
    out.mkdir(parents=True, exist_ok=True)
    _check(out)
    aside = Path(tempfile.mkdtemp(prefix=".audit-", dir=out))
    try:
        yield aside
        # The summary goes first and comes last: where it lies, all the rest is of the same audit.
        for name in ("summary.json", *DERIVED):
            (out / name).unlink(missing_ok=True)
        for name in WRITTEN:
            os.replace(aside / name, out / name)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _check(out: Path) -> None:
    """Files of our names that no audit wrote are somebody's own."""
    found = [name for name in (*WRITTEN, *DERIVED) if (out / name).exists()]
    if found and not _is_ours(out / "summary.json"):
        raise UsageError(
            f"`{out / found[0]}` is not of an audit", hint="give another folder with --out, or move it away"
        )


def _is_ours(summary: Path) -> bool:
    try:
        record: Any = json.loads(summary.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(record, dict) and cast("dict[str, Any]", record).get("schema") == SCHEMA
