"""The same audit on several cores: each worker takes every n-th conversation, and the parts are joined in order."""

import multiprocessing
import pickle
import signal
import tempfile
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bylaw.audit.coverage import LogCoverage
from bylaw.audit.examine import Examined, Examiner, open_examiner
from bylaw.audit.request import Request
from bylaw.audit.tally import Tally
from bylaw.errors import BylawError, RecordError


class WorkerError(BylawError):
    """A process that audits a share of the conversations is gone."""

    code = "BY103"


def examine_in_parts(request: Request, total: Examiner, aside: Path) -> Iterator[Examined | RecordError]:
    """Examine with `request.jobs` workers; yields in the order of files and conversations, counts into `total`.

    Parts wait on disk, in the folder `aside`, so memory stays that of one conversation a worker.
    """
    jobs = request.jobs
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="parts-", dir=aside) as folder:
        targets = [Path(folder) / f"part-{number}" for number in range(jobs)]
        others = set(multiprocessing.active_children())
        pool = ProcessPoolExecutor(jobs, mp_context=context)
        try:
            try:
                with deaf_to_interrupts():
                    work = [pool.submit(_examine_part, request, number, jobs, at) for number, at in enumerate(targets)]
            except OSError as error:
                # A worker that ends while the next is being started takes what they share with it.
                raise BrokenProcessPool from error
            for part in work:
                tally, coverage = part.result()
                total.tally += tally
                total.coverage += coverage
        except BaseException as error:
            # The pool itself forgets those that it was just starting.
            for worker in set(multiprocessing.active_children()) - others:
                worker.terminate()
            if isinstance(error, BrokenProcessPool):
                hint = "perhaps there was not enough memory; try fewer --jobs"
                raise WorkerError("a worker ended before its work was done", hint=hint) from None
            raise
        finally:
            pool.shutdown(cancel_futures=True)
        yield from _joined(targets)


@contextmanager
def deaf_to_interrupts() -> Generator[None]:
    """Workers started here inherit that Ctrl-C is not for them: this process ends them, without a trace of each."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _examine_part(request: Request, number: int, jobs: int, target: Path) -> tuple[Tally, LogCoverage]:
    examiner = open_examiner(request)
    with target.open("wb") as out:
        for file in range(len(request.files)):
            for part in examiner.examine_all(request, share=(number, jobs), only=file):
                pickle.dump(part, out)
            pickle.dump(None, out)
    return examiner.tally, examiner.coverage


def _joined(targets: list[Path]) -> Iterator[Examined | RecordError]:
    """One from each part in turn, file by file: the order in which the conversations stand."""
    streams = [target.open("rb") for target in targets]
    try:
        live = list(streams)
        while live:
            ended = 0
            turn = list(live)
            while turn:
                remaining: list[Any] = []
                for stream in turn:
                    try:
                        part: Any = pickle.load(stream)
                    except EOFError:
                        ended += 1
                        continue
                    if part is not None:
                        remaining.append(stream)
                        yield part
                turn = remaining
            if ended:
                return
    finally:
        for stream in streams:
            stream.close()
