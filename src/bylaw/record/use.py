"""Uses: places that calls take under limits across conversations. Entries record them, and a table counts them.

A place is counted and taken in the transaction that writes the decision, so two workers never both take the last one. A
refused call returns its place; a call that may have run keeps it.
"""

from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from bylaw.record.approval import fingerprint
from bylaw.record.entry import Draft, Entry

if TYPE_CHECKING:
    from bylaw.record.database import Cursor


class Use(Struct, frozen=True, omit_defaults=True):
    """A place that a decision takes or returns, as recorded in its entry."""

    decision: str
    limit: str
    whose: str = ""
    """The agent or customer it counts for; empty for the tenant."""
    status: Literal["taken", "returned"] = "taken"
    most: int = 0
    """Taken only if fewer places are in use; 0 to take it regardless, because a person approved it or the limit is not
    enforced yet.
    """
    within: float = 0.0

    @property
    def name(self) -> str:
        """The name its places are counted under: a hash, because the person may be private."""
        return counted_under(self.limit, self.whose)

    @property
    def names(self) -> tuple[str, str]:
        """The names whose places count against `most`: its own, and those that may mean the same person."""
        return possible_names(self.limit.removesuffix(PERHAPS), self.whose)


PERHAPS = " (perhaps)"
"""Suffix for places of several names that a tool may treat as one, counted under their common part."""
_encode = msgspec.json.Encoder().encode
read_use: Any = msgspec.json.Decoder(Use).decode


def counted_under(limit: str, whose: str) -> str:
    """The name for places under one limit for one person."""
    return fingerprint([limit, whose])


def possible_names(limit: str, whose: str) -> tuple[str, str]:
    """The names under which anyone who may be `whose` is counted: the common part of their names."""
    return counted_under(limit, whose), counted_under(limit + PERHAPS, whose)


def use_entry(use: Use) -> tuple[bytes, str]:
    """The body and idempotency key of the entry about a place."""
    return _encode(use), f"use:{use.decision}:{use.limit}:{use.status}"


def project_use(cursor: "Cursor", draft: Draft, time: float) -> str:
    """Update the table of places with an entry; returns the reason if no place is left."""
    use: Use = read_use(draft.body)
    if use.status == "returned":
        cursor.execute(
            "DELETE FROM uses WHERE tenant = ? AND name = ? AND decision = ?", (draft.tenant, use.name, use.decision)
        )
        return ""
    if use.most:
        cursor.execute(
            "SELECT COUNT(*) FROM uses WHERE tenant = ? AND name IN (?, ?) AND time > ?",
            (draft.tenant, *use.names, time - use.within),
        )
        if cursor.fetchone()[0] >= use.most:
            return f"no place is left under limit `{use.limit}`"
    cursor.execute(
        "INSERT INTO uses (tenant, name, decision, conversation, time) VALUES (?,?,?,?,?)",
        (draft.tenant, use.name, use.decision, draft.conversation, time),
    )
    return ""


def tell_use(found: dict[tuple[str, str], float], entry: Entry) -> None:
    """Update places with one more entry."""
    use: Use = read_use(entry.body or b"")
    if use.status == "taken":
        found[use.name, use.decision] = entry.time
    else:
        found.pop((use.name, use.decision), None)
