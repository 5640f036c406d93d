"""What a pack must bring so that agents can be trained and tested on it: tasks, each of which opens a scene."""

from typing import Any, Protocol


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
