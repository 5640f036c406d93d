"""Log entries, and the chain of hashes that reveals alterations, deletions and insertions.

The chain covers a salted hash of each entry rather than the entry itself, so that an entry's content can be removed,
for retention or on a person's request, without breaking the chain. A removal is itself an entry that lists the entries
it emptied; anything emptied without one was tampered with.
"""

import secrets
from datetime import UTC, datetime
from hashlib import sha256
from struct import Struct as Layout
from typing import Literal

from msgspec import Struct

Kind = Literal["opening", "event", "decision", "approval", "use", "stop", "attestation", "removal"]

ROOT = b"\0" * 32
"""The link before the first entry of a chain."""
SALT = 16
_pack_sizes = Layout(">5Q").pack
DEFAULT_TENANT = "default"
"""The tenant of a log with a single tenant."""


class Draft(Struct, frozen=True):
    """An entry to be written."""

    tenant: str
    conversation: str
    kind: Kind
    body: bytes
    """JSON."""
    id: str = ""
    """The caller's idempotency key: a second draft with the same key is a retry and is not written."""
    position: int | None = None
    """The position it must have in its conversation, for a caller that has read everything before it;
    None for the end.
    """
    under: int | None = None
    """The number of entries about stops when it was decided; None if stops do not apply."""
    first: "Entry | None" = None
    """The first entry of its conversation, if the caller knows it; another conversation may have begun under the same
    name.
    """


class Entry(Struct, frozen=True):
    """One entry of the log. Each tenant has its own chain."""

    tenant: str
    number: int
    """Position in the tenant's chain, from 1."""
    time: float
    kind: Kind
    conversation: str | None
    position: int | None
    id: str | None
    body: bytes | None
    """None if it was removed, together with salt, conversation and id."""
    salt: bytes | None
    digest: bytes
    link: bytes
    """Hash of the previous link and this entry's digest."""

    @property
    def is_removed(self) -> bool:
        """Whether its content was removed."""
        return self.body is None


class Anchor(Struct, frozen=True):
    """The end of one tenant's chain at a point in time."""

    time: float
    tenant: str
    number: int
    """The number of entries."""
    link: str
    """The hash of the last entry."""

    @property
    def when(self) -> str:
        """The time, formatted for people."""
        return datetime.fromtimestamp(self.time, UTC).strftime("%Y-%m-%d %H:%M UTC")


class Conflict(Struct, frozen=True):
    """A draft that was not written: its conversation has continued, or an approval has changed."""

    message: str
    about: Literal["", "stops", "limit"] = ""
    """Set if the decision must be repeated for another reason: stops have changed, or somebody took the last place
    under a limit.
    """


def new_salts(count: int) -> bytes:
    """Random salts, so that the content of a removed entry cannot be guessed."""
    return secrets.token_bytes(SALT * count)


def digest_of(draft: Draft, position: int, salt: bytes) -> bytes:
    """The digest of an entry in the chain."""
    conversation, place, name, body = draft.conversation.encode(), b"%d" % position, draft.id.encode(), draft.body
    sizes = _pack_sizes(len(salt), len(conversation), len(place), len(name), len(body))
    # Each part is preceded by its length, so that no two entries hash the same bytes.
    hashed = (sizes[:8], salt, sizes[8:16], conversation, sizes[16:24], place, sizes[24:32], name, sizes[32:], body)
    return sha256(b"".join(hashed)).digest()


def is_altered(entry: Entry) -> bool:
    """Whether an entry's content does not match its digest in the chain; emptied entries have no content."""
    if entry.body is None:
        return False
    draft = Draft(entry.tenant, entry.conversation or "", entry.kind, entry.body, entry.id or "")
    try:
        return entry.salt is None or digest_of(draft, entry.position or 0, entry.salt) != entry.digest
    except (TypeError, AttributeError, UnicodeError):
        # A column holds a value Bylaw never writes.
        return True


def link_of(before: bytes, tenant: str, number: int, time: str, kind: str, digest: bytes) -> bytes:
    """The chain's hash after an entry; `time` is formatted by Python."""
    head = f"{tenant}\0{number}\0{time}\0{kind}\0".encode()
    return sha256(before + head + digest).digest()
