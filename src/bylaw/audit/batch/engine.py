"""The engines that judge shards: local processes or a Ray cluster. Their output is the same.

Each worker loads the pack and the world once and judges one shard at a time. A lost worker is replaced, and its shard
is tried again. On a cluster, every node must find logs, pack, world and output under the same path.
"""

import importlib
import multiprocessing
import os
import threading
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from errno import EDQUOT, ENOSPC, EROFS
from typing import Any, Protocol

from msgspec import Struct

from bylaw.audit.batch.shard import Job, Judge, Shard
from bylaw.audit.run import WorkerError, deaf_to_interrupts, rarely_collecting
from bylaw.errors import UsageError

TRIES = 3
"""Tries of a shard before it is set aside."""
_STARTS = 3
"""Workers in a row that may be lost while they start."""
_FULL = (ENOSPC, EDQUOT, EROFS)
"""Errors that every other shard would meet too."""


class Outcome(Struct, frozen=True):
    """The result of a shard: the number of conversations, or the reason why it was set aside."""

    shard: Shard
    conversations: int = 0
    why: str = ""


class Engine(Protocol):
    """Runs `Judge.judge` on every shard, and tries a shard again if its worker is lost."""

    def run(self, job: Job, shards: Iterator[Shard]) -> Iterator[Outcome]:
        """Judge the shards, in any order."""
        ...


class Lost(Exception):
    """A worker ended; the message says how."""


class LocalEngine:
    """Worker processes of this machine, one per job; a lost worker is replaced."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def start(self, job: Job) -> "_Process | _Actor":
        """Start a worker."""
        return _Process(job)

    def run(self, job: Job, shards: Iterator[Shard]) -> Iterator[Outcome]:
        """Judge the shards, each with the next free worker."""
        waiting: deque[Shard] = deque()
        tries: Counter[str] = Counter()
        busy: dict[Future[Any], tuple[_Process | _Actor, Shard | None]] = {}
        """The busy workers by their next answer, each with its shard, or None while it loads the pack."""
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
                    answer = Answer(why=f"its worker was lost {TRIES} times ({lost}); the machine may be out of memory")
                    if shard is None and (unready := unready + 1) >= _STARTS:
                        hint = "the machine may be out of memory: try fewer --jobs"
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
    """A worker's answer: conversations judged, or an error, which is final if it concerns every shard."""

    conversations: int = 0
    why: str = ""
    is_final: bool = False


class RayWorker:
    """Judges shards in a worker, with the pack and the world loaded once."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._judge: Judge | None = None

    def open(self) -> Answer:
        """Load everything."""
        try:
            self._judge = Judge(self._job)
        except Exception as error:
            return Answer(why=_line(error), is_final=True)
        self._collecting = rarely_collecting()
        self._collecting.__enter__()
        return Answer()

    def judge(self, shard: Shard) -> Answer:
        """Judge a shard."""
        assert self._judge is not None
        try:
            return Answer(self._judge.judge(shard))
        except Exception as error:
            is_full = isinstance(error, OSError) and error.errno in _FULL
            return Answer(why=f"no room for the output ({_line(error)})" if is_full else _line(error), is_final=is_full)


class _Process:
    """A pool of one process: in a larger pool, one lost worker breaks all, and its shard is unknown."""

    def __init__(self, job: Job) -> None:
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_begin, initargs=(job,))
        self._process: Any = None

    def open(self) -> "Future[Answer]":
        others = set(multiprocessing.active_children())
        with deaf_to_interrupts():
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
"""The worker of this process."""


def _begin(job: Job) -> None:
    global _own
    threading.Thread(target=_end_with_driver, daemon=True).start()
    _own = RayWorker(job)


def _end_with_driver() -> None:
    """End this worker as soon as its driver is killed."""
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
    """Actors of a Ray cluster (extra `ray`)."""

    def __init__(self, jobs: int, address: str | None = None) -> None:
        super().__init__(jobs)
        self._address = address
        self._ray: Any = None

    def start(self, job: Job) -> "_Actor":
        """Start an actor."""
        return _Actor(self._ray, job)

    def run(self, job: Job, shards: Iterator[Shard]) -> Iterator[Outcome]:
        """Judge the shards, each with the next free actor."""
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
            raise WorkerError(f"no worker can be started: {_line(error)}") from None
        except errors.RayActorError as error:
            raise Lost(_line(error)) from None

    def end(self) -> None:
        self._ray.kill(self._actor)


def _ray(*, is_remote: bool) -> Any:
    if not is_remote:
        # Under `uv run`, Ray would start each worker by `uv run` in a copy of the current folder. Ours are on the
        # driver's machine and need its own environment. Ray reads this once, when it is imported.
        os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError:
        raise UsageError("`--engine ray` needs Ray", hint="install `bylaw[ray]`") from None


def _line(error: BaseException) -> str:
    """An error in one line."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
