"""Things of a kind while they are asked one by one, without deciding anything that is open."""

from typing import Any

from bylaw.facts.entity import Fact, Key
from bylaw.facts.unknown import Stuck
from bylaw.guard.interruption import Absent, Unsure
from bylaw.guard.operation import Failure


class Trial:
    """One member of a kind while it is asked: its answer, None where unsure, and what it took."""

    __slots__ = ("answer", "asked", "doubtful", "is_noting", "key", "memo", "open", "reads")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.answer: bool | None = None
        self.memo: dict[Fact, Any] = {}
        """What was read of it and not before."""
        self.reads: list[Fact] = []
        self.asked: dict[Fact, None] = {}
        self.doubtful: dict[Fact, tuple[str, Any]] = {}
        self.is_noting = True
        self.open: set[str] = set()
        """What its answer hangs on."""


NOT_SURE = (Unsure, Stuck, Absent, Failure, ArithmeticError, TypeError, ValueError, LookupError)
"""What a member may end in instead of a yes or no."""
