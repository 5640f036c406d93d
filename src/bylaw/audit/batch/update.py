"""Nightly runs: an output that is added to. Only logs that are new or have changed are read. Start at `update`.

A conversation is known by its id: one that comes again, later or corrected, takes the place of the earlier one. The
state lies in the folder of the tables, so that one rename puts both in place, and they cannot disagree.
"""

import hashlib
import json
import os
import shutil
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from bylaw import __version__
from bylaw.audit.batch.engine import Engine
from bylaw.audit.batch.part import COUNTS, Job, sync
from bylaw.audit.batch.run import WORK, Advance, begin, judged, read_parts
from bylaw.audit.batch.shard import SIZE, Shard
from bylaw.audit.batch.tables import TABLES, PlacedPart, arrow, leave_out, write_schema, write_table
from bylaw.audit.examine import Examiner, open_examiner
from bylaw.audit.output import STATE, TABLES_SCHEMA, alone_in, check_ours, dump, has_state, has_tables
from bylaw.audit.output import TABLES as FOLDER
from bylaw.audit.request import Request
from bylaw.audit.run import Report, check_tools
from bylaw.audit.summary import policies_record, summarise
from bylaw.errors import RecordError, UsageError
from bylaw.trace import Identities
from bylaw.trace.log_file import LogFile, log_file, stamp_of
from bylaw.trace.source import UNOPENED

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
    path = out / FOLDER / STATE / "state.json"
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
    before = json.loads((out / FOLDER / "schema.json").read_bytes())["criterion"]
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
    if (out / FOLDER).exists():
        os.replace(out / FOLDER, out / _BEFORE)
    os.replace(out / _NEXT, out / FOLDER)
    shutil.rmtree(out / _BEFORE, ignore_errors=True)


def recover(out: Path) -> None:
    """Finish the work of a run that was killed while it put tables in place."""
    for left in (_NEXT, _BEFORE):
        if (out / left).exists() and not (out / FOLDER).exists():
            os.replace(out / left, out / FOLDER)
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
        held = {name: log.stamp for name, log in state.files.items()}
        changed = tuple(file for file, stamp in stamps.items() if held.get(str(file)) != stamp)
        again, gone = _again(state, {str(file) for file in changed})
        new = (*again, *changed)
        work = out / WORK
        job = Job(replace(request, files=new, adds=True), (work / "parts").resolve())
        begin(work, job, examiner)
        shards, aside = judged(job, engine, size, progress) if new else ([], {})
        addition = _Addition(job, shards, aside, state)
        replaced = removed = 0
        if new:
            replaced, removed = _merge(addition, request, examiner, stamps | again, out)
        report = _report(state, examiner, request, [*addition.skipped, *gone], out)
        if not aside:
            shutil.rmtree(work, ignore_errors=True)
        known = sum(file not in again and file not in changed for file in stamps)
        read = addition.end - addition.first
        return Added(report, len(new), known, read, replaced, removed, state.conversations)


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
                # Nothing of it could be read: what was read before stays until something can.
                before.stamp, before.faults = None, held.faults
                del self.logs[name]

    def conversations(self, tables: Path) -> tuple[Any, Any]:
        """Ids and ordinals of its own conversations and of the earlier ones with the same ids, and of the earlier ones
        whose logs were read anew."""
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
        # The join holds the new ids in memory and streams the rest.
        same = earlier.join(ds.dataset(own.select(["conversation"])), "conversation", join_type="left semi").to_table()
        ordinal, inside = pc.field("ordinal"), pc.scalar(False)
        for name in self.logs.keys() & self.state.files.keys():
            held = self.state.files[name]
            inside |= (ordinal >= held.first) & (ordinal < held.end)
        return pa.concat_tables([own, same]), earlier.to_table(filter=inside)

    def note_over(self, replaced: Any) -> None:
        """Keep with each log which ones had to give way to it: should it change, they are read again."""
        logs = {name: held for name, held in (self.state.files | self.logs).items() if held.first < held.end}
        spans = sorted((held.first, held.end, name) for name, held in logs.items())

        def log_of(ordinal: int) -> str:
            """The log with this conversation; none if that log was read anew."""
            place = bisect_right(spans, ordinal, key=lambda span: span[0]) - 1
            return spans[place][2] if place >= 0 and ordinal < spans[place][1] else ""

        for row in replaced.to_pylist():
            loser, winner = log_of(row["ordinal"]), log_of(row["ordinal_max"])
            if winner in self.logs and loser and loser != winner and loser not in self.logs[winner].over:
                self.logs[winner].over.append(loser)


def _merge(
    addition: _Addition, request: Request, examiner: Examiner, stamps: dict[LogFile, tuple[int, str]], out: Path
) -> tuple[int, int]:
    """Make the tables anew: files that nothing is taken from are linked, and those of the run come beside them.

    Gives how many conversations were replaced, and how many are in no log any more.
    """
    pa, pc = arrow(), arrow("compute")
    state, before = addition.state, out / FOLDER
    found, anew = addition.conversations(before)
    last = found.group_by("conversation").aggregate([("ordinal", "max")])
    replaced = found.join(last, "conversation")
    replaced = replaced.filter(pc.not_equal(replaced.column("ordinal"), replaced.column("ordinal_max")))
    addition.note_over(replaced)
    ordinals = pa.concat_tables([replaced.select(["ordinal"]), anew.select(["ordinal"])]).column("ordinal")
    dropped = pc.unique(ordinals)
    dropped = dropped.take(pc.sort_indices(dropped))
    made = addition.work / "made"
    shutil.rmtree(made, ignore_errors=True)
    (made / STATE).mkdir(parents=True)
    _count_again(addition, examiner, dropped, before / STATE, made / STATE)
    for table in TABLES:
        for file in sorted((before / table).rglob("*.parquet")):
            keep_rows(file, dropped, target=made / table / file.relative_to(before / table))
        name = f"night-{state.nights[-1].number:05}"
        write_table(table, addition.parts, made / table, name=name, without=dropped)
    known = {str(file): stamp for file, stamp in stamps.items()}
    for name, held in addition.logs.items():
        held.stamp = known[name] if held.stamp is not None else None
    state.files |= addition.logs
    check_tools(_counted(state, examiner))
    (made / STATE / "state.json").write_bytes(msgspec.json.encode(state))
    write_schema(made, request.criterion or examiner.shelf.packs[-1].criterion)
    # All that is new has to be on the disk before it takes its place.
    for path in (*made.rglob("*"), made):
        if path.is_dir() or path.stat().st_nlink == 1:
            sync(path)
    commit(made, out)
    return len(replaced), len(dropped) - len(replaced)


def _count_again(addition: _Addition, examiner: Examiner, dropped: Any, before: Path, made: Path) -> None:
    """Take conversations that were dropped out of the counts of earlier runs, and add the counts of this one."""
    pa, pc, state = arrow(), arrow("compute"), addition.state

    def gone(first: int, end: int) -> int:
        return pc.sum(pc.and_(pc.greater_equal(dropped, first), pc.less(dropped, end))).as_py() or 0

    for night in state.nights:
        # A run without any conversation left has no file either.
        if (before / _counts_file(night.number)).is_file():
            keep_rows(before / _counts_file(night.number), dropped, target=made / _counts_file(night.number))
        if count := gone(night.first, night.end):
            night.conversations -= count
            night.counts = _sum(examiner, _counts_in(made / _counts_file(night.number)))
    left_out = gone(addition.first, addition.end)
    state.begin_night(addition.end - addition.first - left_out, addition.end, {})
    target = made / _counts_file(state.nights[-1].number)
    schema = pa.schema([("ordinal", pa.int64()), ("counts", pa.string())])
    with arrow("parquet").ParquetWriter(target, schema, compression="zstd") as out:
        for part in addition.parts:
            for batch in part.batches(COUNTS):
                rows = pa.table([pc.add(batch[0], part.first), batch[1]], schema=schema)
                out.write_table(leave_out(rows, dropped))
    state.nights[-1].counts = _sum(examiner, _counts_in(target) if left_out else addition.counts)


def _counts_file(number: int) -> str:
    """The file with the counts of a run's conversations, one row each."""
    return f"counts-{number:05}.parquet"


def _counts_in(file: Path) -> Iterator[dict[str, Any]]:
    if file.is_file():
        with arrow("parquet").ParquetFile(file) as rows:
            for batch in rows.iter_batches(columns=["counts"]):
                yield from map(json.loads, batch[0].to_pylist())


def _sum(examiner: Examiner, counts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Counts added up; the examiner then has them, too."""
    examiner.begin()
    for each in counts:
        examiner.counts.add(each)
    return examiner.counts.record()


def _counted(state: State, examiner: Examiner) -> Examiner:
    """The examiner with the counts of all runs."""
    _sum(examiner, (night.counts for night in state.nights))
    return examiner


def _report(state: State, examiner: Examiner, request: Request, aside: Sequence[RecordError], out: Path) -> Report:
    """Write `summary.json` and the rest for all that the tables hold."""
    examiner = _counted(state, examiner)
    held = [fault for log in state.files.values() for fault in log.faults]
    skipped = [*(RecordError(message, place=place, hint=hint) for message, place, hint in held), *aside]
    whole = replace(request, files=tuple(map(log_file, state.files)), adds=True)
    summary = summarise(examiner, whole, skipped)
    if (pseudonyms := request.pseudonyms) is not None:
        summary = pseudonyms.summary(summary)
    (out / "summary.json").unlink(missing_ok=True)
    for name, record in (("policies", policies_record(examiner.shelf.packs, examiner.counts)), ("summary", summary)):
        aside_path = out / f".{name}.json.new"
        dump(aside_path, record)
        os.replace(aside_path, out / f"{name}.json")
    return Report(summary, out, tuple(skipped), Identities())
