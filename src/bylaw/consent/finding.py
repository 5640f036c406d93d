"""What is found of a call: agreed, not agreed, or open; and where it is open, the question that would settle it."""

from typing import Any, Literal

import msgspec
from msgspec import Struct

Basis = Literal["card", "told", "requested"]
"""What a policy asks for: the answer to a card; a yes to a sentence of the pack's, or to what a reader finds told; or
that the user, as a reader finds, asked for it."""
Reason = Literal[
    "confirmed",
    "never_put", "unnamed", "spent", "declined",
    "unrecorded", "unanswered", "unread", "perhaps_spent", "no_card", "beside_card", "changed_card",
    "expired",
]  # fmt: skip
"""Agreed: by a plain yes to a card or a sentence of the pack's. Not agreed: nothing was put, nothing of it was named,
the yes was spent, a no to a card. Open: something was not recorded; a question has no answer among the user's words;
what was said is for somebody to read; a call like it may have been carried out; no card was answered; one was, beside
words that may take it back, or in changed words; what the user said last is too old."""


class Quote(Struct, frozen=True):
    """Words of the conversation: the step of the message, and where they stand in its text."""

    step: int
    start: int
    end: int
    text: str


class OpenConsent(Struct, frozen=True):
    """The question whether the user agreed: what was put, and what was answered."""

    tool: str
    arguments: dict[str, Any]
    put: tuple[Quote, ...]
    answered: tuple[Quote, ...]
    spared: tuple[str, ...] = ()
    """Arguments that need not be told, as the pack says."""


class Consent(Struct, frozen=True):
    """Whether the user agreed to a call, and why this is thought so; None where it is open."""

    value: bool | None
    reason: Reason
    told_at: int | None = None
    """Step of the message that put it to the user."""
    answered_at: int | None = None
    """Step of the user's answer."""
    spent_by: int | None = None
    """Step of the call that the agreement was spent on, or may have been."""
    put: tuple[Quote, ...] = ()
    answered: tuple[Quote, ...] = ()

    def record(self) -> dict[str, Any]:
        """The reason as `findings.jsonl` holds it: places in messages, no words or values."""
        steps = {"told_at": self.told_at, "answered_at": self.answered_at, "spent_by": self.spent_by}
        told: dict[str, Any] = {"reason": self.reason} | {key: at for key, at in steps.items() if at is not None}
        for name, quotes in (("put", self.put), ("answered", self.answered)):
            if quotes:
                told[name] = [{"step": each.step, "start": each.start, "end": each.end} for each in quotes]
        return told

    def question(self, tool: str, arguments: dict[str, Any], spared: tuple[str, ...] = ()) -> OpenConsent | None:
        """What to ask a model or a person; None where nothing is open."""
        if self.value is not None or self.reason in ("perhaps_spent", "expired"):
            # Whether a call was carried out, no reader of the talk can tell; how long words count, the pack says.
            return None
        return OpenConsent(tool, msgspec.to_builtins(arguments), self.put, self.answered, spared)
