"""Whether a log is whole: every entry says what its digest was made from, every link follows from the last."""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct

from bylaw.record.approval import Approval, Change, read_change
from bylaw.record.entry import ROOT, Entry, is_altered, link_of
from bylaw.record.removal import emptied, runs
from bylaw.record.store import Store


class Verified(Struct, frozen=True):
    """What a look at one tenant's chain found."""

    tenant: str
    entries: int
    removed: int
    """Entries whose text was taken out; the chain still covers them, and a later entry says that they were."""
    head: str
    """The last hash. Kept elsewhere, it also shows if the end of a log was cut off."""
    faults: tuple[str, ...]


def verify(store: Store, tenant: str, *, head: str = "") -> Verified:
    """Go through a tenant's chain from its first entry; `head` is a hash noted earlier that must stand in it.

    All is read as of one moment, so that a log in use is not taken for a damaged one.
    """
    with store.at_one_moment():
        return _verify(store, tenant, head)


def _verify(store: Store, tenant: str, head: str) -> Verified:
    faults: list[str] = []
    link, number, removed = ROOT, 0, 0
    noted = not head
    empty: set[int] = set()
    lengths: Counter[str] = Counter()
    for entry in store.entries(tenant):
        if entry.number != number + 1:
            faults.append(f"entry {number + 1} is not there: the next is {entry.number}")
        number = entry.number
        wrong = _faults(entry, link)
        faults.extend(wrong)
        if entry.is_removed:
            removed += 1
            empty.add(number)
        elif entry.kind == "removal" and not wrong:
            empty.difference_update(emptied(entry))
        if entry.conversation is not None:
            lengths[entry.conversation] += 1
        link = entry.link
        noted = noted or link.hex() == head
    faults.extend(f"{_those(run)} emptied, and no removal in the log says so" for run in runs(empty))
    kept = store.heads().get(tenant)
    if kept is None and number:
        faults.append(f"the log ends at entry {number}, but the count of what was written is missing")
    elif kept is not None and kept != (number, link):
        faults.append(f"the log ends at entry {number}, but {kept[0]} were written")
    faults.extend(_miscounted(lengths, store.lengths(tenant)))
    faults.extend(_misstated(store, tenant))
    if not noted:
        faults.append(f"no entry has the hash {head}: the log was cut off or replaced")
    return Verified(tenant, number, removed, link.hex(), tuple(faults))


def _those(run: tuple[int, int]) -> str:
    first, last = run
    return f"entry {first} was" if first == last else f"entries {first} to {last} were"


def _miscounted(found: Mapping[str, int], written: Mapping[str, int]) -> list[str]:
    """Conversations whose entries are not as many as the log says it wrote."""
    faults: list[str] = []
    for name in sorted({*found, *written}):
        here, said = found.get(name, 0), written.get(name)
        if said is None:
            faults.append(f"conversation `{name}` has {here} entries, but is left out of the list of conversations")
        elif here != said:
            faults.append(f"conversation `{name}` has {here} entries, but {said} were written")
    return faults


def _misstated(store: Store, tenant: str) -> list[str]:
    """Approvals that the entries contradict."""
    try:
        wrong = unsupported(store, tenant, store.approvals(tenant))
    except msgspec.MsgspecError as error:
        return [f"the list of approvals cannot be read: {error}"]
    return [f"approval `{name}` is not what the log says of it: {why}" for name, why in wrong.items()]


def _faults(entry: Entry, before: bytes) -> list[str]:
    found: list[str] = []
    if link_of(before, entry.tenant, entry.number, repr(entry.time), entry.kind, entry.digest) != entry.link:
        found.append(f"entry {entry.number} does not follow from the one before it")
    if is_altered(entry):
        found.append(f"entry {entry.number} was altered")
    return found


def unsupported(store: Store, tenant: str, approvals: Iterable[Approval]) -> dict[str, str]:
    """Approvals that the entries of their conversations contradict, by id, each with what is wrong."""
    found: dict[str, str] = {}
    for approval in approvals:
        last: Change | None = None
        asked: Change | None = None
        said: Change | None = None
        for entry in store.conversation(tenant, approval.conversation):
            if entry.kind != "approval" or entry.body is None or is_altered(entry):
                continue
            change = read_change(entry.body)
            if change.approval == approval.id:
                asked, last = asked or change, change
                said = change if change.status in ("approved", "rejected") else said
        if asked is None or last is None:
            found[approval.id] = "no entry of the log asks for it"
        elif asked != approval.request:
            found[approval.id] = "the log asks for something else"
        elif last.status != approval.status:
            found[approval.id] = f"by the log it is {last.status}"
        elif approval.answer is not None and approval.answer != said:
            found[approval.id] = "the log has another answer to it"
    return found
