"""Whether a log is whole: every entry says what its digest was made from, every link follows from the last."""

from msgspec import Struct

from bylaw.record.entry import ROOT, Draft, Entry, digest_of, link_of
from bylaw.record.store import Store


class Verified(Struct, frozen=True):
    """What a look at one tenant's chain found."""

    tenant: str
    entries: int
    removed: int
    """Entries whose text was taken out; the chain still covers them."""
    head: str
    """The last hash. Kept elsewhere, it also shows if the end of a log was cut off."""
    faults: tuple[str, ...]


def verify(store: Store, tenant: str, *, head: str = "") -> Verified:
    """Go through a tenant's chain from its first entry; `head` is a hash noted earlier that must stand in it."""
    faults: list[str] = []
    link, number, removed = ROOT, 0, 0
    noted = not head
    for entry in store.entries(tenant):
        if entry.number != number + 1:
            faults.append(f"entry {number + 1} is not there: the next is {entry.number}")
        number = entry.number
        removed += entry.is_removed
        faults.extend(_faults(entry, link))
        link = entry.link
        noted = noted or link.hex() == head
    kept = store.heads().get(tenant, (0, ROOT))
    if kept != (number, link):
        faults.append(f"the log ends at entry {number}, but {kept[0]} were written")
    if not noted:
        faults.append(f"no entry has the hash {head}: the log was cut off or replaced")
    return Verified(tenant, number, removed, link.hex(), tuple(faults))


def _faults(entry: Entry, before: bytes) -> list[str]:
    found: list[str] = []
    if link_of(before, entry.tenant, entry.number, entry.time, entry.kind, entry.digest) != entry.link:
        found.append(f"entry {entry.number} does not follow from the one before it")
    if entry.body is not None:
        draft = Draft(entry.tenant, entry.conversation or "", entry.kind, entry.body, entry.id or "")
        if entry.salt is None or digest_of(draft, entry.position or 0, entry.salt) != entry.digest:
            found.append(f"entry {entry.number} was altered")
    return found
