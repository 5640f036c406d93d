"""Log entries, and the chain of hashes that reveals alterations, deletions and insertions.

The chain covers a salted hash of each entry. Therefore the content of an entry can be removed, for retention or at a
person's request, without breaking the chain. A removal is itself an entry, which lists the emptied entries. An emptied
entry that no removal lists was tampered with.
"""

import secrets
from datetime import UTC, datetime
from hashlib import sha256
from struct import Struct as Layout
from typing import Literal

from msgspec import Struct

Kind = Literal["opening", "event", "decision", "approval", "use", "stop", "attestation", "removal"]

ROOT = b"\0" * 32
"""The link that precedes a chain's first entry."""
SALT = 16
_pack_sizes = Layout(">5Q").pack
DEFAULT_TENANT = "default"
"""The tenant of a log that has only one tenant."""


class Draft(Struct, frozen=True):
    tenant: str
    conversation: str
    kind: Kind
    body: bytes
    id: str = ""
    """The caller's idempotency key. A second draft with the same key is treated as a retry and is not written."""
    position: int | None = None
    """The required position in the conversation, for a caller that has read all earlier entries. None means the end."""
    under: int | None = None
    """The number of entries about stops when the decision was made, or None if stops do not apply."""
    first: "Entry | None" = None
    """The first entry of the conversation, if the caller knows it. If the log contains a different first entry, another
    conversation has taken the name.
    """


class Entry(Struct, frozen=True):
    """An entry of the log. Each tenant has a separate chain."""

    tenant: str
    number: int
    """The position in the tenant's chain, starting at 1."""
    time: float
    kind: Kind
    conversation: str | None
    position: int | None
    id: str | None
    body: bytes | None
    """The content. If it was removed, it is None, and the salt, the conversation and the id have been removed too."""
    salt: bytes | None
    digest: bytes
    link: bytes
    """The hash of the previous link and this entry's digest."""

    @property
    def is_removed(self) -> bool:
        return self.body is None


class Anchor(Struct, frozen=True):
    """The end of a tenant's chain at a particular time."""

    time: float
    tenant: str
    number: int
    """The number of entries so far."""
    link: str
    """The hash of the last entry."""

    @property
    def when(self) -> str:
        return datetime.fromtimestamp(self.time, UTC).strftime("%Y-%m-%d %H:%M UTC")


class Conflict(Struct, frozen=True):
    """A draft was not written, because entries were added to its conversation or because an approval has changed."""

    message: str
    about: Literal["", "stops", "limit"] = ""
    """Other reasons to repeat a decision: stops have changed, or another call has reached a limit."""


def new_salts(count: int) -> bytes:
    """Return random salts. They prevent anyone from guessing the content of a removed entry."""
    return secrets.token_bytes(SALT * count)


def digest_of(draft: Draft, position: int, salt: bytes) -> bytes:
    conversation, place, name, body = draft.conversation.encode(), b"%d" % position, draft.id.encode(), draft.body
    sizes = _pack_sizes(len(salt), len(conversation), len(place), len(name), len(body))
    # Each part is preceded by its length, so that different entries never produce the same bytes to hash.
    hashed = (sizes[:8], salt, sizes[8:16], conversation, sizes[16:24], place, sizes[24:32], name, sizes[32:], body)
    return sha256(b"".join(hashed)).digest()


def is_altered(entry: Entry) -> bool:
    """Whether an entry's content contradicts its digest. Emptied entries have no content."""
    if entry.body is None:
        return False
    draft = Draft(entry.tenant, entry.conversation or "", entry.kind, entry.body, entry.id or "")
    try:
        return entry.salt is None or digest_of(draft, entry.position or 0, entry.salt) != entry.digest
    except (TypeError, AttributeError, UnicodeError):
        # A column contains a value that Bylaw never writes.
        return True


def link_of(before: bytes, tenant: str, number: int, time: str, kind: str, digest: bytes) -> bytes:
    """Return the hash of the chain after an entry. `time` must be formatted by Python."""
    head = f"{tenant}\0{number}\0{time}\0{kind}\0".encode()
    return sha256(before + head + digest).digest()
