"""The folder an audit writes to: an earlier audit's files stay whole until all of the new ones are there."""

import json
import os
import shutil
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from bylaw.audit.summary import SCHEMA
from bylaw.errors import BylawError, UsageError

try:
    import fcntl
except ImportError:  # Windows has no such locks.
    fcntl = None

WRITTEN = ("calls.jsonl", "conversations.jsonl", "findings.jsonl", "policies.json", "summary.json")
SELDOM = "faults.jsonl"
"""Written only where something went wrong in our own code."""
_ASIDE = ".audit-"
DERIVED = ("comparison.json", "report.html", "audited.json")
"""What other commands and options write beside them, from them."""


@contextmanager
def written_aside(out: Path) -> Generator[Path]:
    """A folder to write to; at the end its files take their places in `out`, and what was made from older ones goes."""
    out.mkdir(parents=True, exist_ok=True)
    with _alone_in(out):
        _check(out)
        _clean(out)
        aside = Path(tempfile.mkdtemp(prefix=_ASIDE, dir=out))
        try:
            yield aside
            # The summary goes first and comes last: where it lies, all the rest is of the same audit.
            for name in ("summary.json", SELDOM, *DERIVED):
                (out / name).unlink(missing_ok=True)
            for name in (SELDOM, *WRITTEN):
                if name != SELDOM or (aside / name).exists():
                    os.replace(aside / name, out / name)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def spare_earlier(out: Path, faults: Sequence[BylawError]) -> None:
    """Refuse to put an audit that read nothing in the place of an earlier one."""
    if _is_ours(out / "summary.json"):
        hint = f"the earlier audit in `{out}` is left as it was"
        raise UsageError(f"no conversation could be read: {faults[0]}", hint=hint)


def _clean(out: Path) -> None:
    """What an audit that was killed has left: alone here, no other can be writing."""
    if fcntl is not None:
        for left in out.glob(f"{_ASIDE}*"):
            shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _alone_in(out: Path) -> Generator[None]:
    """Two audits at once would mix their files: the second is refused. The lock goes with its process."""
    if fcntl is None:
        yield
        return
    folder = os.open(out, os.O_RDONLY)
    try:
        _lock(folder, out)
        yield
    finally:
        os.close(folder)


def _lock(folder: int, out: Path) -> None:
    assert fcntl is not None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(f"another audit is writing to `{out}`", hint="wait for it, or give another --out") from None
    except OSError:
        # Some file systems know no locks.
        return


def _check(out: Path) -> None:
    """Files of our names that no audit wrote are somebody's own."""
    found = [name for name in (*WRITTEN, SELDOM, *DERIVED) if (out / name).exists()]
    if found and not _is_ours(out / "summary.json"):
        raise UsageError(
            f"`{out / found[0]}` was not written by an audit", hint="give another folder with --out, or move it away"
        )


def _is_ours(summary: Path) -> bool:
    try:
        record: Any = json.loads(summary.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(record, dict) and cast("dict[str, Any]", record).get("schema") == SCHEMA
