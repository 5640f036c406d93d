"""Stops: a person keeps an agent, a tool, a policy or a whole tenant from writing, until a time, or until it is lifted.

A stop and its lifting are entries of the tenant's chain, in a conversation of their own. How long that one is, every
transaction reads: what was decided under other stops than those that stand when it is written is decided anew.
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
"""The conversation that the entries stand in."""
Target = Literal["agent", "tool", "policy", "all"]
LONGEST = 366 * 24 * 3600.0
"""Seconds that a stop may stand at most: what is to last is said in the pack."""
WORDS = 500
"""Characters in a reason or a name at most."""


class Stop(Struct, frozen=True, omit_defaults=True, tag="stop"):
    """What a person stopped, and until when."""

    id: str
    what: Target
    name: str
    """Which agent, tool or policy; empty for `all`."""
    answer: Literal["ask", "deny"]
    """What becomes of its writes: each is put to a person, or none is made."""
    by: str
    reason: str
    until: float
    since: float = 0.0
    """When its entry was written."""

    def stands(self, now: float) -> bool:
        return now < self.until

    @property
    def stopped(self) -> str:
        return "every write" if self.what == "all" else f"{self.what} `{self.name}`"

    @property
    def end(self) -> str:
        return f"{datetime.fromtimestamp(self.until, UTC).isoformat(' ', 'minutes')[:16]} UTC"


class Lift(Struct, frozen=True, omit_defaults=True, tag="lift"):
    """A stop ends before its time."""

    id: str
    by: str
    reason: str = ""
    at: float = 0.0
    """When its entry was written."""


class Stopped(Struct, frozen=True, omit_defaults=True):
    """A stop, and what ended it, if somebody did."""

    stop: Stop
    lift: Lift | None = None
    warning: str = ""
    """Said once, as it is made: nothing that ever ran falls under it."""

    def stands(self, now: float) -> bool:
        return self.lift is None and self.stop.stands(now)


class Stops(Struct, frozen=True):
    """The stops of a tenant that nobody has lifted, as of an entry."""

    revision: int = 0
    """How many entries there were about stops."""
    standing: tuple[Stop, ...] = ()


NO_STOPS = Stops()
_encode = msgspec.json.Encoder().encode
_decode: Any = msgspec.json.Decoder(Stop | Lift).decode


def new_id() -> str:
    """A name for a stop, short enough to be typed."""
    return f"stop-{uuid.uuid4().hex[:8]}"


def stop_draft(tenant: str, step: Stop | Lift) -> Draft:
    """The entry that tells of a stop, or of its end."""
    return Draft(tenant, STOPS, "stop", _encode(step), f"{step.id}:{'end' if isinstance(step, Lift) else 'begin'}")


def read_stops(entries: Iterable[Entry]) -> list[Stopped]:
    """Every stop that entries tell of, in order; ValueError where one of them does not say what it said."""
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
    """Those that nobody has lifted; whether their end has come, whoever decides looks at the clock for."""
    return Stops(revision, tuple(each.stop for each in found if each.lift is None))
