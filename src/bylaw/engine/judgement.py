"""The evidence half of a judgement: what the guards say of a call on what was seen before its turn."""

from datetime import UTC, datetime
from typing import Protocol

from msgspec import Struct

from bylaw.facts.entity import Entity, FactSource, Field, Key
from bylaw.facts.ledger import CallRecord, Shown
from bylaw.guard import Completion, Guard
from bylaw.policy.statement import Policy
from bylaw.trace.event import Call


class Sight(FactSource, Protocol):
    """What the agent had seen, and when."""

    def shown_at(self, entity: Entity, key: Key, field: Field) -> Shown | None:
        """The sighting that `read` answers from."""
        ...


class PolicyEvidence(Struct, frozen=True):
    """What one guard says of a call on what was seen: one entry per completion of the user facts."""

    policy: Policy
    guard: Guard
    completions: tuple[Completion, ...]


class Judgement(Struct, frozen=True):
    """The evidence half of a judgement on one call."""

    made: CallRecord
    seen: Sight
    now: datetime | None
    evidence: tuple[PolicyEvidence, ...]
    fault: str = ""
    """Why the call could not be judged at all: unknown tool, arguments not captured."""


def moment_of(call: Call) -> datetime | None:
    """When a call was made, where its log says so in a way that can be read."""
    try:
        return datetime.fromtimestamp(call.time, UTC) if call.time is not None else None
    except (ValueError, OverflowError, OSError):
        return None
