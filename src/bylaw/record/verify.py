"""Whether a log is whole: every entry says what its digest was made from, every link follows from the last."""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.record.anchor import Anchor
from bylaw.record.approval import Approval, read_change
from bylaw.record.entry import ROOT, Entry, is_altered, link_of
from bylaw.record.reading import Reading
from bylaw.record.removal import Folded, emptied, runs
from bylaw.record.stop import STOPS
from bylaw.record.use import tell_use


class Verified(Struct, frozen=True):
    """What a look at one tenant's chain found."""

    tenant: str
    entries: int
    removed: int
    """Entries whose text was taken out; the chain still covers them, and a later entry says that they were."""
    head: str
    """The last hash. Kept elsewhere, it also shows if the end of a log was cut off."""
    faults: tuple[str, ...]
    folded: int = 0
    """Of the entries, those at the beginning that were taken out after they had been emptied."""


def verify(store: Reading, tenant: str, *, head: str = "", anchors: Iterable[Anchor] = ()) -> Verified:
    """Go through a tenant's chain from its first entry; `head` is a hash noted earlier that must stand in it.

    So must each anchor, where it says. All is read as of one moment, so that a log in use is not taken for a damaged
    one.
    """
    with store.at_one_moment():
        return _verify(store, tenant, head, {each.number: each for each in anchors if each.tenant == tenant})


def _verify(store: Reading, tenant: str, head: str, anchors: dict[int, Anchor]) -> Verified:
    faults: list[str] = []
    link, number, removed = ROOT, 0, 0
    noted = not head
    fold = store.folded(tenant)
    if fold is not None:
        # What it says is checked where its own entry is, and its hash where the next entry must follow from it.
        link, number = _hash(fold.link), fold.until
        noted = noted or head in {fold.link, *(each for _, _, each in fold.heads)}
        faults.extend(_unfolded(fold, anchors))
    told: dict[str, Approval] = {}
    taken: dict[tuple[str, str], float] = {}
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
            empty.difference_update(emptied(entry, after=fold.until if fold is not None else 0))
        if entry.conversation is not None:
            lengths[entry.conversation] += 1
        if entry.kind == "approval" and not entry.is_removed and not wrong:
            tell(told, entry)
        if entry.kind == "use" and not entry.is_removed and not wrong:
            tell_use(taken, entry)
        link = entry.link
        noted = noted or link.hex() == head
        if (anchor := anchors.pop(number, None)) is not None and anchor.link != link.hex():
            faults.append(f"entry {number} is not the one that was anchored at {anchor.when}: the log was replaced")
    faults.extend(f"{_those(run)} emptied, and no removal in the log says so" for run in runs(empty))
    kept = store.heads().get(tenant)
    if kept is None and number:
        faults.append(f"the log ends at entry {number}, but the count of what was written is missing")
    elif kept is not None and kept != (number, link):
        faults.append(f"the log ends at entry {number}, but {kept[0]} were written")
    faults.extend(_miscounted(lengths, store.lengths(tenant)))
    faults.extend(_misstated(store, tenant, told))
    if (counted := store.uses(tenant)) != taken:
        faults.append(f"{len(counted)} places under limits are counted; by the log they are {len(taken)}, or others")
    if anchors:
        last = max(anchors.values(), key=lambda each: each.number)
        were = f"{last.number} were there at {last.when}: it was cut off, or an old copy was put in its place"
        faults.append(f"the log ends at entry {number}, but {were}")
    if not noted:
        faults.append(f"no entry has the hash {head}: the log was cut off or replaced")
    return Verified(tenant, number, removed, link.hex(), tuple(faults), fold.until if fold is not None else 0)


def _hash(link: str) -> bytes:
    try:
        return bytes.fromhex(link)
    except ValueError:
        return b""


def _unfolded(fold: Folded, anchors: dict[int, Anchor]) -> list[str]:
    """What anchors contradict of what was folded; those of entries that are gone say nothing else."""
    kept = {number: link for _, number, link in fold.heads} | {fold.until: fold.link}
    faults: list[str] = []
    for number in sorted(number for number in anchors if number <= fold.until):
        anchor = anchors.pop(number)
        if kept.get(number, anchor.link) != anchor.link:
            faults.append(f"entry {number} is not the one that was anchored at {anchor.when}: the log was replaced")
    return faults


def _those(run: tuple[int, int]) -> str:
    first, last = run
    return f"entry {first} was" if first == last else f"entries {first} to {last} were"


def _miscounted(found: Mapping[str, int], written: Mapping[str, int]) -> list[str]:
    """Conversations whose entries are not as many as the log says it wrote; of stops the number outlives them."""
    faults: list[str] = []
    for name in sorted({*found, *written}):
        here, said = found.get(name, 0), written.get(name)
        if said is None:
            faults.append(f"conversation `{name}` has {here} entries, but is left out of the list of conversations")
        elif here != said and not (name == STOPS and here < said):
            faults.append(f"conversation `{name}` has {here} entries, but {said} were written")
    return faults


def _misstated(store: Reading, tenant: str, told: Mapping[str, Approval]) -> list[str]:
    """Rows of the list of approvals that the entries contradict, and those that are missing there."""
    try:
        rows = {row.id: row for row in store.approvals(tenant)}
    except msgspec.MsgspecError as error:
        return [f"the list of approvals cannot be read: {error}"]
    wrong = {name: why for name, row in rows.items() if (why := _differs(row, told.get(name)))}
    wrong |= {name: "it is left out of the list of approvals" for name in told if name not in rows}
    return [f"approval `{name}` is not what the log says of it: {why}" for name, why in wrong.items()]


def _faults(entry: Entry, before: bytes) -> list[str]:
    found: list[str] = []
    if link_of(before, entry.tenant, entry.number, repr(entry.time), entry.kind, entry.digest) != entry.link:
        found.append(f"entry {entry.number} does not follow from the one before it")
    if is_altered(entry):
        found.append(f"entry {entry.number} was altered")
    return found


def unsupported(store: Reading, tenant: str, approvals: Iterable[Approval]) -> dict[str, str]:
    """Approvals that the entries of their conversations contradict, by id, each with what is wrong."""
    found: dict[str, str] = {}
    for approval in approvals:
        told = told_by(store.conversation(tenant, approval.conversation)).get(approval.id)
        if why := _differs(approval, told):
            found[approval.id] = why
    return found


def told_by(entries: Iterable[Entry]) -> dict[str, Approval]:
    """The approvals as the entries of a log tell of them."""
    told: dict[str, Approval] = {}
    for entry in entries:
        if entry.kind == "approval" and entry.body is not None and not is_altered(entry):
            tell(told, entry)
    return told


def tell(told: dict[str, Approval], entry: Entry) -> None:
    """What one more entry about an approval makes of those that were told of before."""
    change = read_change(entry.body or b"")
    name, known = change.approval, told.get(change.approval)
    if known is None:
        told[name] = Approval(name, entry.conversation or "", change.status, entry.time, change.expires, change)
    elif change.status in ("approved", "rejected"):
        told[name] = replace(known, status=change.status, answer=change, answered=entry.time)
    else:
        told[name] = replace(known, status=change.status, end=change, ended=entry.time)


def _differs(row: Approval, told: Approval | None) -> str:
    """What a row of the list of approvals says otherwise than the entries; empty where it says the same.

    Earlier versions kept of what was over only its last word, and no times.
    """
    if told is None:
        return "no entry of the log asks for it"
    if row.request != told.request or row.conversation != told.conversation:
        return "the log asks for something else"
    if row.status != told.status:
        return f"by the log it is {told.status}"
    if (row.asked, row.expires) != (told.asked, told.expires):
        return "by the log it was asked for, or is over, at another time"
    if row.answer is not None and (row.answer, row.answered) != (told.answer, told.answered):
        return "the log has another answer to it"
    if row.answer is None and told.answer is not None and row.end is None:
        return "the log has an answer to it"
    if row.end is not None and (row.end != told.end or row.ended not in (0.0, told.ended)):
        return "by the log it was over in another way, or at another time"
    return ""
