"""Limits the work of one request. Code whose work grows with the input counts its steps here."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from bylaw.errors import BylawError

STEPS = 2_000_000
"""The maximum number of steps per request. A step takes about a microsecond."""


class TooCostly(BylawError):
    """The request would take too long. Nothing is decided or written."""

    code = "BY705"


class Cost:
    def __init__(self, steps: int = STEPS) -> None:
        self._most = self._left = steps
        self.pause: Callable[[], None] | None = None
        """Called between two pieces of work, so that other requests can run first."""
        self.is_large = False
        """Whether the request has proved to be expensive."""

    def spend(self, steps: int) -> None:
        """Count steps before doing the work."""
        self._left -= steps
        self.check()
        if self.pause is not None:
            self.pause()

    def check(self) -> None:
        """Raise an error if the request has used up its steps, even if an earlier `TooCostly` was caught."""
        if self._left < 0:
            hint = "send fewer or shorter messages, or fewer calls"
            raise TooCostly(f"the request takes more than {self._most:,} steps", hint=hint)


_COST: ContextVar[Cost | None] = ContextVar("bylaw_cost", default=None)


@contextmanager
def counting(cost: Cost) -> Generator[None]:
    """Count all work done in the current task towards a request."""
    token = _COST.set(cost)
    try:
        yield
    finally:
        _COST.reset(token)


def current() -> Cost | None:
    """Return the current request's cost counter, or None outside a request."""
    return _COST.get()


def spend(steps: int) -> None:
    """Count steps of the current request. Raises `TooCostly` if none are left."""
    if (cost := _COST.get()) is not None:
        cost.spend(steps)


def check() -> None:
    """Raise `TooCostly` if the current request has no steps left."""
    if (cost := _COST.get()) is not None:
        cost.check()
