"""Log entries and their hash chain, which reveals changes, deletions and insertions.

The chain contains a salted hash of each entry, so that an entry's content can be removed without breaking the chain. A
removal is itself an entry and lists the emptied entries. If an empty entry is not listed, somebody has tampered with
it.
"""

import secrets
from datetime import UTC, datetime
from hashlib import sha256
from struct import Struct as Layout
from typing import Literal

from msgspec import Struct

Kind = Literal["opening", "event", "decision", "approval", "use", "stop", "attestation", "removal"]

ROOT = b"\0" * 32
"""The link that precedes the first entry of a chain."""
SALT = 16
_pack_sizes = Layout(">5Q").pack
DEFAULT_TENANT = "default"
"""The name of the tenant in a log that has only one tenant."""


class Draft(Struct, frozen=True):
    tenant: str
    conversation: str
    kind: Kind
    body: bytes
    id: str = ""
    """The caller's idempotency key. If an entry with this key exists, the draft is a retry and is not written."""
    position: int | None = None
    """The position in the conversation at which the entry must be written, if the caller has read all earlier entries.
    None means the end.
    """
    under: int | None = None
    """The number of entries about stops when the decision was made. None if the draft does not depend on stops."""
    first: "Entry | None" = None
    """The first entry of the conversation, if the caller knows it. If the log has a different first entry, another
    conversation has taken the name.
    """


class Entry(Struct, frozen=True):
    """An entry in the log. Each tenant has its own chain."""

    tenant: str
    number: int
    """The position in the tenant's chain, starting with 1."""
    time: float
    kind: Kind
    conversation: str | None
    position: int | None
    id: str | None
    body: bytes | None
    """The content. If it was removed, the body, the salt, the conversation and the id are all None."""
    salt: bytes | None
    digest: bytes
    link: bytes
    """The hash of the previous entry's link and this entry's digest."""

    @property
    def is_removed(self) -> bool:
        return self.body is None


class Anchor(Struct, frozen=True):
    """The end of a tenant's chain at a certain time."""

    time: float
    tenant: str
    number: int
    """The number of entries in the chain at that time."""
    link: str
    """The link of the last entry at that time."""

    @property
    def when(self) -> str:
        return datetime.fromtimestamp(self.time, UTC).strftime("%Y-%m-%d %H:%M UTC")


class Conflict(Struct, frozen=True):
    """The reason why a draft was not written: its conversation has new entries, or an approval has changed."""

    message: str
    about: Literal["", "stops", "limit"] = ""
    """`stops` or `limit` if stops have changed or a limit was reached instead. The decision must then be repeated."""


def new_salts(count: int) -> bytes:
    """Return random salts. Without a salt, the content of a removed entry could be guessed from its hash."""
    return secrets.token_bytes(SALT * count)


def digest_of(draft: Draft, position: int, salt: bytes) -> bytes:
    conversation, place, name, body = draft.conversation.encode(), b"%d" % position, draft.id.encode(), draft.body
    sizes = _pack_sizes(len(salt), len(conversation), len(place), len(name), len(body))
    # Each part is preceded by its length, so that different entries never hash the same bytes.
    hashed = (sizes[:8], salt, sizes[8:16], conversation, sizes[16:24], place, sizes[24:32], name, sizes[32:], body)
    return sha256(b"".join(hashed)).digest()


def is_altered(entry: Entry) -> bool:
    """Whether an entry's content does not match its digest. False for emptied entries, which have no content."""
    if entry.body is None:
        return False
    draft = Draft(entry.tenant, entry.conversation or "", entry.kind, entry.body, entry.id or "")
    try:
        return entry.salt is None or digest_of(draft, entry.position or 0, entry.salt) != entry.digest
    except (TypeError, AttributeError, UnicodeError):
        # A column contains a value that Bylaw never writes.
        return True


def link_of(before: bytes, tenant: str, number: int, time: str, kind: str, digest: bytes) -> bytes:
    """Return the link of an entry. `time` must be formatted by Python, because databases format numbers differently."""
    head = f"{tenant}\0{number}\0{time}\0{kind}\0".encode()
    return sha256(before + head + digest).digest()
