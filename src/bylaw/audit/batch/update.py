"""Nightly runs: read only new or changed logs, and add the results to an earlier output.

Start at `update`. If two conversations have the same id, the later one replaces the earlier one. The state is in the
tables' folder, so that tables and state are replaced together. Only days with new or removed conversations are written
again.
"""

import hashlib
import json
import os
import shutil
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from bylaw.audit.batch.run import WORK, Advance, Engine, begin, judged, read_parts
from bylaw.audit.batch.shard import SIZE, Job, Shard, sync
from bylaw.audit.batch.tables import (
    COUNTS,
    TABLES,
    PlacedPart,
    arrow,
    day_of,
    held_rows,
    is_before,
    write_days,
    write_schema,
)
from bylaw.audit.output import STATE, TABLES_SCHEMA, check_overwrite, has_state, has_tables, lock_folder
from bylaw.audit.output import TABLES as FOLDER
from bylaw.audit.request import Request
from bylaw.audit.run import Examiner, Report, check_tools, write_summary
from bylaw.errors import RecordError, UsageError
from bylaw.trace import Identities
from bylaw.trace.source import UNOPENED, LogFile, log_file, stamp_of

STATE_SCHEMA = "bylaw.state/4"
_NEXT, _BEFORE = ".tables-next", ".tables-before"


class HeldLog(Struct):
    """A log whose conversations are in the tables."""

    stamp: tuple[int, str] | None
    """The file's size and its time or storage tag when read. None if a part was skipped and must be read again."""
    read: str
    """The day on which the log was read."""
    first: int
    end: int
    """The log's conversations have the ordinals `first` to `end - 1`."""
    faults: list[tuple[str, str, str]] = []
    """Unreadable records: the message, location and hint for each."""
    over: list[str] = []
    """The logs that contained an earlier version of one of this log's conversations."""


class State(Struct):
    """The data that the next nightly run needs."""

    schema: str
    mark: str
    """A digest of the pack and the options. Every run on the same output must have the same digest."""
    pack: str
    next: int = 0
    """The next unused ordinal."""
    conversations: int = 0
    files: dict[str, HeldLog] = field(default_factory=dict[str, HeldLog])
    counts: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """The counts of each day's conversations, keyed by the day's folder."""

    def entangled(self, changed: set[str]) -> list[str]:
        """Return the unchanged logs that must be read again, in order.

        A changed log may have replaced conversations of other logs. Those logs must be read again, and so must every
        log that replaced their conversations or whose conversations they replaced, and so on.
        """
        found, waiting = set[str](), list(changed)
        while waiting:
            name = waiting.pop()
            related = set(self.files[name].over) if name in self.files else set[str]()
            if name not in changed:
                related |= {other for other, log in self.files.items() if name in log.over}
            waiting += related - found - changed
            found |= related - changed
        return sorted(found, key=lambda name: self.files[name].first)

    def forget(self, earliest: date, given: Collection[str]) -> None:
        """Drop the logs that were last read before a day, except the logs in `given`."""
        day = earliest.isoformat()
        self.files = {name: log for name, log in self.files.items() if name in given or log.read >= day}
        for log in self.files.values():
            log.over = [name for name in log.over if name in self.files]


def read_state(out: Path, request: Request, examiner: Examiner) -> State:
    """Return the state of an output folder, or a new state if the folder has none."""
    mark, pack = _mark(request, examiner), f"{examiner.shelf.name} {examiner.shelf.packs[-1].digest[:12]}"
    if not has_state(out):
        if has_tables(out) or (out / "summary.json").exists():
            hint = "choose another --out for --update"
            raise UsageError("this folder contains an audit that was run without --update", place=str(out), hint=hint)
        return State(STATE_SCHEMA, mark, pack)
    path = out / FOLDER / STATE / "state.json"
    try:
        state = msgspec.json.decode(path.read_bytes(), type=State)
    except msgspec.DecodeError as error:
        raise UsageError(
            f"cannot be read: {error}", place=str(path), hint="restore it, or choose an empty folder"
        ) from None
    if state.schema != STATE_SCHEMA:
        hint = "audit all logs again into another --out"
        raise UsageError("an earlier version of Bylaw wrote this output", place=str(out), hint=hint)
    if state.mark != mark:
        hint = "audit all logs again into another --out; rows judged with different options cannot be compared"
        raise UsageError(
            f"this output was produced with another pack or other options (pack {state.pack}, now {pack})",
            place=str(out),
            hint=hint,
        )
    criterion = request.criterion or examiner.shelf.packs[-1].criterion
    before = json.loads((out / FOLDER / "schema.json").read_bytes())["criterion"]
    if criterion != before:
        hint = f"omit `--criterion`, or use `--criterion {before}`"
        raise UsageError(f"this output uses the criterion `{before}`, not `{criterion}`", place=str(out), hint=hint)
    return state


def _mark(request: Request, examiner: Examiner) -> str:
    """Return a digest of the pack and the options that affect all rows.

    The ground-truth database is left out, because it may change between runs.
    """
    record = [
        TABLES_SCHEMA,
        [[pack.name, pack.digest] for pack in examiner.shelf.packs],
        request.mode,
        request.agent,
        pseudonyms.mark if (pseudonyms := request.pseudonyms) is not None else None,
    ]
    return hashlib.blake2b(json.dumps(record).encode(), digest_size=16).hexdigest()


def commit(made: Path, out: Path) -> None:
    """Replace the tables and the state.

    If the process is killed meanwhile, `recover` finishes the replacement or restores the old tables.
    """
    os.replace(made, out / _NEXT)
    if (out / FOLDER).exists():
        os.replace(out / FOLDER, out / _BEFORE)
    os.replace(out / _NEXT, out / FOLDER)
    shutil.rmtree(out / _BEFORE, ignore_errors=True)


def recover(out: Path) -> None:
    """Finish or undo the replacement of tables, if a run was killed during it."""
    for left in (_NEXT, _BEFORE):
        if (out / left).exists() and not (out / FOLDER).exists():
            os.replace(out / left, out / FOLDER)
        shutil.rmtree(out / left, ignore_errors=True)


class Added(Struct, frozen=True):
    """The figures of one nightly run."""

    report: Report
    read: int
    """Logs that were read."""
    known: int
    """Logs that were not read because they had not changed."""
    conversations: int
    """Conversations in the logs that were read."""
    replaced: int
    """Conversations that were replaced by newer ones."""
    removed: int
    """Conversations that are no longer in any log."""
    expired: int
    """Conversations that are too old to keep."""
    held: int
    """Conversations that are now in the tables."""


def update(
    request: Request,
    out: Path,
    engine: Engine,
    *,
    size: int = SIZE,
    progress: Callable[[Advance], None] | None = None,
    keep_days: int | None = None,
) -> Added:
    """Audit new and changed logs, and add the results to the tables in `out`. Keep only the last `keep_days` days."""
    arrow()
    if request.answers is not None:
        raise UsageError("only a single process can ask a model", hint="remove --llm, or --update")
    examiner = Examiner(request)
    out.mkdir(parents=True, exist_ok=True)
    with lock_folder(out, surely=True):
        check_overwrite(out, tables=True, adds=True)
        recover(out)
        state = read_state(out, request, examiner)
        # Use absolute paths, because the next run may start in another folder.
        files = [file.resolve() if isinstance(file, Path) else file for file in request.files]
        stamps = {file: stamp_of(file)[1:] for file in dict.fromkeys(files)}
        held = {name: log.stamp for name, log in state.files.items()}
        changed = tuple(file for file, stamp in stamps.items() if held.get(str(file)) != stamp)
        again, gone = _logs_to_reread(state, {str(file) for file in changed})
        new = (*again, *changed)
        work = out / WORK
        job = Job(replace(request, files=new, adds=True), (work / "parts").resolve())
        begin(work, job, examiner)
        shards, aside = judged(job, engine, size, progress) if new else ([], {})
        earliest = datetime.now(UTC).date() - timedelta(days=keep_days) if keep_days is not None else date.min
        addition = _Addition(job, shards, aside, state)
        left = (0, 0, 0)
        if new or any(is_before(folder.name, earliest) for folder in (out / FOLDER / "conversations").glob("*")):
            left = _merge(addition, request, examiner, stamps | again, out, earliest)
        report = _report(state, examiner, request, [*addition.skipped, *gone], out)
        if not aside:
            shutil.rmtree(work, ignore_errors=True)
        known = sum(file not in again and file not in changed for file in stamps)
        read = addition.end - addition.first
        return Added(report, len(new), known, read, *left, state.conversations)


def _logs_to_reread(state: State, changed: set[str]) -> tuple[dict[LogFile, tuple[int, str]], list[RecordError]]:
    """Return the unchanged logs to read again, and an error for each of these logs that is missing."""
    names, stamps, faults = state.entangled(changed), dict[str, tuple[int, str]](), list[RecordError]()
    for name in names:
        try:
            stamps[name] = stamp_of(log_file(name))[1:]
        except (OSError, UsageError):
            why = "this log is missing, so Bylaw cannot tell which conversations of other logs it replaced"
            faults.append(RecordError(why, place=name, hint="restore the log, and run the same command again"))
    # A log that is now missing had replaced some of this log's conversations. Reading this log again would bring back
    # their old versions.
    left = set(names) - stamps.keys()
    while more := {loser for name in left for loser in state.files[name].over} - left:
        left |= more
    return {log_file(name): stamp for name, stamp in stamps.items() if name not in left}, faults


class _Addition:
    """The shards of one nightly run, and the ordinals of their conversations."""

    def __init__(self, job: Job, shards: list[Shard], aside: dict[str, str], state: State) -> None:
        self.state = state
        self.work = job.parts.parent
        self.first = self.end = state.next
        self.parts: list[PlacedPart] = []
        self.logs: dict[str, HeldLog] = {}
        self.skipped: list[RecordError] = []
        """The shards that this run skipped."""
        today = datetime.now(UTC).date().isoformat()
        for shard, entry, faults in read_parts(job, shards, aside):
            name = str(job.request.files[shard.file])
            held = self.logs.setdefault(name, HeldLog((0, ""), today, self.end, self.end))
            if entry is None:
                self.skipped += faults
                held.stamp = None
                continue
            held.faults += [(fault.message, fault.place, fault.hint) for fault in faults]
            if any(fault.message.startswith(UNOPENED) for fault in faults):
                held.stamp = None
            self.parts.append(PlacedPart(job.part(shard), self.end))
            self.end += entry["conversations"]
            held.end = self.end
        for name, held in list(self.logs.items()):
            before = state.files.get(name)
            if before is not None and held.stamp is None and held.first == held.end:
                # The log cannot be read now, so keep its earlier conversations.
                before.stamp, before.faults = None, held.faults
                del self.logs[name]

    def conversations(self) -> Any:
        """Return the id, ordinal and day of each of this run's conversations."""
        pa, names = arrow(), ["conversation", "ordinal", "day"]
        schema = pa.schema([("conversation", pa.string()), ("ordinal", pa.int64()), ("day", pa.date32())])
        found = [rows.select(names).cast(schema) for part in self.parts for rows in part.placed("conversations")]
        return pa.concat_tables([schema.empty_table(), *found])

    def note_over(self, replaced: Any) -> None:
        """Record, for each log, which logs' conversations it replaced.

        If the log changes, those logs are read again.
        """
        logs = {name: held for name, held in (self.state.files | self.logs).items() if held.first < held.end}
        spans = sorted((held.first, held.end, name) for name, held in logs.items())

        def log_of(ordinal: int) -> str:
            """Return the log that contains this conversation, or an empty string if the log was read again."""
            place = bisect_right(spans, ordinal, key=lambda span: span[0]) - 1
            return spans[place][2] if place >= 0 and ordinal < spans[place][1] else ""

        for row in replaced.to_pylist():
            loser, winner = log_of(row["ordinal"]), log_of(row["ordinal_max"])
            if winner in self.logs and loser and loser != winner and loser not in self.logs[winner].over:
                self.logs[winner].over.append(loser)


def _merge(
    addition: _Addition,
    request: Request,
    examiner: Examiner,
    stamps: dict[LogFile, tuple[int, str]],
    out: Path,
    earliest: date,
) -> tuple[int, int, int]:
    """Write the tables.

    Days with new or removed conversations are written again, and the files of other days are hard-linked. Leave out
    conversations before the day `earliest`. Return the numbers of replaced, removed and expired conversations.
    """
    pa, pc, ds = arrow(), arrow("compute"), arrow("dataset")
    state, before = addition.state, out / FOLDER
    new = addition.conversations()
    held = held_rows(before, "conversations", columns=new.column_names)
    # The join holds the new ids in memory and streams all other rows.
    same = held.join(ds.dataset(new.select(["conversation"])), "conversation", join_type="left semi").to_table()
    found = pa.concat_tables([new, same.select(new.column_names)])
    last = found.group_by("conversation").aggregate([("ordinal", "max")])
    replaced = found.join(last, "conversation").filter(pc.field("ordinal") != pc.field("ordinal_max"))
    addition.note_over(replaced)
    reread = pc.scalar(False)
    for name in addition.logs.keys() & state.files.keys():
        log = state.files[name]
        reread |= (pc.field("ordinal") >= log.first) & (pc.field("ordinal") < log.end)
    columns = ["ordinal", "day"]
    others = pa.concat_tables([replaced.select(columns), held.to_table(columns, filter=reread)])
    is_old = pc.field("day") < pa.scalar(earliest, pa.date32())
    expired = pa.concat_tables([held.to_table(columns, filter=is_old), new.select(columns).filter(is_old)])
    dropped = [pc.unique(each.column("ordinal")) for each in (others, pa.concat_tables([others, expired]))]
    days = {day_of(day) for rows in (others, new) for day in pc.unique(rows.column("day")).to_pylist()}

    made = addition.work / "made"
    shutil.rmtree(made, ignore_errors=True)
    (made / STATE).mkdir(parents=True)
    for table in TABLES:
        write_days(before, made, table, addition.parts, days=days, without=dropped[1], earliest=earliest)
    write_days(before / STATE, made / STATE, COUNTS, addition.parts, days=days, without=dropped[1], earliest=earliest)
    folders = {folder.name for folder in (made / STATE / COUNTS).iterdir()}
    state.counts = {day: counts for day, counts in state.counts.items() if day in folders - days}
    state.counts |= {day: _counts_of(examiner, made, day) for day in sorted(folders & days)}
    known = {str(file): stamp for file, stamp in stamps.items()}
    for name, log in addition.logs.items():
        log.stamp = known[name] if log.stamp is not None else None
    state.files |= addition.logs
    state.forget(earliest, known)
    state.next = addition.end
    check_tools(_counted(state, examiner))
    state.conversations = write_schema(made, request.criterion or examiner.shelf.packs[-1].criterion)["conversations"]
    (made / STATE / "state.json").write_bytes(msgspec.json.encode(state))
    # Write the new files to disk before they replace the earlier ones.
    for path in (*made.rglob("*"), made):
        if path.is_dir() or path.stat().st_nlink == 1:
            sync(path)
    commit(made, out)
    return len(replaced), len(dropped[0]) - len(replaced), len(dropped[1]) - len(dropped[0])


def _counts_of(examiner: Examiner, made: Path, day: str) -> dict[str, Any]:
    """Return the sum of the counts of one day's conversations."""
    pc = arrow("compute")
    examiner.begin()
    for batch in held_rows(made / STATE, COUNTS, day=day).to_batches(columns=["counts"]):
        # Many conversations have equal counts, so parse each distinct text only once.
        for alike in pc.value_counts(batch[0]).to_pylist():
            examiner.counts.add(json.loads(alike["values"]), alike["counts"])
    times = held_rows(made, "conversations", day=day).to_table(["started", "ended"])
    ends = (pc.min(times.column("started")).as_py(), pc.max(times.column("ended")).as_py())
    examiner.counts.times = [end.timestamp() for end in ends if end is not None]
    return examiner.counts.record()


def _counted(state: State, examiner: Examiner) -> Examiner:
    """Set the examiner's counts to the counts of all conversations in the tables."""
    examiner.begin()
    for counts in state.counts.values():
        examiner.counts.add(counts)
    return examiner


def _report(state: State, examiner: Examiner, request: Request, aside: Sequence[RecordError], out: Path) -> Report:
    examiner = _counted(state, examiner)
    held = [fault for log in state.files.values() for fault in log.faults]
    skipped = [*(RecordError(message, place=place, hint=hint) for message, place, hint in held), *aside]
    whole = replace(request, files=tuple(map(log_file, state.files)), adds=True)
    made = out / WORK / "summary"
    made.mkdir(parents=True, exist_ok=True)
    summary = write_summary(made, examiner, whole, skipped, 0)
    (out / "summary.json").unlink(missing_ok=True)
    for name in ("policies.json", "summary.json"):
        os.replace(made / name, out / name)
    return Report(summary, out, tuple(skipped), Identities())
