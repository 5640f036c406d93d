"""Nightly runs: an output that is added to. Only logs that are new or have changed are read. Start at `update`.

A conversation is known by its id: one that comes again, later or corrected, takes the place of the earlier one.
"""

import os
import shutil
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.audit.batch.counts import add_counts, counts_record
from bylaw.audit.batch.engine import Engine
from bylaw.audit.batch.part import COUNTS, Job, read_entry, sync
from bylaw.audit.batch.replacing import commit, kept_rows, parquet_files, recover
from bylaw.audit.batch.run import WORK, Advance, begin, judged
from bylaw.audit.batch.schema import TABLES, arrow
from bylaw.audit.batch.shard import SIZE, Shard
from bylaw.audit.batch.state import HeldLog, Night, State, counts_file, read_state, recount
from bylaw.audit.batch.tables import PlacedPart, batches, write_schema, write_table
from bylaw.audit.examine import Examiner, open_examiner
from bylaw.audit.output import STATE, alone_in, check_ours
from bylaw.audit.output import TABLES as FOLDER
from bylaw.audit.request import Request
from bylaw.audit.run import Report, check_tools, dump
from bylaw.audit.summary import policies_record, summarise
from bylaw.errors import RecordError, UsageError
from bylaw.trace import Identities
from bylaw.trace.log_file import LogFile, log_file, stamp_of
from bylaw.trace.source import UNOPENED


class Added(Struct, frozen=True):
    """What a run has done."""

    report: Report
    read: int
    """Logs that were read."""
    known: int
    """Logs that were as they had been, and not read."""
    conversations: int
    """Conversations in the logs that were read."""
    replaced: int
    """Conversations that others have taken the place of."""
    removed: int
    """Conversations that are in no log any more."""
    held: int
    """Conversations in the tables now."""


def update(
    request: Request, out: Path, engine: Engine, *, size: int = SIZE, progress: Callable[[Advance], None] | None = None
) -> Added:
    """Audit what is new in the logs and add it to the tables in `out`."""
    arrow()
    if request.answers is not None:
        raise UsageError("a model is asked in one process only", hint="leave out --llm, or --update")
    examiner = open_examiner(request)
    out.mkdir(parents=True, exist_ok=True)
    with alone_in(out, surely=True):
        check_ours(out, tables=True, adds=True)
        recover(out)
        state = read_state(out, request, examiner)
        # By their resolved paths: tomorrow's run may start elsewhere, or name the same folder in another way.
        files = [file.resolve() if isinstance(file, Path) else file for file in request.files]
        stamps = {file: stamp_of(file)[1:] for file in dict.fromkeys(files)}
        changed = tuple(file for file, stamp in stamps.items() if not state.holds(str(file), stamp))
        again, gone = _again(state, {str(file) for file in changed})
        new = (*again, *changed)
        fresh = replace(request, files=new, adds=True)
        work = out / WORK
        job = Job(fresh, (work / "parts").resolve())
        begin(work, job, examiner)
        shards, aside = judged(job, engine, size, progress) if new else ([], {})
        addition = _Addition(job, shards, aside, state)
        addition.skipped += gone
        replaced = 0
        if new:
            known = {str(file): stamp for file, stamp in (stamps | again).items()}
            replaced = _merge(addition, request, examiner, known, out)
        report = _tell(state, examiner, request, addition.skipped, out)
        if not aside:
            shutil.rmtree(work, ignore_errors=True)
        unread = sum(file not in again and file not in changed for file in stamps)
        read = addition.end - addition.first
        return Added(report, len(new), unread, read, replaced - addition.removed, addition.removed, state.conversations)


def _again(state: State, changed: set[str]) -> tuple[dict[LogFile, tuple[int, str]], list[RecordError]]:
    """The logs to read again beside those that have changed, with their stamps; and which of them are gone."""
    names, stamps, faults = state.entangled(changed), dict[str, tuple[int, str]](), list[RecordError]()
    for name in names:
        try:
            stamps[name] = stamp_of(log_file(name))[1:]
        except (OSError, UsageError):
            hint = "put it back and run again with it"
            faults.append(RecordError("is gone; what others took the place of is not known", place=name, hint=hint))
    # What gave way to a log that is gone must not take its place by being read again.
    left = set(names) - stamps.keys()
    while more := {loser for name in left for loser in state.files[name].over} - left:
        left |= more
    return {log_file(name): stamp for name, stamp in stamps.items() if name not in left}, faults


class _Addition:
    """The parts of a run, each where its conversations will stand."""

    def __init__(self, job: Job, shards: list[Shard], aside: dict[str, str], state: State) -> None:
        self.state = state
        self.work = job.parts.parent
        self.first = self.end = state.next
        self.parts: list[PlacedPart] = []
        self.counts: list[dict[str, Any]] = []
        self.logs: dict[str, HeldLog] = {}
        self.skipped: list[RecordError] = []
        """What was set aside in this run."""
        self.removed = 0
        """Earlier conversations that their log no longer has, nor any other that was read."""
        for shard in shards:
            file = job.request.files[shard.file]
            held = self.logs.setdefault(str(file), HeldLog((0, ""), self.end, self.end))
            entry = read_entry(job.part(shard))
            if entry is None:
                why = aside.get(shard.key, "its part is gone")
                fault = RecordError(f"set aside: {why}", place=shard.place(file))
                pseudonyms = job.request.pseudonyms
                self.skipped.append(fault if pseudonyms is None else pseudonyms.fault(fault))
                held.stamp = None
                continue
            held.faults += [(message, place, hint) for message, place, hint in entry["faults"]]
            if any(message.startswith(UNOPENED) for message, *_ in held.faults):
                held.stamp = None
            self.parts.append(PlacedPart(job.part(shard), self.end, {}))
            self.counts.append(entry["counts"])
            self.end += entry["conversations"]
            held.end = self.end
        for name, held in list(self.logs.items()):
            before = state.files.get(name)
            if before is not None and held.stamp is None and held.first == held.end:
                # Nothing of it could be read: what was read before stays until something can.
                before.stamp, before.faults = None, held.faults
                del self.logs[name]

    def ids(self) -> Any:
        """Ids and ordinals of all its conversations."""
        pa = arrow()
        found = [
            pa.table({"conversation": batch.column(0), "ordinal": arrow("compute").add(batch.column(1), part.first)})
            for part in self.parts
            for batch in batches(part.folder, "conversations", ["conversation", "ordinal"])
        ]
        empty = pa.table({"conversation": pa.array([], pa.string()), "ordinal": pa.array([], pa.int64())})
        return pa.concat_tables([empty, *found])

    def repeated(self, ids: Any) -> Any:
        """The ordinals of its conversations that come again later in the same run."""
        pa, pc = arrow(), arrow("compute")
        found = ids.group_by("conversation").aggregate([("ordinal", "max"), ("ordinal", "count")])
        twice = found.filter(pc.greater(found.column("ordinal_count"), 1))
        again = ids.filter(pc.is_in(ids.column("conversation"), value_set=_one(twice.column("conversation"))))
        last = set(twice.column("ordinal_max").to_pylist())
        return pa.array(sorted(n for n in again.column("ordinal").to_pylist() if n not in last), pa.int64())

    def note_over(self, ids: Any, repeated: Any, tables: Path) -> None:
        """Keep with each log which ones had to give way to it: should it change, they are read again."""
        pc = arrow("compute")
        lost: list[dict[str, Any]] = ids.filter(pc.is_in(ids.column("ordinal"), value_set=repeated)).to_pylist()
        lost += _come_again(ids, tables).to_pylist()
        logs = {**{name: held for name, held in self.state.files.items() if name not in self.logs}, **self.logs}
        spans = sorted((held.first, held.end, name) for name, held in logs.items() if held.first < held.end)
        again = arrow().array({row["conversation"] for row in lost}, arrow().string())
        rows = ids.filter(pc.is_in(ids.column("conversation"), value_set=again)).to_pylist()
        last = {row["conversation"]: row["ordinal"] for row in sorted(rows, key=lambda row: row["ordinal"])}
        for row in lost:
            loser, winner = _log_at(spans, row["ordinal"]), _log_at(spans, last[row["conversation"]])
            if winner in self.logs and loser and loser != winner and loser not in self.logs[winner].over:
                self.logs[winner].over.append(loser)

    def replaced(self, ids: Any, tables: Path) -> Any:
        """The ordinals of earlier conversations whose log was read anew, or whose id has come again."""
        pc, ds = arrow("compute"), arrow("dataset")
        again = _come_again(ids, tables).column("ordinal")
        spans = [(held.first, held.end) for name in self.logs if (held := self.state.files.get(name)) is not None]
        anew = again.slice(0, 0)
        if spans and (tables / "conversations").is_dir():
            ordinal = pc.field("ordinal")
            inside = pc.scalar(False)
            for first, end in spans:
                inside |= (ordinal >= first) & (ordinal < end)
            anew = ds.dataset(tables / "conversations").to_table(columns=["ordinal"], filter=inside).column("ordinal")
        found = pc.unique(arrow().chunked_array([*again.chunks, *anew.chunks], arrow().int64()))
        self.removed = len(found) - len(again)
        return found.take(pc.sort_indices(found))


def _come_again(ids: Any, tables: Path) -> Any:
    """Earlier conversations whose id is among `ids`; the join holds the new ids in memory and streams the rest."""
    ds, columns = arrow("dataset"), ["conversation", "ordinal"]
    if not (tables / "conversations").is_dir():
        return ids.slice(0, 0).select(columns)
    earlier = ds.dataset(tables / "conversations")
    earlier = earlier.replace_schema(arrow().schema([earlier.schema.field(name) for name in columns]))
    return earlier.join(ds.dataset(ids.select(["conversation"])), "conversation", join_type="left semi").to_table()


def _merge(
    addition: _Addition, request: Request, examiner: Examiner, stamps: dict[str, tuple[int, str]], out: Path
) -> int:
    """Make the tables anew: files that nothing is taken from are linked, and those of the run come beside them."""
    state, before = addition.state, out / FOLDER
    ids = addition.ids()
    repeated, replaced = addition.repeated(ids), addition.replaced(ids, before)
    addition.note_over(ids, repeated, before)
    made = addition.work / "made"
    shutil.rmtree(made, ignore_errors=True)
    (made / STATE).mkdir(parents=True)
    for night in state.nights:
        _take_out(night, examiner, replaced, before / STATE, made / STATE)
    night = _count_in(addition, examiner, repeated, made / STATE)
    for table in TABLES:
        for file in parquet_files(before / table):
            kept_rows(file, replaced, target=made / table / file.relative_to(before / table))
        name = f"night-{night.number:05}"
        write_table(table, addition.parts, made / table, name=name, without=repeated)
    for name, held in addition.logs.items():
        held.stamp = stamps[name] if held.stamp is not None else None
        state.files[name] = held
    check_tools(_counted(state, examiner))
    (made / STATE / "state.json").write_bytes(msgspec.json.encode(state))
    _write_schema(made, request, examiner)
    _settle(made)
    commit(made, out)
    return len(repeated) + len(replaced)


def _take_out(night: Night, examiner: Examiner, replaced: Any, before: Path, made: Path) -> None:
    """Take conversations that were replaced out of what an earlier run has counted."""
    pc = arrow("compute")
    inside = pc.and_(pc.greater_equal(replaced, night.first), pc.less(replaced, night.end))
    gone = replaced.filter(inside)
    target = counts_file(made, night.number)
    # Of a run of which nothing is left there is no file either.
    if (source := counts_file(before, night.number)).is_file():
        kept_rows(source, gone, target=target)
    if len(gone):
        night.conversations -= len(gone)
        night.counts = recount(examiner, _counts(target))


def _count_in(addition: _Addition, examiner: Examiner, repeated: Any, made: Path) -> Night:
    """Write down what was counted in this run, conversation by conversation and in all."""
    pa, pc, pq = arrow(), arrow("compute"), arrow("parquet")
    night = addition.state.begin_night(addition.end - addition.first - len(repeated), addition.end)
    target = counts_file(made, night.number)
    schema = pa.schema([("ordinal", pa.int64()), ("counts", pa.string())])
    with pq.ParquetWriter(target, schema, compression="zstd") as out:
        for part in addition.parts:
            for batch in batches(part.folder, COUNTS):
                rows = pa.Table.from_batches([batch])
                rows = rows.set_column(0, "ordinal", pc.add(rows.column("ordinal"), part.first))
                out.write_table(rows.filter(pc.invert(pc.is_in(rows.column("ordinal"), value_set=repeated))))
    if len(repeated):
        night.counts = recount(examiner, _counts(target))
    else:
        examiner.begin()
        for counts in addition.counts:
            add_counts(examiner, counts)
        night.counts = counts_record(examiner)
    return night


def _counts(file: Path) -> Iterator[str]:
    if file.is_file():
        with arrow("parquet").ParquetFile(file) as rows:
            for batch in rows.iter_batches(columns=["counts"]):
                yield from batch.column(0).to_pylist()


def _counted(state: State, examiner: Examiner) -> Examiner:
    """The examiner with the counts of all runs."""
    examiner.begin()
    for night in state.nights:
        add_counts(examiner, night.counts)
    return examiner


def _write_schema(made: Path, request: Request, examiner: Examiner) -> None:
    pq = arrow("parquet")
    rows = {table: sum(pq.read_metadata(file).num_rows for file in parquet_files(made / table)) for table in TABLES}
    write_schema(made, request.criterion or examiner.shelf.packs[-1].criterion, rows)


def _tell(state: State, examiner: Examiner, request: Request, aside: Sequence[RecordError], out: Path) -> Report:
    """Write `summary.json` and the rest for all that the tables hold."""
    examiner = _counted(state, examiner)
    held = [fault for log in state.files.values() for fault in log.faults]
    skipped = [*(RecordError(message, place=place, hint=hint) for message, place, hint in held), *aside]
    whole = replace(request, files=tuple(map(log_file, state.files)), adds=True)
    summary = summarise(examiner, whole, skipped)
    if (pseudonyms := request.pseudonyms) is not None:
        summary = pseudonyms.summary(summary)
    (out / "summary.json").unlink(missing_ok=True)
    _replace_json(out / "policies.json", policies_record(examiner.shelf.packs, examiner.tally))
    _replace_json(out / "summary.json", summary)
    return Report(summary, out, tuple(skipped), Identities())


def _replace_json(path: Path, record: Any) -> None:
    aside = path.with_name(f".{path.name}.new")
    dump(aside, record)
    os.replace(aside, path)


def _settle(folder: Path) -> None:
    """Have all that is new on the disk before it takes its place."""
    for path in (*folder.rglob("*"), folder):
        if path.is_dir() or path.stat().st_nlink == 1:
            sync(path)


def _log_at(spans: list[tuple[int, int, str]], ordinal: int) -> str:
    """The log whose conversation has an ordinal; empty where that log is being read anew."""
    place = bisect_right(spans, ordinal, key=lambda span: span[0]) - 1
    return spans[place][2] if place >= 0 and ordinal < spans[place][1] else ""


def _one(column: Any) -> Any:
    """A column in one piece."""
    return arrow().concat_arrays([arrow().array([], column.type), *column.chunks])
