"""Faults of our own: what went wrong in Bylaw's code, told apart from a guard that failed."""

import traceback
from pathlib import Path

from msgspec import Struct

_OURS = Path(__file__).parents[1]


class Fault(Struct, frozen=True):
    """Something that went wrong in our code while a call was judged."""

    step: int
    error: str
    """The kind of error."""
    message: str
    trace: str
    """Where it was raised, without its message, which may hold values of the conversation."""

    @property
    def because(self) -> str:
        """What to say of the call."""
        return f"a fault of Bylaw's own ({self.error}), neither the agent's nor the guard's: see faults.jsonl"


def fault_of(error: Exception, step: int) -> Fault:
    """The record of an error, with its place in our code by file name alone."""
    frames = traceback.extract_tb(error.__traceback__)
    told = [f"{_short(frame.filename)}:{frame.lineno} in {frame.name}" for frame in frames]
    return Fault(step, type(error).__name__, str(error)[:500], "\n".join(told))


def _short(file: str) -> str:
    path = Path(file)
    return path.relative_to(_OURS.parent).as_posix() if path.is_relative_to(_OURS) else path.name
