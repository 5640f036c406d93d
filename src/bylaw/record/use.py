"""Uses: places that calls take under limits which span conversations. The entries tell of them, a table counts them.

A place is counted and taken in the transaction that writes the decision, so two workers never both take the last one. A
call that its tool refused gives its place back; one of which nobody knows whether it was carried out keeps it.
"""

from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from bylaw.record.approval import fingerprint
from bylaw.record.entry import Draft, Entry

if TYPE_CHECKING:
    from bylaw.record.database import Cursor


class Use(Struct, frozen=True, omit_defaults=True):
    """A place that a decision takes, or gives back, as its entry in the log says it."""

    decision: str
    limit: str
    whose: str = ""
    """Whom it counts for: an agent's name, a customer; empty for the tenant."""
    status: Literal["taken", "returned"] = "taken"
    most: int = 0
    """Taken only if fewer than so many are; 0 where it is taken whatever others have: a person said yes to it, or the
    limit does not stop anybody yet."""
    within: float = 0.0

    @property
    def name(self) -> str:
        """What its places are counted under: a hash, since whose they are may be private."""
        return counted_under(self.limit, self.whose)

    @property
    def names(self) -> tuple[str, str]:
        """The names whose places count against `most`: its own, and those of names that may be the same."""
        return possible_names(self.limit.removesuffix(PERHAPS), self.whose)


PERHAPS = " (perhaps)"
"""After a limit's name: places of several names that a tool may treat as one, counted under their common part."""
_encode = msgspec.json.Encoder().encode
read_use: Any = msgspec.json.Decoder(Use).decode


def counted_under(limit: str, whose: str) -> str:
    """What the places of one limit for one of whom it counts are counted under."""
    return fingerprint([limit, whose])


def possible_names(limit: str, whose: str) -> tuple[str, str]:
    """The names under which everybody is counted who may be `whose`, the common part of their names."""
    return counted_under(limit, whose), counted_under(limit + PERHAPS, whose)


def use_entry(use: Use) -> tuple[bytes, str]:
    """What the entry about a place says, and its name: said twice it is written once."""
    return _encode(use), f"use:{use.decision}:{use.limit}:{use.status}"


def project_use(cursor: "Cursor", draft: Draft, time: float) -> str:
    """Move the table of places with an entry; what is wrong, where none is left."""
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
    """What one more entry about a place makes of those that were told of before."""
    use: Use = read_use(entry.body or b"")
    if use.status == "taken":
        found[use.name, use.decision] = entry.time
    else:
        found.pop((use.name, use.decision), None)
