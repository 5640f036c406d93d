"""Workers that are lost, in a file of their own: a process that begins with one imports no more than a real worker."""

import os

import bylaw.audit.batch.local as local
from bylaw.audit.batch.part import Job, Judge
from bylaw.audit.batch.shard import Shard


class Fatal(Judge):
    """Its process ends at the second shard, or the judging fails there."""

    def judge(self, shard: Shard) -> int:
        if shard.number == 1:
            if "crash" in str(self._job.parts):
                os._exit(9)
            raise MemoryError("too much")
        return super().judge(shard)


def fatal_work(job: Job, pipe: object) -> None:
    local.Judge = Fatal
    local._work(job, pipe)


def unable(job: Job, pipe: object) -> None:
    os._exit(1)
