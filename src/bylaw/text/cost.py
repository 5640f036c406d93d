"""Limits the work for one request. Code whose work grows with the input counts its steps here."""

from collections.abc import Callable
from contextvars import ContextVar

from bylaw.errors import BylawError

STEPS = 2_000_000
"""The maximum number of steps per request. One step takes about a microsecond."""


class TooCostly(BylawError):
    """Raised if a request would take too long. Nothing has then been decided or written."""

    code = "BY705"


class Cost:
    """The steps that a request may still use. As a `with` block, it counts the work that the current task does in the
    block.
    """

    def __init__(self, steps: int = STEPS) -> None:
        self._most = self._left = steps
        self.pause: Callable[[], None] | None = None
        """Called between two pieces of work to let other requests run first."""

    def __enter__(self) -> None:
        self._before = _COST.set(self)

    def __exit__(self, *error: object) -> None:
        _COST.reset(self._before)

    def spend(self, steps: int) -> None:
        """Count steps, before the work is done."""
        self._left -= steps
        if self._left < 0:
            self.check()
        if self.pause is not None:
            self.pause()

    def check(self) -> None:
        """Raise an error if the request has used up its steps. Needed because other code may have caught an earlier
        `TooCostly`.
        """
        if self._left < 0:
            hint = "send fewer or shorter messages, or fewer calls"
            raise TooCostly(f"the request takes more than {self._most:,} steps", hint=hint)


_COST: ContextVar[Cost | None] = ContextVar("bylaw_cost", default=None)


def current() -> Cost | None:
    """Return the counter of the current request. None outside a request."""
    return _COST.get()


def spend(steps: int) -> None:
    """Count steps for the current request. Raises `TooCostly` if none are left for it."""
    if (cost := _COST.get()) is not None:
        cost.spend(steps)


def check() -> None:
    """Raise `TooCostly` if the current request has no steps left."""
    if (cost := _COST.get()) is not None:
        cost.check()
