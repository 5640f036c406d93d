"""What the log keeps, and the chain of hashes that shows if any of it was altered, left out or put in.

The chain covers a salted hash of each entry, never the entry itself: what an entry says can be removed, to keep a
retention period or a promise to a person, and the chain still holds. A removal is an entry of its own, which says which
entries it emptied: what was emptied without one was tampered with.
"""

import secrets
from datetime import UTC, datetime
from hashlib import sha256
from struct import Struct as Layout
from typing import Literal

from msgspec import Struct

Kind = Literal["opening", "event", "decision", "approval", "use", "stop", "attestation", "removal"]

ROOT = b"\0" * 32
"""What the first entry of a chain is linked to."""
SALT = 16
_pack_sizes = Layout(">5Q").pack
DEFAULT_TENANT = "default"
"""Whose log it is where nobody shares it."""


class Draft(Struct, frozen=True):
    """Something to be written into the log."""

    tenant: str
    conversation: str
    kind: Kind
    body: bytes
    """JSON."""
    id: str = ""
    """The caller's own name for it: a second draft of that name is the first one sent again, and is not written."""
    position: int | None = None
    """Where in its conversation it must stand, for a caller who has read all before it; None for the end."""
    under: int | None = None
    """How many entries about stops there were when it was decided; None for what no stop is about."""
    first: "Entry | None" = None
    """The first entry of its conversation, for a caller who knows it: another may have begun under the same name."""


class Entry(Struct, frozen=True):
    """One line of the log. Each tenant has a chain of its own."""

    tenant: str
    number: int
    """Position in the tenant's chain, from 1."""
    time: float
    kind: Kind
    conversation: str | None
    position: int | None
    id: str | None
    body: bytes | None
    """None where it was removed, and with it the salt, the conversation and the id."""
    salt: bytes | None
    digest: bytes
    link: bytes
    """Hash of the entry before it and of this one's digest."""

    @property
    def is_removed(self) -> bool:
        """Whether what it said was taken out of the log."""
        return self.body is None


class Anchor(Struct, frozen=True):
    """The end of one tenant's chain at a time."""

    time: float
    tenant: str
    number: int
    """How many entries it had."""
    link: str
    """The hash of the last."""

    @property
    def when(self) -> str:
        """The time, for people."""
        return datetime.fromtimestamp(self.time, UTC).strftime("%Y-%m-%d %H:%M UTC")


class Conflict(Struct, frozen=True):
    """A draft that could not be written: its conversation has gone on, or an approval is no longer what it was."""

    message: str
    about: Literal["", "stops", "limit"] = ""
    """Set where it is to be decided anew for another reason than that: stops were made or lifted, or somebody took the
    last place under a limit."""


def new_salts(count: int) -> bytes:
    """Random bytes for so many entries, so that nobody can guess what a removed one said by trying."""
    return secrets.token_bytes(SALT * count)


def digest_of(draft: Draft, position: int, salt: bytes) -> bytes:
    """What stands in the chain for an entry."""
    conversation, place, name, body = draft.conversation.encode(), b"%d" % position, draft.id.encode(), draft.body
    sizes = _pack_sizes(len(salt), len(conversation), len(place), len(name), len(body))
    # Each part stands behind its length: no two entries read the same.
    hashed = (sizes[:8], salt, sizes[8:16], conversation, sizes[16:24], place, sizes[24:32], name, sizes[32:], body)
    return sha256(b"".join(hashed)).digest()


def is_altered(entry: Entry) -> bool:
    """Whether an entry says something else than what stands for it in the chain; one that was emptied says nothing."""
    if entry.body is None:
        return False
    draft = Draft(entry.tenant, entry.conversation or "", entry.kind, entry.body, entry.id or "")
    try:
        return entry.salt is None or digest_of(draft, entry.position or 0, entry.salt) != entry.digest
    except (TypeError, AttributeError, UnicodeError):
        # A column holds what was never written there.
        return True


def link_of(before: bytes, tenant: str, number: int, time: str, kind: str, digest: bytes) -> bytes:
    """The chain's hash after an entry; its `time` as Python shows it."""
    head = f"{tenant}\0{number}\0{time}\0{kind}\0".encode()
    return sha256(before + head + digest).digest()
