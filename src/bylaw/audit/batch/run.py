"""Runs an audit in shards: splits the logs, judges each part, and combines the results. Start at `audit_in_shards`.

A killed run resumes if the same command is run again. The workers are local processes or Ray actors.
"""

import hashlib
import importlib
import json
import multiprocessing
import os
import pickle
import shutil
import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from errno import EDQUOT, ENOSPC, EROFS
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

import bylaw
from bylaw.audit.batch.shard import EXAMINED, SIZE, Job, Judge, Shard, cut, read_entry
from bylaw.audit.batch.tables import TABLES, arrow, place_parts, write_schema, write_table
from bylaw.audit.output import TABLES as FOLDER
from bylaw.audit.output import TABLES_SCHEMA, LineFiles, check_overwrite, keep_earlier_audit, lock_folder, replace_files
from bylaw.audit.request import Request
from bylaw.audit.run import (
    Examiner,
    Report,
    WorkerError,
    check_tools,
    ignoring_interrupts,
    rarely_collecting,
    write_summary,
)
from bylaw.errors import RecordError, UsageError
from bylaw.trace import Identities
from bylaw.trace.source import size_of, stamp_of

TRIES = 3
"""The maximum number of attempts per shard. After this many failures, the shard is skipped."""
_STARTS = 3
"""The maximum number of consecutive workers that may die during start-up."""
_FULL = (ENOSPC, EDQUOT, EROFS)
"""Operating-system errors that would recur in every shard, such as a full disk."""


class Outcome(Struct, frozen=True):
    """The result of a shard: the number of conversations, or why the shard was skipped."""

    shard: Shard
    conversations: int = 0
    why: str = ""


class Engine(Protocol):
    """Runs `Judge.judge` on every shard. If a worker dies, its shard is judged again."""

    def run(self, job: Job, shards: Iterator[Shard]) -> Iterator[Outcome]:
        """Judge the shards in any order."""
        ...


class Lost(Exception):
    """A worker died. The message says how."""


class LocalEngine:
    """Worker processes on this machine. A worker that dies is replaced."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def start(self, job: Job) -> "_Process | _Actor":
        return _Process(job)

    def run(self, job: Job, shards: Iterator[Shard]) -> Iterator[Outcome]:
        """Judge the shards, giving each to the next free worker."""
        waiting: deque[Shard] = deque()
        tries: Counter[str] = Counter()
        busy: dict[Future[Any], tuple[_Process | _Actor, Shard | None]] = {}
        """The workers, keyed by the answer each will give. The shard is None while a worker is still loading the pack.
        """
        free: list[_Process | _Actor] = []
        unready = 0
        try:
            while True:
                while len(waiting) < self._jobs and (shard := next(shards, None)) is not None:
                    waiting.append(shard)
                while waiting and free:
                    worker, shard = free.pop(), waiting.popleft()
                    busy[worker.judge(shard)] = worker, shard
                opening = sum(shard is None for _, shard in busy.values())
                for _ in range(min(self._jobs - len(busy), len(waiting) - opening)):
                    worker = self.start(job)
                    busy[worker.open()] = worker, None
                if not waiting and len(busy) == opening:
                    return
                future = next(iter(wait(busy, return_when=FIRST_COMPLETED).done))
                worker, shard = busy.pop(future)
                try:
                    answer = worker.answer(future)
                    free.append(worker)
                except Lost as lost:
                    worker.end()
                    why = f"the worker of this part was lost {TRIES} times ({lost}); the machine may be out of memory"
                    answer = Answer(why=why)
                    if shard is None and (unready := unready + 1) >= _STARTS:
                        hint = "the machine may be out of memory: try a smaller --jobs"
                        raise WorkerError(f"workers exit before they finish starting ({lost})", hint=hint) from None
                else:
                    unready = 0
                if answer.is_final:
                    raise WorkerError(answer.why, hint="run the same command again to resume")
                if shard is None:
                    continue
                tries[shard.key] += 1
                if answer.why and tries[shard.key] < TRIES:
                    waiting.appendleft(shard)
                else:
                    yield Outcome(shard, answer.conversations, answer.why)
        finally:
            for worker in [*free, *(worker for worker, _ in busy.values())]:
                worker.end()


class Answer(Struct, frozen=True):
    """A worker's answer: the number of conversations, or an error.

    If the error is final, it would recur in every shard.
    """

    conversations: int = 0
    why: str = ""
    is_final: bool = False


class RayWorker:
    """Judges shards in a Ray actor. The pack and the ground-truth database are loaded only once."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._judge: Judge | None = None

    def open(self) -> Answer:
        try:
            self._judge = Judge(self._job)
        except Exception as error:
            return Answer(why=_line(error), is_final=True)
        self._collecting = rarely_collecting()
        self._collecting.__enter__()
        return Answer()

    def judge(self, shard: Shard) -> Answer:
        assert self._judge is not None
        try:
            return Answer(self._judge.judge(shard))
        except Exception as error:
            if isinstance(error, OSError) and error.errno in _FULL:
                return Answer(why=f"the output cannot be written: {os.strerror(error.errno).lower()}", is_final=True)
            return Answer(why=_line(error))


class _Process:
    """A pool with one process. In a larger pool, it would be unknown which shard the dead worker had."""

    def __init__(self, job: Job) -> None:
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_begin, initargs=(job,))
        self._process: Any = None

    def open(self) -> "Future[Answer]":
        others = set(multiprocessing.active_children())
        with ignoring_interrupts():
            opening = self._pool.submit(_open)
        self._process = next(iter(set(multiprocessing.active_children()) - others), None)
        return opening

    def judge(self, shard: Shard) -> "Future[Answer]":
        return self._pool.submit(_judge, shard)

    def answer(self, future: "Future[Answer]") -> Answer:
        try:
            return future.result()
        except BrokenProcessPool:
            if self._process is None:
                raise Lost("no status") from None
            self._process.join()
            raise Lost(f"status {self._process.exitcode}") from None

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
        self._pool.shutdown(cancel_futures=True)


_own: RayWorker | None = None


def _begin(job: Job) -> None:
    global _own
    threading.Thread(target=_end_with_driver, daemon=True).start()
    _own = RayWorker(job)


def _end_with_driver() -> None:
    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
        os._exit(1)


def _open() -> Answer:
    assert _own is not None
    return _own.open()


def _judge(shard: Shard) -> Answer:
    assert _own is not None
    return _own.judge(shard)


class RayEngine(LocalEngine):
    """Runs actors in a Ray cluster. Requires the `ray` extra."""

    def __init__(self, jobs: int, address: str | None = None) -> None:
        super().__init__(jobs)
        self._address = address
        self._ray: Any = None

    def start(self, job: Job) -> "_Actor":
        return _Actor(self._ray, job)

    def run(self, job: Job, shards: Iterator[Shard]) -> Iterator[Outcome]:
        """Judge the shards, giving each to the next free actor."""
        self._ray = ray = _ray(is_remote=self._address is not None)
        if ray.is_initialized():
            yield from super().run(job, shards)
            return
        try:
            ray.init(
                address=self._address,
                num_cpus=None if self._address else self._jobs,
                include_dashboard=False,
                log_to_driver=False,
                configure_logging=False,
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UsageError(f"no Ray cluster found: {_line(error)}", place=self._address or "") from None
        try:
            yield from super().run(job, shards)
        finally:
            ray.shutdown()


class _Actor:
    def __init__(self, ray: Any, job: Job) -> None:
        self._ray = ray
        self._actor = ray.remote(num_cpus=1)(RayWorker).remote(job)

    def open(self) -> "Future[Answer]":
        return self._actor.open.remote().future()

    def judge(self, shard: Shard) -> "Future[Answer]":
        return self._actor.judge.remote(shard).future()

    def answer(self, future: "Future[Answer]") -> Answer:
        errors = self._ray.exceptions
        try:
            return future.result()
        except errors.ActorUnschedulableError as error:
            raise WorkerError(f"no worker could be started: {_line(error)}") from None
        except errors.RayActorError as error:
            raise Lost(_line(error)) from None

    def end(self) -> None:
        self._ray.kill(self._actor)


def _ray(*, is_remote: bool) -> Any:
    if not is_remote:
        # Under `uv run`, Ray would start each worker with `uv run` in a copy of the current folder, but the workers
        # need the driver's own environment. Ray reads this variable only once, on import.
        os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError:
        raise UsageError("`--engine ray` needs Ray", hint="install `bylaw[ray]`") from None


def _line(error: BaseException) -> str:
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


Format = Literal["jsonl", "parquet"]
WORK = ".run"
"""The output folder for the finished shards of an unfinished run."""


class Advance(Struct, frozen=True):
    conversations: int
    """The number of conversations that this run judged."""
    done: int
    """The number of bytes of logs that this run and earlier runs judged."""
    own: int
    """The number of bytes of logs that this run judged."""
    total: int


def audit_in_shards(
    request: Request,
    out: Path,
    engine: Engine,
    *,
    formats: Collection[Format] = ("parquet",),
    size: int = SIZE,
    progress: Callable[[Advance], None] | None = None,
) -> Report:
    """Audit every conversation in the files. Write the tables or JSON lines, `summary.json` and `policies.json`."""
    arrow()
    if request.answers is not None:
        raise UsageError("only a single process can ask a model", hint="remove --llm, or --format parquet")
    examiner = Examiner(request)
    out.mkdir(parents=True, exist_ok=True)
    with lock_folder(out):
        check_overwrite(out, tables="parquet" in formats)
        work = out / WORK
        job = Job(request, (work / "parts").resolve(), has_lines="jsonl" in formats)
        begin(work, job, examiner)
        shards, aside = judged(job, engine, size, progress)
        report = _put_together(examiner, job, shards, aside, out, formats)
        if not aside:
            shutil.rmtree(work, ignore_errors=True)
        return report


def begin(work: Path, job: Job, examiner: Examiner) -> None:
    """Resume the run in this folder. Start over if the pack, ground-truth database, code or options have changed."""
    mark = _mark(job, examiner)
    note = work / "run.json"
    try:
        is_same = json.loads(note.read_bytes())["mark"] == mark
    except (OSError, ValueError, KeyError, TypeError):
        is_same = False
    if not is_same:
        shutil.rmtree(work, ignore_errors=True)
    (work / "parts").mkdir(parents=True, exist_ok=True)
    for left in (work / "parts").glob(".*"):
        shutil.rmtree(left, ignore_errors=True)
    written = note.with_suffix(".new")
    written.write_text(json.dumps({"mark": mark, "bylaw": bylaw.__version__}), encoding="utf-8")
    os.replace(written, note)


def _mark(job: Job, examiner: Examiner) -> str:
    """Return a digest of the settings that all shards must share.

    The log is not included, because a shard's key identifies it.
    """
    request = job.request
    held = [request.world, request.document, request.tasks]
    record = [
        own_code(),
        TABLES_SCHEMA,
        TABLES,
        [[pack.name, pack.digest] for pack in examiner.shelf.packs],
        [stamp_of(path) if path is not None else None for path in held],
        request.mode,
        request.agent,
        request.adds,
        job.has_lines,
        msgspec.to_builtins(request.columns),
        pseudonyms.mark if (pseudonyms := request.pseudonyms) is not None else None,
        msgspec.to_builtins(request.attested),
    ]
    return hashlib.blake2b(json.dumps(record).encode(), digest_size=16).hexdigest()


@cache
def own_code() -> str:
    """Return the digest of the running code. Computed only once, because later edits do not affect this process."""
    return code_digest(Path(bylaw.__file__).parent)


def code_digest(package: Path) -> str:
    """Return a digest of a package's code. The version is not enough, because two checkouts of a version may differ."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package).as_posix()} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def judged(
    job: Job, engine: Engine, size: int, progress: Callable[[Advance], None] | None
) -> tuple[list[Shard], dict[str, str]]:
    """Return all shards in order, and the reason for each skipped shard."""
    request = job.request
    names = request.names()
    sources = [request.source(file) for file in request.files]
    shards: list[Shard] = []
    aside: dict[str, str] = {}
    total = sum(map(size_of, request.files))
    done = own = conversations = 0

    def tell() -> None:
        if progress is not None:
            progress(Advance(conversations, done, own, total))

    def pending() -> Iterator[Shard]:
        nonlocal done
        for shard in cut(sources, size, list(names.values())):
            shards.append(shard)
            if read_entry(job.part(shard)) is None:
                yield shard
            else:
                done += shard.size
                tell()

    for outcome in engine.run(job, pending()):
        if outcome.why:
            aside[outcome.shard.key] = outcome.why
        conversations += outcome.conversations
        done += outcome.shard.size
        own += outcome.shard.size
        tell()
    return shards, aside


def read_parts(
    job: Job, shards: list[Shard], aside: dict[str, str]
) -> Iterator[tuple[Shard, dict[str, Any] | None, list[RecordError]]]:
    """Yield each shard with its entry (None if it was skipped) and the errors in its logs, without private values."""
    pseudonyms = job.request.pseudonyms
    for shard in shards:
        entry = read_entry(job.part(shard))
        if entry is not None:
            yield (
                shard,
                entry,
                [RecordError(message, place=place, hint=hint) for message, place, hint in entry["faults"]],
            )
            continue
        why = aside.get(shard.key, "the output for this shard is missing")
        fault = RecordError(f"set aside: {why}", place=shard.place(job.request.files[shard.file]))
        yield shard, None, [fault if pseudonyms is None else pseudonyms.fault(fault)]


def _put_together(
    examiner: Examiner, job: Job, shards: list[Shard], aside: dict[str, str], out: Path, formats: Collection[Format]
) -> Report:
    skipped: list[RecordError] = []
    folders: list[Path] = []
    counts: list[int] = []
    for shard, entry, faults in read_parts(job, shards, aside):
        skipped += faults
        if entry is not None:
            examiner.counts.add(entry["counts"])
            folders.append(job.part(shard))
            counts.append(entry["conversations"])
    if skipped and not sum(counts):
        keep_earlier_audit(out, skipped)
    check_tools(examiner)
    names = Identities()
    parts = list(place_parts(folders, counts, names))
    made = job.parts.parent / "made"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    repeated = sum(len(part.renamed) for part in parts)
    summary = write_summary(made, examiner, job.request, skipped, repeated)
    if "parquet" in formats:
        for table in TABLES:
            rows = (batch for part in parts for placed in part.placed(table) for batch in placed.to_batches())
            write_table(table, rows, made / FOLDER / table)
        write_schema(made / FOLDER, summary["criterion"])
    if "jsonl" in formats:
        with LineFiles(made) as lines:
            for folder in folders:
                with (folder / EXAMINED).open("rb") as stored:
                    while stored.peek(1):
                        lines.write(pickle.load(stored))
    replace_files(made, out)
    return Report(summary, out, tuple(skipped), names)
