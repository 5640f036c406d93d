"""One recorded conversation, whatever format it came in."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct, field

from bylaw.trace.event import Event

_SCHEMA_NAMES = ("parameters", "input_schema", "inputSchema", "args_schema")


def tool_definitions(recorded: Iterable[Any] | None) -> Sequence[dict[str, Any]]:
    """The definitions in a known shape, with MCP's annotations (`readOnlyHint`, ...)."""
    if not recorded:
        return ()
    return tuple(filter(None, map(_definition, recorded)))


def _definition(recorded: Any) -> dict[str, Any] | None:
    match recorded:
        case {"function": {"name": str()} as function, **outer}:
            body: dict[str, Any] = {**outer, **function}  # pyright: ignore[reportUnknownVariableType]
        case {"name": str()}:
            body = recorded  # pyright: ignore[reportUnknownVariableType]
        case _:
            return None
    definition: dict[str, Any] = {"name": body["name"]}
    if isinstance(body.get("description"), str):
        definition["description"] = body["description"]
    for name in _SCHEMA_NAMES:
        if isinstance(body.get(name), dict):
            definition["parameters"] = body[name]
            break
    if isinstance(body.get("annotations"), dict):
        definition["annotations"] = body["annotations"]
    return definition


class TaskOutcome(Struct, frozen=True):
    """Whether the conversation reached its goal, as its source judged it."""

    good: bool
    source: str
    """The field it was read from, e.g. `reward` or `reward_info.db_check.db_match`."""


class Trajectory(Struct, frozen=True):
    """A conversation: who acted, what happened, and how it ended if that is known."""

    id: str
    events: Sequence[Event]
    agent: str = ""
    """The name its results are reported under, e.g. a model's name."""
    outcome: TaskOutcome | None = None
    instructions: str = ""
    """The system prompt, if it was recorded."""
    file: str = ""
    position: int = 0
    """Line (JSONL) or 0-based index (one document) in `file`."""
    format: str = ""
    details: dict[str, Any] = field(default_factory=dict[str, Any])
    """Other recorded data that a pack may use: task id, trial, other outcomes."""
    context: dict[str, Any] = field(default_factory=dict[str, Any])
    """Recorded facts that the host vouched for, such as who was signed in."""
    tools: Sequence[dict[str, Any]] = ()
    """Tool definitions recorded with the conversation, in JSON-schema form."""

    @property
    def bears_times(self) -> bool:
        """Whether any event has a time."""
        return any(event.time is not None for event in self.events)
