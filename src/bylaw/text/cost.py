"""Limits the work for one request. Code counts its steps here if its work grows with the input."""

from contextvars import ContextVar

from bylaw.errors import BylawError

STEPS = 2_000_000
"""The maximum number of steps per request. A step takes about a microsecond."""


class TooCostly(BylawError):
    """Raised if the request would take too long. Nothing is then decided or written."""

    code = "BY705"


class Cost:
    """The steps that a request may still use. A `with` block counts all work done by the current task."""

    def __init__(self, steps: int = STEPS) -> None:
        self._most = self._left = steps

    def __enter__(self) -> None:
        self._before = _COST.set(self)

    def __exit__(self, *error: object) -> None:
        _COST.reset(self._before)

    def spend(self, steps: int) -> None:
        """Count steps before doing the work."""
        self._left -= steps
        if self._left < 0:
            self.check()

    def check(self) -> None:
        """Raise an error if the request has used up its steps, even if other code has caught an earlier `TooCostly`."""
        if self._left < 0:
            hint = "send fewer or shorter messages, or fewer calls"
            raise TooCostly(f"the request takes more than {self._most:,} steps", hint=hint)


_COST: ContextVar[Cost | None] = ContextVar("bylaw_cost", default=None)


def current() -> Cost | None:
    """Return the cost counter of the current request, or None outside a request."""
    return _COST.get()


def spend(steps: int) -> None:
    """Count steps for the current request. Raises `TooCostly` if none are left."""
    if (cost := _COST.get()) is not None:
        cost.spend(steps)


def check() -> None:
    """Raise `TooCostly` if the current request has no steps left."""
    if (cost := _COST.get()) is not None:
        cost.check()
