"""What one request may cost. Code counts its work here wherever the amount depends on what somebody has sent."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from bylaw.errors import BylawError

STEPS = 2_000_000
"""Steps of one request at most; a step takes about a microsecond."""


class TooCostly(BylawError):
    """A request that would take too long; nothing is decided and nothing is written."""

    code = "BY705"


class Cost:
    """The steps that one request has left."""

    def __init__(self, steps: int = STEPS) -> None:
        self._most = self._left = steps
        self.pause: Callable[[], None] | None = None
        """Lets others go first; called between two pieces of work."""
        self.is_large = False
        """Whether it is known by now that the request takes long."""

    def spend(self, steps: int) -> None:
        """Count work that is about to be done."""
        self._left -= steps
        self.check()
        if self.pause is not None:
            self.pause()

    def check(self) -> None:
        """Raise if the request has used up its steps, even if somebody has caught the first such error."""
        if self._left < 0:
            hint = "send fewer or shorter messages, or fewer calls"
            raise TooCostly(f"the request takes more than {self._most:,} steps", hint=hint)


_COST: ContextVar[Cost | None] = ContextVar("bylaw_cost", default=None)


@contextmanager
def counting(cost: Cost) -> Generator[None]:
    """Count all work of this task as part of a request."""
    token = _COST.set(cost)
    try:
        yield
    finally:
        _COST.reset(token)


def current() -> Cost | None:
    """The cost of the request that this task works on; outside a request, nothing is counted."""
    return _COST.get()


def spend(steps: int) -> None:
    """Count work of the current request; raises `TooCostly` if it has used up its steps."""
    if (cost := _COST.get()) is not None:
        cost.spend(steps)


def check() -> None:
    """Raise `TooCostly` if the current request has used up its steps."""
    if (cost := _COST.get()) is not None:
        cost.check()
