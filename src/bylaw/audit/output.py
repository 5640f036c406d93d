"""The output folder of an audit. An earlier audit is replaced only when all new files are complete."""

import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self, cast

import msgspec
from msgspec import Struct

from bylaw.audit.row import Examined, encode, finding_id, named, writable
from bylaw.audit.summary import SCHEMA
from bylaw.engine.limited import LimitedCall
from bylaw.errors import BylawError, UsageError
from bylaw.pack import CRITERIA
from bylaw.trace import Identities

try:
    import fcntl
except ImportError:  # Windows does not have `fcntl` locks.
    fcntl = None

BUFFER = 1 << 20
"""The number of bytes to write at a time. Most conversations exceed the default buffer."""
WRITTEN = ("calls.jsonl", "conversations.jsonl", "findings.jsonl", "policies.json", "summary.json")
SELDOM = "faults.jsonl"
"""Files that are written only if an error occurred in Bylaw's own code."""
TABLES = "tables"
STATE = "state"
"""The folder inside the tables folder for the state of nightly runs."""
TABLES_SCHEMA = "bylaw.tables/1"
"""The version of the tables' format. Adding a column does not change it. If a column is removed, or its type or
meaning changes, use a new version.
"""
_ASIDE = ".audit-"
DERIVED = ("comparison.json", "report.html", "audited.json", "console.db")
"""Files that other commands and options derive from an audit's files."""


@contextmanager
def replacing_audit(out: Path) -> Generator[Path]:
    """Return a temporary folder to write to. On exit, its files replace the earlier audit in `out`."""
    out.mkdir(parents=True, exist_ok=True)
    with lock_folder(out):
        check_overwrite(out)
        # A killed audit left these files. Holding the lock shows that no audit is running.
        for left in out.glob(f"{_ASIDE}*") if fcntl is not None else ():
            shutil.rmtree(left, ignore_errors=True)
        aside = Path(tempfile.mkdtemp(prefix=_ASIDE, dir=out))
        try:
            yield aside
            replace_files(aside, out)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def replace_files(made: Path, out: Path) -> None:
    """Replace the earlier audit in `out` with the files in the folder `made`."""
    # Remove the summary first and write it last. If a summary exists, all files belong to the same audit.
    for name in ("summary.json", SELDOM, *DERIVED, *WRITTEN):
        (out / name).unlink(missing_ok=True)
    if has_tables(out):
        # Rename the folder before removing it, so that no process reads an incomplete table.
        os.replace(out / TABLES, made / "earlier")
        shutil.rmtree(made / "earlier")
    for name in (SELDOM, TABLES, *WRITTEN):
        if (made / name).exists():
            os.replace(made / name, out / name)


def has_tables(out: Path) -> bool:
    return _is_ours(out / TABLES / "schema.json", TABLES_SCHEMA)


def has_state(out: Path) -> bool:
    return has_tables(out) and (out / TABLES / STATE / "state.json").is_file()


def keep_earlier_audit(out: Path, faults: Sequence[BylawError]) -> None:
    """Raise an error if this audit read no conversations and would replace an earlier audit."""
    if _is_ours(out / "summary.json"):
        hint = f"the earlier audit in `{out}` was not changed"
        raise UsageError(f"no conversation could be read: {faults[0]}", hint=hint)


@contextmanager
def lock_folder(out: Path, *, surely: bool = False) -> Generator[None]:
    """Lock a folder until this process ends.

    If the file system does not support locks, raise an error only if `surely` is set.
    """
    with ExitStack() as opened:
        try:
            if fcntl is None:
                raise OSError("this operating system does not support file locks")
            folder = os.open(out, os.O_RDONLY)
            opened.callback(os.close, folder)
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            hint = "wait for it, or choose another --out"
            raise UsageError(f"another audit is writing to `{out}`", hint=hint) from None
        except OSError:
            if surely:
                hint = (
                    "without locks, two runs could write at the same time; choose an --out on a file system with locks"
                )
                raise UsageError("this file system does not support locks", place=str(out), hint=hint) from None
        yield


def check_overwrite(out: Path, *, tables: bool = False, adds: bool = False) -> None:
    """Refuse to overwrite files that an audit did not create.

    If `tables` is set, check the tables folder too. The output of a nightly run may be overwritten only if this audit
    `adds` to it.
    """
    if has_state(out) and not adds:
        hint = "add to it with --update, or choose another --out"
        raise UsageError(f"`{out}` contains the output of nightly runs", hint=hint)
    found = [name for name in (*WRITTEN, SELDOM, *DERIVED) if (out / name).exists()]
    is_ours = _is_ours(out / "summary.json") or has_tables(out)
    if tables and (out / TABLES).exists() and not has_tables(out):
        found, is_ours = [TABLES], False
    if found and not is_ours:
        raise UsageError(
            f"`{out / found[0]}` was not written by an audit", hint="choose another --out, or move the file away"
        )


def _is_ours(path: Path, schema: str = SCHEMA) -> bool:
    try:
        record: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(record, dict) and cast("dict[str, Any]", record).get("schema") == schema


class _CallHead(Struct):
    trajectory: str
    step: int
    executed: bool | None


_heads = msgspec.json.Decoder(_CallHead)


class LineFiles:
    def __init__(self, folder: Path) -> None:
        self._stack = ExitStack()
        self._calls, self._conversations, self._findings = (
            self._stack.enter_context((folder / f"{name}.jsonl").open("wb", BUFFER))
            for name in ("calls", "conversations", "findings")
        )
        self.names = Identities()
        self.count = 0
        self.repeated = 0
        """The number of conversations whose id occurred before."""
        self._limited: dict[LimitedCall, tuple[str, bytes]] = {}
        """Calls that count towards a limit. Each has its conversation, and the row to write if the limit is exceeded.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def write(self, part: Examined) -> None:
        """Write the rows of one conversation, under a unique name."""
        self.count += 1
        own = writable(part.id)
        name = self.names.unique(own)
        self.repeated += name != own
        for key, flagged, row in part.numbered_calls():
            self._calls.write(named(row, name, finding_id(name, key) if flagged else None))
        if part.conversation is not None:
            self._conversations.write(named(part.conversation, name))
        self._limited.update((call, (name, row)) for call, row in part.limited)
        for key, row in part.numbered_rules():
            self._findings.write(named(row, name, finding_id(name, key)))

    def write_limits(self, over: Iterable[LimitedCall]) -> None:
        """Write the rows of calls that exceed a limit. They are known only after all conversations have been read."""
        calls = sorted(over, key=lambda call: (call.limit, call.file, call.position, call.step))
        made: Counter[tuple[str, str]] = Counter()
        steps: dict[str, set[int]] = {}
        for call in calls:
            name, row = self._limited[call]
            made[name, call.limit] += 1
            self._findings.write(named(row, name, finding_id(name, f"limit {call.limit}\0{made[name, call.limit]}")))
            steps.setdefault(name, set()).add(call.step)
        if steps:
            self._mark(steps)

    def _mark(self, steps: dict[str, set[int]]) -> None:
        self._calls.flush()
        file = Path(self._calls.name)
        aside = file.with_suffix(".marked")
        with file.open("rb") as lines, aside.open("wb", BUFFER) as marked:
            for line in lines:
                head = _heads.decode(line)
                if head.step in steps.get(head.trajectory, ()) and head.executed is not False:
                    line = encode(json.loads(line) | dict.fromkeys(CRITERIA, "violation")) + b"\n"
                marked.write(line)
        os.replace(aside, file)


def dump(path: Path, record: Any) -> None:
    # A file name may contain invalid text. Write invalid bytes as escapes, which JSON can read back.
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
