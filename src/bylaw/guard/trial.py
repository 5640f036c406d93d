"""Things of a kind while they are asked one by one, without deciding anything that is open."""

from collections.abc import Sequence
from typing import Any

from bylaw.facts.entity import Fact, Key
from bylaw.facts.unknown import Stuck
from bylaw.guard.interruption import Absent, Unsure
from bylaw.guard.operation import Failure


class Trial:
    """One member of a kind while it is asked: its answer, None where unsure, and what it took."""

    __slots__ = ("answer", "asked", "doubtful", "is_noting", "key", "memo", "reads")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.answer: bool | None = None
        self.memo: dict[Fact, Any] = {}
        """What was read of it and not before."""
        self.reads: list[Fact] = []
        self.asked: dict[Fact, None] = {}
        self.doubtful: dict[Fact, tuple[str, Any]] = {}
        self.is_noting = True


class Tried:
    """The members of a kind, asked without deciding anything: the same again on every path that has not decided
    what was open for them."""

    __slots__ = ("best", "is_no", "open", "trials")

    def __init__(self, keys: Sequence[Key]) -> None:
        self.trials = [Trial(tuple(key)) for key in keys]
        self.best: Trial | None = None
        """The one that surely answers yes, and whose reads count."""
        self.is_no = True
        """All surely answer no."""
        self.open: set[str] = set()
        """What their answers hang on."""


NOT_SURE = (Unsure, Stuck, Absent, Failure, ArithmeticError, TypeError, ValueError, LookupError)
"""What a member may end in instead of a yes or no."""
