"""Workers that are lost, in a file of their own: a process that begins with one imports no more than a real worker."""

import os

import bylaw.audit.batch.run as engine
from bylaw.audit.batch.shard import Job, Judge, Shard

begin = engine._begin


class Fatal(Judge):
    """Its process ends at the second shard, or the judging fails there."""

    def judge(self, shard: Shard) -> int:
        if shard.number == 1:
            if "crash" in str(self._job.parts):
                os._exit(9)
            raise MemoryError("too much")
        return super().judge(shard)


def begin_fatal(job: Job) -> None:
    engine.Judge = Fatal
    begin(job)


def begin_unable(job: Job) -> None:
    os._exit(1)
