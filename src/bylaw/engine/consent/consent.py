"""What is found of a call: whether the user agreed to it, and why this is thought so."""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from bylaw.engine.consent.told.lack import Lack

Basis = Literal["told", "requested"]
"""What a policy asks for: that the user agreed to what the agent told, or no more than that the user asked for it."""
ConsentReason = Literal[
    "agreed", "requested", "none", "unanswered", "spent", "held", "differs", "unclear", "unrecorded"
]


class Consent(Struct, frozen=True):
    """Whether the user agreed to a call, and why this is thought so; None where code cannot tell."""

    value: bool | None
    reason: ConsentReason
    proposal: int | None = None
    """Step of the message that told the action."""
    agreement: int | None = None
    """Step of the message that agreed, or that did not."""
    lacks: tuple[Lack, ...] = ()
    """What was not surely told."""
    spent_by: int | None = None
    """Step of the accepted call that the agreement was spent on."""

    def record(self) -> dict[str, Any]:
        """The reason as `findings.jsonl` holds it: names of arguments and steps, none of their values."""
        steps = {"told_at": self.proposal, "answered_at": self.agreement, "spent_by": self.spent_by}
        told: dict[str, Any] = {"reason": self.reason} | {key: at for key, at in steps.items() if at is not None}
        return told | {"lacks": msgspec.to_builtins(self.lacks)} if self.lacks else told
