"""What judges shards: processes of this machine, or a Ray cluster. Their output does not tell which it was."""

from collections.abc import Iterator
from typing import Protocol

from msgspec import Struct

from bylaw.audit.batch.part import Job
from bylaw.audit.batch.shard import Shard

TRIES = 3
"""How often a shard is tried before it is set aside."""


class Outcome(Struct, frozen=True):
    """What became of a shard: conversations judged, or why it was set aside."""

    shard: Shard
    conversations: int = 0
    why: str = ""


class Engine(Protocol):
    """Runs `Judge.judge` on every shard, each tried again where its worker is lost."""

    def run(self, job: Job, shards: Iterator[Shard]) -> Iterator[Outcome]:
        """Judge the shards, in any order."""
        ...


def told(error: BaseException) -> str:
    """Why a shard could not be judged, in one line."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
