"""What an output that is added to remembers: which logs it holds, where their rows are, and what was counted of them.

It lies in the folder of the tables, so that one rename puts both in place, and they cannot disagree.
"""

import hashlib
import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from bylaw import __version__
from bylaw.audit.batch.tables import arrow, leave_out
from bylaw.audit.examine import Examiner
from bylaw.audit.output import STATE, TABLES, TABLES_SCHEMA, has_state, has_tables
from bylaw.audit.request import Request
from bylaw.errors import UsageError

STATE_SCHEMA = "bylaw.state/2"
_NEXT, _BEFORE = ".tables-next", ".tables-before"


class HeldLog(Struct):
    """A log whose conversations are in the tables."""

    stamp: tuple[int, str] | None
    """Size and mark of the file as it was read; None where a part of it was set aside, so that it is read again."""
    first: int
    end: int
    """Its conversations have the ordinals from `first` up to and without `end`."""
    faults: list[tuple[str, str, str]] = []
    """What of it could not be read: message, place, hint."""
    over: list[str] = []
    """The logs whose conversations its own replaced."""


class Night(Struct):
    """One run that added conversations."""

    number: int
    date: str
    bylaw: str
    first: int
    end: int
    """The ordinals it gave."""
    conversations: int
    """Of these, how many are still there."""
    counts: dict[str, Any]
    """What was counted of those."""


class State(Struct):
    """All that the next run has to know."""

    schema: str
    mark: str
    """Of the pack and the options, under which all of it was judged."""
    pack: str
    files: dict[str, HeldLog] = field(default_factory=dict[str, HeldLog])
    nights: list[Night] = field(default_factory=list[Night])

    @property
    def next(self) -> int:
        """The first ordinal that is free."""
        return max((night.end for night in self.nights), default=0)

    @property
    def conversations(self) -> int:
        """How many there are."""
        return sum(night.conversations for night in self.nights)

    def entangled(self, changed: set[str]) -> list[str]:
        """The logs to read again beside these, in the order they came.

        They are those that had to give way to one of these, whose conversations may be the last of their name now; and
        those that such a log had to give way to, for its conversations must not take their place by being read again.
        """
        found, waiting = set[str](), list(changed)
        while waiting:
            name = waiting.pop()
            beside = set(self.files[name].over) if name in self.files else set[str]()
            if name not in changed:
                beside |= {other for other, log in self.files.items() if name in log.over}
            beside -= found | changed
            found |= beside
            waiting += beside
        return sorted(found, key=lambda name: self.files[name].first)

    def begin_night(self, conversations: int, end: int, counts: dict[str, Any]) -> None:
        """Note a run, the last one, that ends with an ordinal."""
        number = self.nights[-1].number + 1 if self.nights else 1
        date = datetime.now(UTC).date().isoformat()
        self.nights.append(Night(number, date, __version__, self.next, end, conversations, counts))


def read_state(out: Path, request: Request, examiner: Examiner) -> State:
    """The state of an output; a new one where there is none yet."""
    mark, pack = _mark(request, examiner), f"{examiner.shelf.name} {examiner.shelf.packs[-1].digest[:12]}"
    if not has_state(out):
        if has_tables(out) or (out / "summary.json").exists():
            hint = "give another --out for what nightly runs add to"
            raise UsageError("an audit that nothing was to be added to lies here", place=str(out), hint=hint)
        return State(STATE_SCHEMA, mark, pack)
    path = out / TABLES / STATE / "state.json"
    try:
        state = msgspec.json.decode(path.read_bytes(), type=State)
    except msgspec.DecodeError as error:
        raise UsageError(f"cannot be read: {error}", place=str(path), hint="restore it, or begin anew") from None
    if state.schema != STATE_SCHEMA:
        hint = "judge all logs anew into another --out"
        raise UsageError("an earlier version of Bylaw wrote what lies here", place=str(out), hint=hint)
    if state.mark != mark:
        hint = "judge all logs anew into another --out; rows judged differently would not compare"
        raise UsageError(
            f"what lies here was judged under another pack or other options (pack {state.pack}, now {pack})",
            place=str(out),
            hint=hint,
        )
    criterion = request.criterion or examiner.shelf.packs[-1].criterion
    before = json.loads((out / TABLES / "schema.json").read_bytes())["criterion"]
    if criterion != before:
        hint = f"leave `--criterion` out, or give `--criterion {before}`"
        raise UsageError(f"what lies here goes by `{before}`, not `{criterion}`", place=str(out), hint=hint)
    return state


def _mark(request: Request, examiner: Examiner) -> str:
    """What all rows have in common. The world is not in it: every night may have its own."""
    record = [
        TABLES_SCHEMA,
        [[pack.name, pack.digest] for pack in examiner.shelf.packs],
        request.mode,
        request.agent,
        pseudonyms.mark if (pseudonyms := request.pseudonyms) is not None else None,
    ]
    return hashlib.blake2b(json.dumps(record).encode(), digest_size=16).hexdigest()


def commit(made: Path, out: Path) -> None:
    """Put tables and state in the place of earlier ones. Killed anywhere, `recover` finds one of them whole."""
    os.replace(made, out / _NEXT)
    if (out / TABLES).exists():
        os.replace(out / TABLES, out / _BEFORE)
    os.replace(out / _NEXT, out / TABLES)
    shutil.rmtree(out / _BEFORE, ignore_errors=True)


def recover(out: Path) -> None:
    """Finish the work of a run that was killed while it put tables in place."""
    for left in (_NEXT, _BEFORE):
        if (out / left).exists() and not (out / TABLES).exists():
            os.replace(out / left, out / TABLES)
        shutil.rmtree(out / left, ignore_errors=True)


def keep_rows(source: Path, dropped: Any, *, target: Path) -> None:
    """Have a Parquet file at `target` without the rows of some ordinals, a sorted Arrow array; none if no row is left.

    A file that has none of them is linked: it is the same file as before.
    """
    pc = arrow("compute")
    with arrow("parquet").ParquetFile(source) as file:
        if not file.metadata.num_rows:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
        columns = [group.column(place) for group in groups for place in range(group.num_columns)]
        told = [each.statistics for each in columns if each.path_in_schema == "ordinal"]
        first, last = min(each.min for each in told), max(each.max for each in told)
        gone = dropped.filter(pc.and_(pc.greater_equal(dropped, first), pc.less_equal(dropped, last)))
        if not len(gone):
            try:
                os.link(source, target)
            except OSError:
                shutil.copy2(source, target)
            return
        rows = 0
        with arrow("parquet").ParquetWriter(target, file.schema_arrow, compression="zstd") as out:
            for number in range(file.num_row_groups):
                table = leave_out(file.read_row_group(number), gone)
                rows += table.num_rows
                out.write_table(table)
    if not rows:
        target.unlink()
