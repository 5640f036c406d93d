"""The engine of a Ray cluster (extra `ray`): actors that load pack and world once, each with one shard at a time.

Logs, pack, world and output lie where every node finds them under the same path, as on a shared file system or in a
storage that a URL names.
"""

import importlib
import os
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

from bylaw.audit.batch.engine import TRIES, Outcome, told
from bylaw.audit.batch.part import Job, Judge
from bylaw.audit.batch.shard import Shard
from bylaw.audit.batch.without_pandas import spare_pandas
from bylaw.audit.collecting import rarely_collecting
from bylaw.audit.parallel import WorkerError
from bylaw.errors import UsageError

_STARTS = 3
"""How many workers in a row may be lost before they have judged anything."""


class RayWorker:
    """An actor: judges shards one after the other."""

    def __init__(self, job: Job) -> None:
        spare_pandas()
        self._judge = Judge(job)
        self._collecting = rarely_collecting()
        self._collecting.__enter__()

    def judge(self, shard: Shard) -> tuple[int, str]:
        """The number of conversations, or why the shard could not be judged."""
        try:
            return self._judge.judge(shard), ""
        except Exception as error:
            return 0, told(error)


class RayEngine:
    """As many actors as jobs, each replaced when it is lost."""

    def __init__(self, jobs: int, address: str | None = None) -> None:
        self._jobs = jobs
        self._address = address

    def run(self, job: Job, shards: Iterator[Shard]) -> Iterator[Outcome]:
        """Judge the shards, in the order in which actors are free."""
        ray = _ray(is_remote=self._address is not None)
        is_ours = not ray.is_initialized()
        if is_ours:
            self._connect(ray)
        actor = ray.remote(num_cpus=1)(RayWorker)
        waiting: deque[Shard] = deque()
        tries: Counter[str] = Counter()
        under_way: dict[Any, tuple[Any, Shard]] = {}
        free: list[Any] = []
        lost = 0
        try:
            while True:
                while len(waiting) < self._jobs and (shard := next(shards, None)) is not None:
                    waiting.append(shard)
                while waiting and len(under_way) < self._jobs:
                    worker = free.pop() if free else actor.remote(job)
                    shard = waiting.popleft()
                    under_way[worker.judge.remote(shard)] = (worker, shard)
                if not under_way:
                    return
                ready, _ = ray.wait(list(under_way), num_returns=1)
                worker, shard = under_way.pop(ready[0])
                try:
                    count, why = ray.get(ready[0])
                    free.append(worker)
                    lost = 0
                except ray.exceptions.ActorUnschedulableError as error:
                    raise WorkerError(f"no worker can be started: {_line(error)}") from None
                except ray.exceptions.RayActorError as error:
                    count, why = 0, f"its worker was lost {TRIES} times ({_line(error)})"
                    lost += 1
                    if lost > _STARTS * self._jobs:
                        raise WorkerError("workers are lost again and again", hint=_line(error)) from None
                if not why:
                    yield Outcome(shard, count)
                    continue
                tries[shard.key] += 1
                if tries[shard.key] < TRIES:
                    waiting.appendleft(shard)
                else:
                    yield Outcome(shard, why=why)
        finally:
            for worker in [*free, *(worker for worker, _ in under_way.values())]:
                ray.kill(worker)
            if is_ours:
                ray.shutdown()

    def _connect(self, ray: Any) -> None:
        try:
            ray.init(
                address=self._address,
                num_cpus=None if self._address else self._jobs,
                include_dashboard=False,
                log_to_driver=False,
                configure_logging=False,
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UsageError(f"no Ray cluster there: {_line(error)}", place=self._address or "") from None


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
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
