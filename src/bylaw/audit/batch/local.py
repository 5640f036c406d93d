"""The engine of one machine: worker processes, each with one shard at a time, replaced when they are lost."""

import multiprocessing
import os
import threading
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from errno import EDQUOT, ENOSPC, EROFS
from multiprocessing.connection import Connection, wait
from typing import Any, Literal

from bylaw.audit.batch.engine import TRIES, Outcome, told
from bylaw.audit.batch.part import Job, Judge
from bylaw.audit.batch.shard import Shard
from bylaw.audit.batch.without_pandas import spare_pandas
from bylaw.audit.collecting import rarely_collecting
from bylaw.audit.parallel import WorkerError, deaf_to_interrupts

_FULL = (ENOSPC, EDQUOT, EROFS)
"""No other shard would fare better."""
_STARTS = 3
"""How many workers in a row may be lost before they are ready."""
_PATIENCE = 5.0
"""Seconds for a worker to end."""
Message = tuple[Literal["ready", "done", "failed", "stop"], int | str]


class LocalEngine:
    """A pool of our own: that of the standard library is broken as a whole by one lost worker, and cannot say whose
    work it was."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._context = multiprocessing.get_context("spawn")

    def run(self, job: Job, shards: Iterator[Shard]) -> Iterator[Outcome]:
        """Judge the shards, in the order in which workers are free."""
        waiting: deque[Shard] = deque()
        tries: Counter[str] = Counter()
        workers: list[_Worker] = []
        unready = 0
        try:
            while True:
                while len(waiting) < self._jobs and (shard := next(shards, None)) is not None:
                    waiting.append(shard)
                while waiting and len(workers) < self._jobs:
                    workers.append(_Worker(self._context, job))
                for worker in workers:
                    if worker.is_free and waiting:
                        worker.give(waiting.popleft())
                busy = [worker for worker in workers if worker.shard is not None or not worker.is_ready]
                if not busy or (not waiting and all(worker.shard is None for worker in workers)):
                    return
                for worker in _heard(busy):
                    message = worker.hear()
                    shard = worker.shard
                    match message:
                        case ("ready", _):
                            unready = 0
                        case ("done", int(count)) if shard is not None:
                            worker.shard = None
                            yield Outcome(shard, count)
                        case ("stop", why):
                            raise WorkerError(str(why), hint="the run can be taken up again with the same command")
                        case _:
                            why = str(message[1]) if message is not None else worker.end()
                            if message is None:
                                workers.remove(worker)
                                unready += not worker.is_ready
                            if unready >= _STARTS:
                                hint = "perhaps there was not enough memory; try fewer --jobs"
                                raise WorkerError("workers end before they are ready", hint=hint)
                            worker.shard = None
                            if shard is not None:
                                tries[shard.key] += 1
                                if tries[shard.key] < TRIES:
                                    waiting.appendleft(shard)
                                else:
                                    yield Outcome(shard, why=why)
        finally:
            for worker in workers:
                worker.end()


class _Worker:
    """A process that judges shards, and the pipe to it."""

    def __init__(self, context: Any, job: Job) -> None:
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_work, args=(job, other), daemon=True)
        with deaf_to_interrupts():
            self.process.start()
        other.close()
        self.shard: Shard | None = None
        self.is_ready = False
        self._is_heard = True

    @property
    def is_free(self) -> bool:
        return self.is_ready and self.shard is None

    def give(self, shard: Shard) -> None:
        """Have a shard judged."""
        self.shard = shard
        try:
            self.pipe.send(shard)
        except OSError:
            # It is lost, which is told where all are heard.
            return

    def hear(self) -> Message | None:
        """What it says; None where it is lost."""
        try:
            message: Message = self.pipe.recv()
        except (EOFError, OSError):
            self._is_heard = False
            return None
        self.is_ready = True
        return message

    def end(self) -> str:
        """End it, however it is; how it ended."""
        self.pipe.close()
        # One that is idle, or lost, ends by itself; one that is at work has to be ended.
        self.process.join(0 if self._is_heard and self.shard is not None else _PATIENCE)
        code = self.process.exitcode
        if code is None:
            self.process.kill()
            self.process.join()
        return f"its worker was lost {TRIES} times (status {code}); perhaps there was not enough memory"


def _heard(workers: list[_Worker]) -> list[_Worker]:
    """Those that have said something, or are lost."""
    pipes = {worker.pipe: worker for worker in workers}
    return [pipes[pipe] for pipe in wait(list(pipes)) if pipe in pipes]


def _work(job: Job, pipe: Connection) -> None:
    """A worker's life, until the driver closes the pipe: between shards, or while a shard is judged."""
    threading.Thread(target=_end_with_driver, daemon=True).start()
    with suppress(EOFError, ConnectionError):
        _judge_all(job, pipe)


def _judge_all(job: Job, pipe: Connection) -> None:
    """Load everything once, then judge what comes through the pipe."""
    try:
        spare_pandas()
        judge = Judge(job)
    except BaseException as error:
        pipe.send(("stop", told(error)))
        return
    with rarely_collecting():
        pipe.send(("ready", 0))
        while True:
            shard = pipe.recv()
            try:
                message: Message = ("done", judge.judge(shard))
            except Exception as error:
                is_full = isinstance(error, OSError) and error.errno in _FULL
                message = ("stop" if is_full else "failed", told(error))
            pipe.send(message)


def _end_with_driver() -> None:
    """A worker whose driver was killed has nobody to tell: it ends at once rather than with its shard."""
    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
        os._exit(1)
