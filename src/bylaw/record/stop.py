"""Stops: a reviewer blocks the writes of an agent, tool, policy or tenant. A stop ends at a set time or when it is
lifted.

Stops are entries in the tenant's chain, in a conversation of their own. Every transaction reads the length of this
conversation. If it has changed since a decision was made, the decision is repeated.
"""

import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.record.entry import Draft, Entry, is_altered

STOPS = "bylaw/stops"
"""The id of the reserved conversation in which stops are logged."""
Target = Literal["agent", "tool", "policy", "all"]
LONGEST = 366 * 24 * 3600.0
"""The maximum duration of a stop, in seconds. Permanent rules belong in the pack."""
WORDS = 500
"""The maximum length of a reason or name in characters."""


class Stop(Struct, frozen=True, omit_defaults=True, tag="stop"):
    """A stop: whose writes it covers, what is decided about them, and when it ends."""

    id: str
    what: Target
    name: str
    """The name of the agent, tool or policy. Empty for `all`."""
    answer: Literal["ask", "deny"]
    """What is decided about the writes: ask a reviewer about each one, or deny all of them."""
    by: str
    reason: str
    until: float
    since: float = 0.0

    def stands(self, now: float) -> bool:
        return now < self.until

    @property
    def stopped(self) -> str:
        return "every write" if self.what == "all" else f"{self.what} `{self.name}`"

    @property
    def end(self) -> str:
        return f"{datetime.fromtimestamp(self.until, UTC).isoformat(' ', 'minutes')[:16]} UTC"


class Lift(Struct, frozen=True, omit_defaults=True, tag="lift"):
    id: str
    by: str
    reason: str = ""
    at: float = 0.0


class Stopped(Struct, frozen=True, omit_defaults=True):
    """A stop and, if it was lifted, by whom."""

    stop: Stop
    lift: Lift | None = None
    warning: str = ""
    """A warning that no earlier call matches the new stop. Empty if one does."""

    def stands(self, now: float) -> bool:
        return self.lift is None and self.stop.stands(now)


class Stops(Struct, frozen=True):
    """A tenant's active stops when a certain entry was written. Lifted stops are left out."""

    revision: int = 0
    """The number of entries about stops so far."""
    standing: tuple[Stop, ...] = ()


NO_STOPS = Stops()
_encode = msgspec.json.Encoder().encode
_decode: Any = msgspec.json.Decoder(Stop | Lift).decode


def new_id() -> str:
    """Return a new id for a stop. It is short enough to type."""
    return f"stop-{uuid.uuid4().hex[:8]}"


def stop_draft(tenant: str, step: Stop | Lift) -> Draft:
    """Return the entry for a new or lifted stop."""
    return Draft(tenant, STOPS, "stop", _encode(step), f"{step.id}:{'end' if isinstance(step, Lift) else 'begin'}")


def read_stops(entries: Iterable[Entry]) -> list[Stopped]:
    """Return every stop in these entries, in order. Raises ValueError if an entry was altered."""
    found: dict[str, Stopped] = {}
    for entry in entries:
        if is_altered(entry) or entry.body is None:
            raise ValueError(f"entry {entry.number}, about a stop, was altered: see `bylaw log verify`")
        if entry.kind != "stop":
            continue
        step: Stop | Lift = _decode(entry.body)
        if isinstance(step, Stop):
            found[step.id] = Stopped(replace(step, since=entry.time))
        elif step.id in found:
            found[step.id] = Stopped(found[step.id].stop, replace(step, at=entry.time))
    return list(found.values())


def standing(found: Sequence[Stopped], revision: int) -> Stops:
    """Return the stops that have not been lifted. They may have expired, so callers must check."""
    return Stops(revision, tuple(each.stop for each in found if each.lift is None))
