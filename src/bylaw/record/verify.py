"""Verifies a log: every entry must match its digest, and every link must follow from the previous link.

Anyone who can write to the database can truncate a chain or delete a tenant. Anchors reveal such changes. An anchor
records the end of each chain and is stored outside the database: on another disk, in another account or on paper.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.errors import BylawError, UsageError
from bylaw.record.approval import Approval, read_change
from bylaw.record.database import REMOVED
from bylaw.record.entry import ROOT, Anchor, Entry, is_altered, link_of
from bylaw.record.reading import Reading
from bylaw.record.removal import emptied, hash_anchors, hash_marks, read_removal, runs, signature_fault
from bylaw.record.stop import STOPS
from bylaw.record.store import Store, open_store
from bylaw.record.use import apply_use


class Verified(Struct, frozen=True):
    tenant: str
    entries: int
    removed: int
    """The number of entries whose content was removed. The chain still contains their hashes, and signed entries list
    them.
    """
    head: str
    """The last hash. If a copy is stored elsewhere, comparing it reveals a truncated log."""
    faults: tuple[str, ...]
    folded: int = 0
    """The number of emptied entries that were deleted from the start of the chain."""


def verify(
    store: Reading, tenant: str, *, head: str = "", anchors: Iterable[Anchor] = (), key: bytes | None = None
) -> Verified:
    """Verify a tenant's chain from its first entry, in one snapshot. Other processes may use the log meanwhile.

    The chain must contain the earlier hash `head`, each anchor must match its entry, and removals must be signed with
    `key`.
    """
    with store.at_one_moment():
        return _verify(store, tenant, head, [each for each in anchors if each.tenant == tenant], key)


def _verify(store: Reading, tenant: str, head: str, noted: Sequence[Anchor], key: bytes | None) -> Verified:
    faults: list[str] = []
    link, number, removed = ROOT, 0, 0
    found_head = not head
    anchors: dict[int, Anchor] = {}
    firsts = [(anchors.setdefault(each.number, each), each) for each in noted]
    faults += [f"the anchors of {a.when} and {b.when} contradict each other" for a, b in firsts if a.link != b.link]
    fold = store.folded(tenant)
    start = fold.until if fold is not None else 0
    if fold is not None:
        # The fold's signature, and its link to the next entry, are checked below.
        link, number = _hash(fold.link), start
        found_head = found_head or head == fold.link
        if fold.anchors != hash_anchors({each.number: each.link for each in noted}, start) and noted:
            faults.append(f"the anchors up to entry {start} do not match the folded part of the log")
        anchors = {number: each for number, each in anchors.items() if number > start}
    logged: dict[str, Approval] = {}
    taken: dict[tuple[str, str], tuple[float, str]] = {}
    empty: set[int] = set()
    marks: set[str] = set()
    lengths: Counter[str] = Counter({STOPS: fold.stops} if fold is not None and fold.stops else {})
    for entry in store.entries(tenant):
        if entry.number != number + 1:
            faults.append(f"entry {number + 1} is missing; the next one is {entry.number}")
        number = entry.number
        wrong = _faults(entry, link)
        removal = read_removal(entry) if entry.kind == "removal" and not wrong else None
        if removal is not None and (why := signature_fault(entry, removal, link, key)):
            wrong.append(why)
        faults.extend(wrong)
        if entry.is_removed:
            removed += 1
            empty.add(number)
        elif removal is not None:
            empty.difference_update(emptied(entry, removal, after=start))
            marks.update(removal.conversations)
        if entry.conversation is not None:
            if entry.position != lengths[entry.conversation]:
                faults.append(f"entry {number} of conversation `{entry.conversation}` is in the wrong position")
            lengths[entry.conversation] += 1
        elif entry.kind == "stop":
            # Emptied stops still count, because decisions recognise changes by the number of stops.
            lengths[STOPS] += 1
        if entry.kind == "approval" and not entry.is_removed and not wrong:
            apply_change(logged, entry)
        if entry.kind == "use" and not entry.is_removed and not wrong:
            apply_use(taken, entry)
        link = entry.link
        found_head = found_head or link.hex() == head
        if (anchor := anchors.pop(number, None)) is not None and anchor.link != link.hex():
            faults.append(f"entry {number} differs from the entry anchored at {anchor.when}: the log was replaced")
    faults.extend(f"{_as_range(run)} emptied without a signed removal" for run in runs(empty))
    kept = store.heads().get(tenant)
    if kept is None and number:
        faults.append(f"the log ends at entry {number}, but the number of written entries is missing")
    elif kept is not None and kept != (number, link):
        faults.append(f"the log ends at entry {number}, but {kept[0]} entries were written")
    written = store.lengths(tenant)
    listed = {name for name in written if name.startswith(REMOVED)}
    folded = hash_marks(listed - marks) if fold is not None or listed != marks else ""
    if not marks <= listed or folded != (fold.removed if fold is not None else ""):
        faults.append("the list of removed conversations contradicts the signed removals")
    faults.extend(_length_faults(lengths, {name: length for name, length in written.items() if name not in listed}))
    faults.extend(_approval_faults(store, tenant, logged))
    if store.uses(tenant) != taken:
        faults.append("the calls that count against limits differ from those that the log shows")
    if anchors:
        last = max(anchors.values(), key=lambda each: each.number)
        were = f"an anchor of {last.when} covers {last.number} entries: the log was cut off, or replaced by an old copy"
        faults.append(f"the log ends at entry {number}, but {were}")
    if not found_head:
        faults.append(f"no entry has the hash {head}: the log was cut off or replaced")
    return Verified(tenant, number, removed, link.hex(), tuple(faults), start)


def _hash(link: str) -> bytes:
    try:
        return bytes.fromhex(link)
    except ValueError:
        return b""


def _as_range(run: tuple[int, int]) -> str:
    first, last = run
    return f"entry {first} was" if first == last else f"entries {first} to {last} were"


def _length_faults(found: Mapping[str, int], written: Mapping[str, int]) -> list[str]:
    """Return the conversations that have too few or too many entries."""
    faults: list[str] = []
    for name in sorted({*found, *written}):
        here, said = found.get(name, 0), written.get(name)
        if said is None:
            faults.append(f"conversation `{name}` has {here} entries but is missing from the list of conversations")
        elif here != said:
            faults.append(f"conversation `{name}` has {here} entries, but {said} were written")
    return faults


def _approval_faults(store: Reading, tenant: str, logged: Mapping[str, Approval]) -> list[str]:
    """Return the rows in the table of approvals that contradict the entries, and the rows that are missing."""
    try:
        rows = {row.id: row for row in store.approvals(tenant)}
    except msgspec.MsgspecError as error:
        return [f"the list of approvals cannot be read: {error}"]
    wrong = {name: why for name, row in rows.items() if (why := _differs(row, logged.get(name)))}
    wrong |= {name: "it is missing from the list of approvals" for name in logged if name not in rows}
    return [f"approval `{name}` contradicts the log: {why}" for name, why in wrong.items()]


def _faults(entry: Entry, before: bytes) -> list[str]:
    found: list[str] = []
    if link_of(before, entry.tenant, entry.number, repr(entry.time), entry.kind, entry.digest) != entry.link:
        found.append(f"entry {entry.number} does not follow from the previous entry")
    if is_altered(entry):
        found.append(f"entry {entry.number} was altered")
    return found


def checked(store: Reading, tenant: str, approvals: Iterable[Approval]) -> tuple[dict[str, Approval], dict[str, str]]:
    """Return two mappings by id: the approvals that match the entries of their conversations, and what is wrong with
    the others.
    """
    right: dict[str, Approval] = {}
    wrong: dict[str, str] = {}
    for approval in approvals:
        logged = approvals_in(store.conversation(tenant, approval.conversation)).get(approval.id)
        why = _differs(approval, logged)
        if logged is None or why:
            wrong[approval.id] = why
        else:
            right[approval.id] = logged
    return right, wrong


def approvals_in(entries: Iterable[Entry]) -> dict[str, Approval]:
    logged: dict[str, Approval] = {}
    for entry in entries:
        if entry.kind == "approval" and entry.body is not None and not is_altered(entry):
            apply_change(logged, entry)
    return logged


def apply_change(logged: dict[str, Approval], entry: Entry) -> None:
    change = read_change(entry.body or b"")
    name, known = change.approval, logged.get(change.approval)
    if known is None:
        logged[name] = Approval(name, entry.conversation or "", change.status, entry.time, change.expires, change)
    elif change.status in ("approved", "rejected"):
        logged[name] = replace(known, status=change.status, answer=change, answered=entry.time)
    else:
        logged[name] = replace(known, status=change.status, end=change, ended=entry.time)


def _differs(row: Approval, logged: Approval | None) -> str:
    """Return how an approval's row differs from the entries. Empty if it does not.

    Earlier versions stored only the last change of a finished approval, without times.
    """
    if logged is None:
        return "no entry requests it"
    if row.request != logged.request or row.conversation != logged.conversation:
        return "the log has a different request"
    if row.status != logged.status:
        return f"according to the log, it is {logged.status}"
    if (row.asked, row.expires) != (logged.asked, logged.expires):
        return "according to the log, it was requested or ended at a different time"
    if row.answer is not None and (row.answer, row.answered) != (logged.answer, logged.answered):
        return "the log has a different answer"
    if row.answer is None and logged.answer is not None and row.end is None:
        return "the log has an answer"
    if row.end is not None and (row.end != logged.end or row.ended not in (0.0, logged.ended)):
        return "according to the log, it ended differently or at a different time"
    return ""


OFTEN = 300.0
"""The time from one anchor to the next, in seconds."""
AGAIN = 10.0
"""The time from a failure to the next attempt, in seconds."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Anchor).decode


def beside(where: str) -> Path:
    """Return the path of a log's anchor file: next to the log or, for a database server, in the current folder."""
    if "://" in where:
        return Path(f"{Path(urlsplit(where).path).name or 'decisions'}.anchors")
    return Path(f"{Path(where).expanduser()}.anchors")


def read_anchors(path: Path) -> list[Anchor]:
    found: list[Anchor] = []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"cannot be read: {(error.strerror or str(error)).lower()}", place=str(path)) from None
    for number, line in enumerate(lines, 1):
        try:
            found.append(_decode(line))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            # A crash may have truncated the last line, which is then ignored. The next anchor starts a new line.
            if number < len(lines):
                hint = "restore the file, or delete the line if you know why it is broken"
                raise UsageError("is not an anchor", place=f"{path}:{number}", hint=hint) from None
    return found


def write_anchors(store: Store, path: Path, known: dict[str, int]) -> list[Anchor]:
    """Write an anchor for each chain that has new entries.

    `known` contains the last anchored entry of each chain and is updated.
    """
    now = time.time()
    made = [
        Anchor(now, tenant, number, link.hex())
        for tenant, (number, link) in store.heads().items()
        if known.get(tenant) != number
    ]
    if not made and not os.access(path if path.exists() else path.parent, os.W_OK):
        # Try to write now, so that an error is reported before the first anchor is due.
        raise UsageError("cannot be written", place=str(path))
    if made:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with open(descriptor, "ab") as stream:
            # If the last line was truncated, start a new one.
            stream.write(b"".join([b"\n" if _is_cut(path) else b"", *(_encode(each) + b"\n" for each in made)]))
            stream.flush()
            os.fsync(stream.fileno())
        known.update({each.tenant: each.number for each in made})
    return made


def _is_cut(path: Path) -> bool:
    with path.open("rb") as stream:
        stream.seek(0, os.SEEK_END)
        if not stream.tell():
            return False
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) != b"\n"


class Anchoring:
    """Writes anchors at intervals in a thread, and once more when the thread ends."""

    def __init__(
        self,
        where: str,
        path: Path,
        tell: Callable[[str], None],
        *,
        often: float = OFTEN,
        failing: Callable[[bool], None] = lambda is_failing: None,
    ) -> None:
        """`failing` is called after each attempt, with True if the attempt failed and False if it succeeded."""
        self._where, self._path, self._tell, self._often, self._failing = where, path, tell, often, failing
        self._known: dict[str, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="bylaw-anchors", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _work(self) -> None:
        is_last = is_failing = False
        while not is_last:
            is_last = self._ended.is_set()
            try:
                store = open_store(self._where)
                try:
                    made = write_anchors(store, self._path, self._known)
                finally:
                    store.close()
                for each in made:
                    self._tell(f"anchor {each.when}: {each.tenant} {each.number} {each.link}")
                is_failing = False
            except (BylawError, OSError) as error:
                if not is_failing or is_last:
                    self._tell(f"no anchor was written to {self._path}: {error}")
                is_failing = True
            self._failing(is_failing)
            if not is_last:
                self._ended.wait(min(self._often, AGAIN) if is_failing else self._often)
