"""Nightly runs, which read only new or changed logs and add the results to an earlier output. Start at `update`.

A later conversation replaces an earlier one with the same id. The state is in the same folder as the tables, so that
both can be replaced together.
"""

import hashlib
import json
import os
import shutil
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from bylaw import __version__
from bylaw.audit.batch.run import WORK, Advance, Engine, begin, judged, read_parts
from bylaw.audit.batch.shard import COUNTS, SIZE, Job, Shard, counts_schema, sync
from bylaw.audit.batch.tables import (
    TABLES,
    WRITTEN,
    PlacedPart,
    arrow,
    between,
    compact,
    is_before,
    keep_rows,
    leave_out,
    write_schema,
    write_table,
)
from bylaw.audit.output import STATE, TABLES_SCHEMA, alone_in, check_ours, has_state, has_tables
from bylaw.audit.output import TABLES as FOLDER
from bylaw.audit.request import Request
from bylaw.audit.run import Examiner, Report, check_tools, write_summary
from bylaw.errors import RecordError, UsageError
from bylaw.trace import Identities
from bylaw.trace.source import UNOPENED, LogFile, log_file, stamp_of

STATE_SCHEMA = "bylaw.state/3"
_NEXT, _BEFORE = ".tables-next", ".tables-before"


class HeldLog(Struct):
    """A log whose conversations are in the tables."""

    stamp: tuple[int, str] | None
    """The file's size and mark when it was read. If this is None, a part was skipped and the file must be
    read again.
    """
    first: int
    end: int
    """The conversations have the ordinals `first` to `end - 1`."""
    faults: list[tuple[str, str, str]] = []
    """Unreadable records: the message, location and hint for each."""
    over: list[str] = []
    """The logs with conversations that this log replaced."""


class Night(Struct):
    number: int
    date: str
    bylaw: str
    first: int
    end: int
    """The run's last ordinal, plus one."""
    conversations: int
    """The number of conversations that no later run replaced."""
    counts: dict[str, Any]
    """The counts for conversations that no later run replaced."""


class State(Struct):
    """What the next run needs to know."""

    schema: str
    mark: str
    """Identifies the pack and the options. They are the same for all runs."""
    pack: str
    files: dict[str, HeldLog] = field(default_factory=dict[str, HeldLog])
    nights: list[Night] = field(default_factory=list[Night])

    @property
    def next(self) -> int:
        """The next free ordinal."""
        return max((night.end for night in self.nights), default=0)

    @property
    def conversations(self) -> int:
        return sum(night.conversations for night in self.nights)

    def entangled(self, changed: set[str]) -> list[str]:
        """Return the unchanged logs that must be read again, in order.

        If a changed log had replaced conversations from another log, that log must be read again. If a third log had
        replaced conversations from that one, it must be read again too, and so on.
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

    def forget(self, earliest: date, given: Container[str]) -> None:
        """Drop empty runs from before a day. Also drop their logs, except the given logs."""
        empty = [night for night in self.nights[:-1] if not night.conversations and night.date < earliest.isoformat()]
        for name, log in list(self.files.items()):
            if name not in given and any(night.first <= log.first <= log.end <= night.end for night in empty):
                del self.files[name]
        for log in self.files.values():
            log.over = [name for name in log.over if name in self.files]
        self.nights = [night for night in self.nights if night not in empty]

    def begin_night(self, conversations: int, end: int, counts: dict[str, Any]) -> None:
        """Add a run whose ordinals end just before `end`."""
        number = self.nights[-1].number + 1 if self.nights else 1
        date = datetime.now(UTC).date().isoformat()
        self.nights.append(Night(number, date, __version__, self.next, end, conversations, counts))


def read_state(out: Path, request: Request, examiner: Examiner) -> State:
    """Return the state of an output, or a new state if there is none."""
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
    """Return a digest of the pack and of the options that affect all rows. The world may change every night, so it is
    left out.
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
    """Replace the tables and the state. If the process is killed, `recover` restores either the old files or the new
    ones.
    """
    os.replace(made, out / _NEXT)
    if (out / FOLDER).exists():
        os.replace(out / FOLDER, out / _BEFORE)
    os.replace(out / _NEXT, out / FOLDER)
    shutil.rmtree(out / _BEFORE, ignore_errors=True)


def recover(out: Path) -> None:
    """Finish a run that was killed while it replaced the tables."""
    for left in (_NEXT, _BEFORE):
        if (out / left).exists() and not (out / FOLDER).exists():
            os.replace(out / left, out / FOLDER)
        shutil.rmtree(out / left, ignore_errors=True)


class Added(Struct, frozen=True):
    """The counts of a nightly run."""

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
    """Conversations now in the tables."""


def update(
    request: Request,
    out: Path,
    engine: Engine,
    *,
    size: int = SIZE,
    progress: Callable[[Advance], None] | None = None,
    keep_days: int | None = None,
) -> Added:
    """Audit new conversations in the logs and add them to the tables in `out`. `keep_days` is the number of days to
    keep.
    """
    arrow()
    if request.answers is not None:
        raise UsageError("only a single process can ask a model", hint="remove --llm, or --update")
    examiner = Examiner(request)
    out.mkdir(parents=True, exist_ok=True)
    with alone_in(out, surely=True):
        check_ours(out, tables=True, adds=True)
        recover(out)
        state = read_state(out, request, examiner)
        # Use absolute paths, because the next run may start in another folder.
        files = [file.resolve() if isinstance(file, Path) else file for file in request.files]
        stamps = {file: stamp_of(file)[1:] for file in dict.fromkeys(files)}
        held = {name: log.stamp for name, log in state.files.items()}
        changed = tuple(file for file, stamp in stamps.items() if held.get(str(file)) != stamp)
        again, gone = _again(state, {str(file) for file in changed})
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


def _again(state: State, changed: set[str]) -> tuple[dict[LogFile, tuple[int, str]], list[RecordError]]:
    names, stamps, faults = state.entangled(changed), dict[str, tuple[int, str]](), list[RecordError]()
    for name in names:
        try:
            stamps[name] = stamp_of(log_file(name))[1:]
        except (OSError, UsageError):
            hint = "restore the log, and run the same command again"
            faults.append(
                RecordError(
                    "this log is missing, so Bylaw cannot tell which conversations of other logs it replaced",
                    place=name,
                    hint=hint,
                )
            )
    # A log that is now missing had replaced some of this log's conversations. If this log were read again, its old
    # conversations would return.
    left = set(names) - stamps.keys()
    while more := {loser for name in left for loser in state.files[name].over} - left:
        left |= more
    return {log_file(name): stamp for name, stamp in stamps.items() if name not in left}, faults


class _Addition:
    """The parts of a run, with the ordinals of their conversations."""

    def __init__(self, job: Job, shards: list[Shard], aside: dict[str, str], state: State) -> None:
        self.state = state
        self.work = job.parts.parent
        self.first = self.end = state.next
        self.parts: list[PlacedPart] = []
        self.counts: list[dict[str, Any]] = []
        self.logs: dict[str, HeldLog] = {}
        self.skipped: list[RecordError] = []
        """Shards that this run set aside."""
        for shard, entry, faults in read_parts(job, shards, aside):
            held = self.logs.setdefault(str(job.request.files[shard.file]), HeldLog((0, ""), self.end, self.end))
            if entry is None:
                self.skipped += faults
                held.stamp = None
                continue
            held.faults += [(fault.message, fault.place, fault.hint) for fault in faults]
            if any(fault.message.startswith(UNOPENED) for fault in faults):
                held.stamp = None
            self.parts.append(PlacedPart(job.part(shard), self.end))
            self.counts.append(entry["counts"])
            self.end += entry["conversations"]
            held.end = self.end
        for name, held in list(self.logs.items()):
            before = state.files.get(name)
            if before is not None and held.stamp is None and held.first == held.end:
                # The log cannot be read now, so keep its earlier conversations.
                before.stamp, before.faults = None, held.faults
                del self.logs[name]

    def conversations(self, tables: Path) -> tuple[Any, Any]:
        """Return the ids and ordinals of this run's conversations, and of the earlier conversations to replace."""
        pa, pc, ds = arrow(), arrow("compute"), arrow("dataset")
        schema = pa.schema([("conversation", pa.string()), ("ordinal", pa.int64())])
        new = [
            pa.table([batch[0], pc.add(batch[1], part.first)], schema=schema)
            for part in self.parts
            for batch in part.batches("conversations", schema.names)
        ]
        own = pa.concat_tables([schema.empty_table(), *new])
        if not (tables / "conversations").is_dir():
            return own, schema.empty_table()
        earlier = ds.dataset(tables / "conversations", schema=schema)
        # The join keeps the new ids in memory and streams the rest.
        same = earlier.join(ds.dataset(own.select(["conversation"])), "conversation", join_type="left semi").to_table()
        ordinal, inside = pc.field("ordinal"), pc.scalar(False)
        for name in self.logs.keys() & self.state.files.keys():
            held = self.state.files[name]
            inside |= (ordinal >= held.first) & (ordinal < held.end)
        return pa.concat_tables([own, same]), earlier.to_table(filter=inside)

    def expired(self, tables: Path, earliest: date) -> Any:
        """Return the ordinals of all conversations before the `earliest` day."""
        pa, pc, ds = arrow(), arrow("compute"), arrow("dataset")
        schema = pa.schema([("ordinal", pa.int64())])
        days = [folder for folder in (tables / "conversations").glob("*") if is_before(folder.name, earliest)]
        files = [str(file) for folder in days for file in folder.glob("*.parquet")]
        found = [schema.empty_table(), ds.dataset(files, schema=schema).to_table()] if files else [schema.empty_table()]
        for part in self.parts:
            for batch in part.batches("conversations", ["day", "ordinal"]):
                old = batch.filter(pc.less(batch[0], pa.scalar(earliest, pa.date32())))
                found.append(pa.table([pc.add(old[1], part.first)], schema=schema))
        return pa.concat_tables(found)

    def note_over(self, replaced: Any) -> None:
        """For each log, record the logs whose conversations it replaced. If the log changes, those logs are
        read again.
        """
        logs = {name: held for name, held in (self.state.files | self.logs).items() if held.first < held.end}
        spans = sorted((held.first, held.end, name) for name, held in logs.items())

        def log_of(ordinal: int) -> str:
            """Return the log with this conversation, or an empty string if the log was read again."""
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
    """Write the tables. Unchanged files become hard links, and this run's files are added.

    Conversations before the `earliest` day are left out. Return how many conversations were replaced, removed and
    expired.
    """
    pa, pc = arrow(), arrow("compute")
    state, before = addition.state, out / FOLDER
    found, anew = addition.conversations(before)
    last = found.group_by("conversation").aggregate([("ordinal", "max")])
    replaced = found.join(last, "conversation")
    replaced = replaced.filter(pc.not_equal(replaced.column("ordinal"), replaced.column("ordinal_max")))
    addition.note_over(replaced)
    others = _sorted(pa.concat_tables([each.select(["ordinal"]) for each in (replaced, anew)]))
    dropped = _sorted(pa.concat_tables([pa.table({"ordinal": others}), addition.expired(before, earliest)]))
    made = addition.work / "made"
    shutil.rmtree(made, ignore_errors=True)
    (made / STATE).mkdir(parents=True)
    _count_again(addition, examiner, dropped, before / STATE, made / STATE)
    for table in TABLES:
        for file in sorted((before / table).rglob("*.parquet")):
            if is_before(file.parent.name, earliest):
                continue
            keep_rows(file, dropped, target=made / table / file.relative_to(before / table))
        name = f"night-{state.nights[-1].number:05}"
        write_table(table, addition.parts, made / table, name=name, without=dropped)
        for folder in (made / table).iterdir():
            compact(folder, name=f"{name}-all")
    known = {str(file): stamp for file, stamp in stamps.items()}
    for name, held in addition.logs.items():
        held.stamp = known[name] if held.stamp is not None else None
    state.files |= addition.logs
    state.forget(earliest, known)
    check_tools(_counted(state, examiner))
    (made / STATE / "state.json").write_bytes(msgspec.json.encode(state))
    write_schema(made, request.criterion or examiner.shelf.packs[-1].criterion)
    # Write the new files to disk before they replace the earlier ones.
    for path in (*made.rglob("*"), made):
        if path.is_dir() or path.stat().st_nlink == 1:
            sync(path)
    commit(made, out)
    return len(replaced), len(others) - len(replaced), len(dropped) - len(others)


def _sorted(ordinals: Any) -> Any:
    pc = arrow("compute")
    found = pc.unique(ordinals.column("ordinal"))
    return found.take(pc.sort_indices(found))


def _count_again(addition: _Addition, examiner: Examiner, dropped: Any, before: Path, made: Path) -> None:
    pa, pc, state = arrow(), arrow("compute"), addition.state
    for night in state.nights:
        gone = between(dropped, night.first, night.end)
        name = f"counts-{night.number:05}.parquet"
        file, target = before / name, made / name
        # A run with no remaining conversations has no file.
        if file.is_file():
            keep_rows(file, gone, target=target)
        if len(gone):
            night.conversations -= len(gone)
            night.counts = _without(examiner, night.counts, _counts_of(file, gone), target)
    gone = between(dropped, addition.first, addition.end)
    state.begin_night(addition.end - addition.first - len(gone), addition.end, {})
    target = made / f"counts-{state.nights[-1].number:05}.parquet"
    left_out: list[Any] = []
    with arrow("parquet").ParquetWriter(target, counts_schema(), **WRITTEN) as out:
        for part in addition.parts:
            for batch in part.batches(COUNTS):
                rows = pa.table([pc.add(batch[0], part.first), *batch.columns[1:]], schema=counts_schema())
                kept = leave_out(rows, gone)
                out.write_table(kept)
                if kept.num_rows < rows.num_rows:
                    left_out.append(_of(rows, gone))
    whole = _sum(examiner, addition.counts)
    state.nights[-1].counts = _without(examiner, whole, iter(left_out), target) if left_out else whole


def _counts_of(file: Path, ordinals: Any) -> Iterator[Any]:
    with arrow("parquet").ParquetFile(file) as rows:
        for batch in rows.iter_batches(columns=["ordinal", "counts"]):
            yield _of(arrow().Table.from_batches([batch]), ordinals)


def _of(rows: Any, ordinals: Any) -> Any:
    pc = arrow("compute")
    held = pc.min_max(rows.column("ordinal")).as_py()
    wanted = between(ordinals, held["min"], held["max"] + 1) if rows.num_rows else ordinals
    return rows.filter(pc.is_in(rows.column("ordinal"), value_set=wanted)).column("counts")


def _without(examiner: Examiner, counts: dict[str, Any], gone: Iterable[Any], left: Path) -> dict[str, Any]:
    """Return a run's counts without some of its conversations. `left` is the file with the counts of the remaining
    conversations.
    """
    pc = arrow("compute")
    _sum(examiner, [counts])
    for column in gone:
        # Many conversations have equal counts, so parse each distinct text only once.
        for alike in pc.value_counts(column).to_pylist():
            examiner.counts.remove(json.loads(alike["values"]), alike["counts"])
    times: list[float] = []
    if left.is_file():
        with arrow("parquet").ParquetFile(left) as rows:
            for batch in rows.iter_batches(columns=["earliest", "latest"]):
                if batch[0].null_count < len(batch):
                    times += (pc.min(batch[0]).as_py(), pc.max(batch[1]).as_py())
    examiner.counts.times = [min(times), max(times)] if times else []
    return examiner.counts.record()


def _sum(examiner: Examiner, counts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the sum of the counts. The examiner's counts are set to this sum."""
    examiner.begin()
    for each in counts:
        examiner.counts.add(each)
    return examiner.counts.record()


def _counted(state: State, examiner: Examiner) -> Examiner:
    _sum(examiner, (night.counts for night in state.nights))
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
