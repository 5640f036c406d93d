"""A tool the agent may call, and what calling it does."""

from typing import Any, Literal

from msgspec import Struct, field

Effect = Literal["read", "write", "none"]


class Tool(Struct, frozen=True):
    """A tool of the catalogue."""

    name: str
    effect: Effect
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    """Argument name -> JSON schema."""
    required: tuple[str, ...] = ()
    changes: tuple[Any, ...] | None = None
    """What a write makes stale, as the pack wrote it; None where it does not say."""
    effects: tuple[Any, ...] = ()
    """How a write moves a snapshot world, as the pack wrote it."""
    refused: str = ""
    """Pattern of a text result that means the call was not accepted."""
