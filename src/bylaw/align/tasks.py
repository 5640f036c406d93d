"""What a pack must bring so that agents can be trained and tested on it: tasks, each of which opens a scene."""

from collections.abc import Sequence
from typing import Any, Protocol

from bylaw.errors import UsageError


class Ending(Protocol):
    """How a conversation ended, by the task's own truth and never by the guards that made the rewards."""

    @property
    def database(self) -> bool:
        """Whether the records stand as they should."""
        ...

    @property
    def told(self) -> bool:
        """Whether the user heard what they had to."""
        ...


class Scene(Protocol):
    """One conversation about one task: its tools at work, and a scripted user."""

    def opening(self) -> str: ...

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """What a tool answers. The arguments fit its declaration."""
        ...

    def hear(self, text: str) -> str | None:
        """What the user says to that; None when they have left."""
        ...

    def ending(self) -> Ending:
        """How it went; asked once, at the end."""
        ...

    def close(self) -> None: ...


class Task(Protocol):
    """Something an agent has to do for a user, over records of its own."""

    @property
    def id(self) -> str: ...

    @property
    def pack(self) -> str: ...

    @property
    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """The records, by entity, as tools show them."""
        ...

    @property
    def turns(self) -> int:
        """How many turns an agent may take."""
        ...

    def scene(self) -> Scene: ...


def load_tasks(part: str, pack: str = "clinic", *, times: int = 1) -> Sequence[Task]:
    """The tasks of one part (training, development, test, rl) of a pack that comes with Bylaw.

    `times` asks for that many times the usual number of tasks of the training or the rl part.
    """
    from bylaw.packs.clinic.tasks import PARTS, scenarios

    if pack != "clinic":
        raise UsageError(f"pack `{pack}` comes with no tasks", hint="`clinic` does")
    if part not in PARTS:
        raise UsageError(f"there is no part `{part}`", hint=f"one of {', '.join(PARTS)}")
    return scenarios(part, times if part in ("training", "rl") else 1)
