"""Uses of limits across conversations. Log entries record the uses, and a table counts them.

A use is counted in the transaction that writes the decision, so that two workers can never both take the last use. If a
call is refused, its use is cancelled. If the call may have run, its use still counts.
"""

from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from bylaw.record.approval import fingerprint
from bylaw.record.entry import Draft, Entry

if TYPE_CHECKING:
    from bylaw.record.database import Cursor


class Use(Struct, frozen=True, omit_defaults=True):
    """A use of a limit that a decision adds or cancels, as stored in the log."""

    decision: str
    limit: str
    whose: str = ""
    """The agent or customer whose uses are counted. Empty for the whole tenant."""
    status: Literal["taken", "returned"] = "taken"
    most: int = 0
    """The limit: the use is added only if fewer uses than this are counted.

    With 0, it is always added. This applies to calls that a reviewer approved and to limits that are not enforced.
    """
    within: float = 0.0

    @property
    def name(self) -> str:
        """The key under which this use is counted. It is a hash, because the person's name may be private."""
        return counted_under(self.limit, self.whose)

    @property
    def names(self) -> tuple[str, str]:
        """The keys of the uses that count towards `most`: those of this person, and those of names that may mean the
        same person.
        """
        return possible_names(self.limit.removesuffix(PERHAPS), self.whose)


PERHAPS = " (perhaps)"
"""A suffix for the count that all names share which a tool may treat as the same."""
encode_use = msgspec.json.Encoder().encode
read_use: Any = msgspec.json.Decoder(Use).decode


def counted_under(limit: str, whose: str) -> str:
    """Return the key under which a person's uses of a limit are counted."""
    return fingerprint([limit, whose])


def possible_names(limit: str, whose: str) -> tuple[str, str]:
    """Return the keys under which the uses of `whose`, and of names that may mean the same person, are counted."""
    return counted_under(limit, whose), counted_under(limit + PERHAPS, whose)


def use_id(use: Use) -> str:
    """Return the idempotency key of the log entry about a use."""
    return f"use:{use.decision}:{use.limit}:{use.status}"


def project_use(cursor: "Cursor", draft: Draft, time: float) -> str:
    """Apply an entry to the table of uses. If the limit is reached, return the reason for rejecting the entry."""
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
            return f"limit `{use.limit}` has been reached"
    cursor.execute(
        "INSERT INTO uses (tenant, name, decision, conversation, time) VALUES (?,?,?,?,?)",
        (draft.tenant, use.name, use.decision, draft.conversation, time),
    )
    return ""


def apply_use(found: dict[tuple[str, str], tuple[float, str]], entry: Entry) -> None:
    use: Use = read_use(entry.body or b"")
    if use.status == "taken":
        found[use.name, use.decision] = entry.time, entry.conversation or ""
    else:
        found.pop((use.name, use.decision), None)
