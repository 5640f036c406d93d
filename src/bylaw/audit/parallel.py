"""An audit on several cores: each worker judges every n-th conversation, and the parts are joined in order."""

import multiprocessing
import pickle
import signal
import tempfile
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from bylaw.audit.request import Request
from bylaw.audit.row import Examined
from bylaw.audit.run import Examiner, open_examiner
from bylaw.errors import BylawError, RecordError


class WorkerError(BylawError):
    """A worker process ended early."""

    code = "BY103"


def examine_in_parts(request: Request, total: Examiner, aside: Path) -> Iterator[Examined | RecordError]:
    """Examine with `request.jobs` workers; yields in the order of files and conversations, counts into `total`.

    Parts wait on disk, in the folder `aside`, so memory stays that of one conversation a worker.
    """
    with tempfile.TemporaryDirectory(prefix="parts-", dir=aside) as folder, ExitStack() as opened:
        targets = [Path(folder) / f"part-{number}" for number in range(request.jobs)]
        for counts in _counts_of_parts(request, targets):
            total.counts.add(counts)
        streams = [opened.enter_context(target.open("rb")) for target in targets]
        for _ in request.files:
            yield from _joined(streams)


def _counts_of_parts(request: Request, targets: Sequence[Path]) -> list[dict[str, Any]]:
    """Run the workers, each of which writes its part, and return their counts."""
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(len(targets), mp_context=multiprocessing.get_context("spawn"))
    try:
        try:
            with deaf_to_interrupts():
                work = [pool.submit(_examine_part, request, share, target) for share, target in enumerate(targets)]
        except OSError as error:
            # A worker that ends while the next one starts breaks the shared pool.
            raise BrokenProcessPool from error
        return [part.result() for part in work]
    except BaseException as error:
        # The pool itself forgets those that it was just starting.
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        if isinstance(error, BrokenProcessPool):
            hint = "the machine may be out of memory: try fewer --jobs"
            raise WorkerError("a worker ended before it had finished", hint=hint) from None
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def deaf_to_interrupts() -> Generator[None]:
    """Workers started here ignore Ctrl-C: this process ends them, without a traceback of each."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _examine_part(request: Request, share: int, target: Path) -> dict[str, Any]:
    examiner = open_examiner(request)
    with target.open("wb") as out:
        for file in range(len(request.files)):
            for part in examiner.examine_all(request, share=(share, request.jobs), only=file):
                pickle.dump(part, out)
            pickle.dump(None, out)
    return examiner.counts.record()


def _joined(streams: Sequence[IO[bytes]]) -> Iterator[Examined | RecordError]:
    """The conversations of one file: one from each part in turn, until every part ends."""
    remaining = list(streams)
    while remaining:
        for stream in list(remaining):
            part: Any = pickle.load(stream)
            if part is None:
                remaining.remove(stream)
            else:
                yield part
