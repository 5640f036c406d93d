"""What is found of a call: agreed, not agreed, or open; and where it is open, the question that would settle it."""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from bylaw.consent.hearing import Why

Basis = Literal["card", "told", "requested"]
"""What a policy asks for: the answer to a card, a yes to what the agent told, or that the user asked for it."""
Reason = Literal[
    "confirmed", "agreed", "requested",
    "never_put", "unnamed", "spent", "declined",
    "unrecorded", "unanswered", "unread", "untold", "perhaps_spent", "no_card", "beside_card",
    "expired",
]  # fmt: skip
"""Agreed: by a card, a plain yes, or a request. Not agreed: nothing was put, the thing was never named, the yes was
spent, a bare no. Open: something was not recorded; no plain yes; what was put cannot be read; a value was not surely
told; a call like it may have been carried out; no card was answered; one was, beside words that may take it back; the
yes is too old."""


class Quote(Struct, frozen=True):
    """Words of the conversation: the step of the message, and where they stand in its text."""

    step: int
    start: int
    end: int
    text: str


class Untold(Struct, frozen=True):
    """A value of the call that nobody saw told."""

    argument: str
    value: str
    why: Why


class OpenConsent(Struct, frozen=True):
    """The question whether the user agreed: what was put, what was answered, which values nobody saw told."""

    tool: str
    arguments: dict[str, Any]
    put: tuple[Quote, ...]
    answered: tuple[Quote, ...]
    untold: tuple[Untold, ...] = ()


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
    untold: tuple[Untold, ...] = ()
    put: tuple[Quote, ...] = ()
    answered: tuple[Quote, ...] = ()

    def record(self) -> dict[str, Any]:
        """The reason as `findings.jsonl` holds it: names of arguments and places in messages, no words or values."""
        steps = {"told_at": self.told_at, "answered_at": self.answered_at, "spent_by": self.spent_by}
        told: dict[str, Any] = {"reason": self.reason} | {key: at for key, at in steps.items() if at is not None}
        if self.untold:
            told["untold"] = [{"argument": each.argument, "why": each.why} for each in self.untold]
        for name, quotes in (("put", self.put), ("answered", self.answered)):
            if quotes:
                told[name] = [{"step": each.step, "start": each.start, "end": each.end} for each in quotes]
        return told

    def question(self, tool: str, arguments: dict[str, Any]) -> OpenConsent | None:
        """What to ask a model or a person; None where nothing is open."""
        if self.value is not None or self.reason == "perhaps_spent":
            # What was agreed to is known; whether it was done then, no reader of the talk can tell.
            return None
        return OpenConsent(tool, msgspec.to_builtins(arguments), self.put, self.answered, self.untold)
