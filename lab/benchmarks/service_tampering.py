"""Tampers with a log in many ways, and reports which kinds of tampering `bylaw log verify` detects.

    python lab/benchmarks/service_tampering.py [--page lab/results/pages/service.md]

The log is in SQLite and has two tenants. It is written through the public API: decisions, an approval and its answer,
stops, a call under a limit, a conversation removed on request, and a folded beginning. For each row, the benchmark
copies the file, alters the copy as anyone with write access to the database can, and verifies it without and with the
anchors. In the second half of the list, the adversary computes hashes with our own code, but has no signing key.
`--page` writes the table between two marks of a page. The exit status is 1 if anything goes undetected with the
anchors.
"""

import argparse
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec.structs import astuple, replace

from bylaw import Pack, Shield
from bylaw.record import Draft, Log, open_store
from bylaw.record.approval import Change, draft
from bylaw.record.database import COLUMNS, entry_of
from bylaw.record.entry import ROOT, Entry, digest_of, link_of, new_salts
from bylaw.record.removal import Folded, Removal, encode, read_removal, sign
from bylaw.record.verify import Anchor, read_anchors, verify, write_anchors

BEGIN, END = "<!-- tampering -->", "<!-- end of tampering -->"
NORTH, SOUTH = "north", "south"
FILES = {
    "pack.yaml": "format: 1\nname: till\ndocument: policy.md\n",
    "policy.md": "Pay at most two refunds an hour.\n",
    "policies.yaml": "policies:\n  - {id: few, kind: rule, spans: [{quote: Pay at most two refunds an hour.}]}\n",
    "tools.yaml": "tools:\n  refund: {effect: write, parameters: {order_id: string}, changes: []}\n",
    "rules.yaml": "limits:\n  - {id: few, tool: refund, most: 2, within: 1h, per: tenant}\n",
}
_ONE = "tenant = 'north' AND conversation = 'a'"
_TEXT = "CAST(replace(CAST(body AS TEXT), '{}', '{}') AS BLOB)"
WAYS: dict[str, tuple[str, ...]] = {
    "a word of an entry changed": (f"UPDATE entries SET body = {_TEXT.format('O1', 'O2')} WHERE {_ONE}",),
    "an entry moved to another place": (f"UPDATE entries SET position = 77 WHERE {_ONE} AND position = 1",),
    "an entry moved to another conversation": (
        f"UPDATE entries SET conversation = 'z', position = 0 WHERE {_ONE} AND position = 1",
    ),
    "the time of an entry changed": (f"UPDATE entries SET time = time - 86400 WHERE {_ONE}",),
    "the kind of an entry changed": (f"UPDATE entries SET kind = 'note' WHERE {_ONE} AND kind = 'decision'",),
    "an entry in the middle taken out": (f"DELETE FROM entries WHERE {_ONE} AND position = 1",),
    "the last entry taken out": (
        "DELETE FROM entries WHERE tenant = 'north' AND number = (SELECT number FROM heads WHERE tenant = 'north')",
    ),
    "the count of entries taken out": ("DELETE FROM heads WHERE tenant = 'north'",),
    "the count of a conversation changed": ("UPDATE conversations SET length = length - 1 WHERE name = 'a'",),
    "a conversation left out of the list": ("DELETE FROM conversations WHERE name = 'a'",),
    "an entry emptied, and no removal says so": (f"UPDATE entries SET body = NULL, salt = NULL WHERE {_ONE}",),
    "a removal that says more than it emptied": (
        f"UPDATE entries SET body = {_TEXT.format('1', '2')} WHERE tenant = 'north' AND kind = 'removal'",
    ),
    "an approval's row taken out": ("DELETE FROM approvals",),
    "when an approval was asked for, changed": ("UPDATE approvals SET asked = asked - 1e6",),
    "when an approval runs out, changed": ("UPDATE approvals SET expires = expires + 1e7",),
    "who answered an approval, changed": ("UPDATE approvals SET body = replace(body, x'616e6e', x'626f62')",),
    "an answered approval set back to waiting": ("UPDATE approvals SET status = 'waiting'",),
    "an approval moved to another conversation": ("UPDATE approvals SET conversation = 'other'",),
    "a stop's tool changed": (
        f"UPDATE entries SET body = {_TEXT.format('refund', 'refute')} WHERE conversation = 'bylaw/stops'",
    ),
    "a stop taken out": ("DELETE FROM entries WHERE conversation = 'bylaw/stops' AND position = 0",),
    "who lifted a stop, changed": (
        f"UPDATE entries SET body = {_TEXT.format('bo', 'al')} WHERE conversation = 'bylaw/stops' AND position = 1",
    ),
    "a place under a limit freed": ("DELETE FROM uses",),
    "when a place was taken, changed": ("UPDATE uses SET time = time - 7200",),
    "a fold that names another hash": (
        'UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), \'"link":"\', \'"link":"00\') AS BLOB) '
        "WHERE tenant = 'north' AND kind = 'removal' AND CAST(body AS TEXT) LIKE '%\"link\"%'",
    ),
    "a tenant taken out whole": tuple(
        f"DELETE FROM {table} WHERE tenant = 'south'" for table in ("entries", "heads", "conversations")
    ),
    "the end cut off, and the head set back": (
        "DELETE FROM entries WHERE tenant = 'south' AND number > 2",
        "DELETE FROM conversations WHERE tenant = 'south' AND name = 'late'",
        "UPDATE heads SET number = 2, link = (SELECT link FROM entries WHERE tenant = 'south' AND number = 2) "
        "WHERE tenant = 'south'",
    ),
}

KEY, OTHER_KEY = b"the signing key of this benchmark", b"a signing key of the adversary's own"


class Forger:
    """Rewrites parts of a tenant's chain, and recomputes the hashes from the first change on."""

    def __init__(self, connection: sqlite3.Connection, tenant: str = NORTH) -> None:
        self.connection, self.tenant = connection, tenant
        rows = connection.execute(f"SELECT {COLUMNS} FROM entries WHERE tenant = ? ORDER BY number", (tenant,))
        self.entries = [entry_of(row) for row in rows]
        self.genuine = set(self.entries)
        self.start = self.entries[0].number
        folds = [read_removal(each) for each in self.entries if each.kind == "removal"]
        self.before = next((bytes.fromhex(each.folded.link) for each in folds if each and each.folded), ROOT)

    def of(self, conversation: str) -> list[Entry]:
        return [each for each in self.entries if each.conversation == conversation]

    def change(self, entry: Entry, **changes: object) -> None:
        self.entries[self.entries.index(entry)] = replace(entry, **changes)

    def empty(self, entries: Sequence[Entry]) -> list[tuple[int, int]]:
        """Empty entries as a removal does. Return their numbers as ranges."""
        for each in entries:
            self.change(each, body=None, salt=None, conversation=None, position=None, id=None)
        return [(each.number, each.number) for each in entries]

    def add(self, kind: str, body: bytes, conversation: str | None = None, position: int | None = None) -> None:
        last = self.entries[-1]
        made = Entry(self.tenant, last.number + 1, last.time, kind, conversation, position, None, body, b"", b"", b"")  # type: ignore[arg-type]
        self.entries.append(made)

    def sign(self, removal: Removal, key: bytes) -> bytes:
        """Return the body of a removal at the end of the chain, signed with the attacker's own key."""
        self.write()
        last = self.entries[-1]
        body = encode(removal)
        return encode(replace(removal, signature=sign(key, self.tenant, last.number + 1, last.link, body)))

    def write(self) -> None:
        """Number the entries from the start, compute every hash, and adjust the other tables."""
        link, entries, lengths = self.before, list[Entry](), dict[str, int]()
        for number, entry in enumerate(self.entries, self.start):
            salt, digest = entry.salt, entry.digest
            if entry.body is not None and entry not in self.genuine:
                salt = new_salts(1)
                draft = Draft(self.tenant, entry.conversation or "", entry.kind, entry.body, entry.id or "")
                digest = digest_of(draft, entry.position or 0, salt)
            link = link_of(link, self.tenant, number, repr(entry.time), entry.kind, digest)
            entries.append(replace(entry, tenant=self.tenant, number=number, salt=salt, digest=digest, link=link))
            if entry.conversation is not None:
                lengths[entry.conversation] = (entry.position or 0) + 1
        self.entries = entries
        run = self.connection.execute
        run("DELETE FROM entries WHERE tenant = ?", (self.tenant,))
        run("DELETE FROM conversations WHERE tenant = ? AND name NOT LIKE 'bylaw/%'", (self.tenant,))
        for each in entries:
            run(f"INSERT INTO entries ({COLUMNS}) VALUES ({','.join('?' * 11)})", astuple(each))
        for name, length in lengths.items():
            run("INSERT OR REPLACE INTO conversations VALUES (?,?,?)", (self.tenant, name, length))
        run("UPDATE heads SET number = ?, link = ? WHERE tenant = ?", (entries[-1].number, link, self.tenant))


def _renumber(entries: Sequence[Entry]) -> list[Entry]:
    seen: dict[str, int] = {}
    found: list[Entry] = []
    for each in entries:
        if each.conversation is not None:
            each = replace(each, position=seen.get(each.conversation, 0))
            seen[each.conversation or ""] = (each.position or 0) + 1
        found.append(each)
    return found


def _removal(conversation: str, part: slice, *, key: bytes | None) -> Callable[[Forger], None]:
    def forge(forger: Forger) -> None:
        removal = Removal(forger.empty(forger.of(conversation)[part]))
        forger.add("removal", forger.sign(removal, key) if key else encode(removal))

    return forge


def _existing(changed: Callable[[Removal], Removal], *, is_fold: bool = False) -> Callable[[Forger], None]:
    """Change the content of a genuine removal, but keep its signature."""

    def forge(forger: Forger) -> None:
        for each in [each for each in forger.entries if each.kind == "removal"]:
            removal = read_removal(each)
            if removal is not None and (removal.folded is not None) == is_fold:
                forger.change(each, body=encode(changed(removal)))

    return forge


def _copied_signature(forger: Forger) -> None:
    genuine = next(found for each in forger.entries if (found := read_removal(each)) and found.signature)
    forger.add("removal", encode(replace(genuine, entries=forger.empty(forger.of("a")))))


def _fold_of_all(key: bytes | None) -> Callable[[Forger], None]:
    def forge(forger: Forger) -> None:
        last = forger.entries[-1]
        removal = Removal([], folded=Folded(last.number, last.link.hex()))
        number, history = last.number + 1, forger.entries[:]
        signature = sign(key, NORTH, number, last.link, encode(removal)) if key else ""
        forger.before, forger.start = last.link, number
        forger.entries = [replace(last, kind="removal", conversation=None, position=None, id=None)]
        forger.change(forger.entries[0], body=encode(replace(removal, signature=signature)))
        forger.entries += [each for each in history if each.kind != "removal" and each.body is not None]

    return forge


def _without_anchors(fold: Folded | None) -> Folded | None:
    return replace(fold, anchors="") if fold is not None else None


def _swap(forger: Forger) -> None:
    first, second, *_ = forger.of("a")[1:]
    one, two = forger.entries.index(first), forger.entries.index(second)
    forger.entries[one], forger.entries[two] = (
        replace(second, position=first.position),
        replace(first, position=second.position),
    )


def _drop(forger: Forger) -> None:
    forger.entries.remove(forger.of("a")[1])
    forger.entries = _renumber(forger.entries)


def _insert(forger: Forger) -> None:
    second = forger.of("a")[1]
    forger.entries.insert(forger.entries.index(second), replace(second, body=b'{"said":"Yes"}', id=None))
    forger.entries = _renumber(forger.entries)


def _cut_and_replace(forger: Forger) -> None:
    for each in forger.entries[-3:]:
        if each.body is not None and each.kind == "event":
            forger.change(each, body=b'{"said":"Yes"}')
    forger.change(forger.entries[-1], time=forger.entries[-1].time + 1)


def _move(forger: Forger) -> None:
    for position, each in enumerate(forger.of("b")):
        forger.change(each, conversation="a", position=len(forger.of("a")) + position)
    forger.entries = _renumber(forger.entries)


def _approve(forger: Forger) -> None:
    for each in [each for each in forger.entries if each.kind == "approval" and b'"approved"' in (each.body or b"")]:
        forger.change(each, body=(each.body or b"").replace(b'"ann"', b'"bob"'))
    forger.connection.execute(
        "UPDATE approvals SET body = CAST(replace(CAST(body AS TEXT), '\"ann\"', '\"bob\"') AS BLOB)"
    )


def _unmark(forger: Forger) -> None:
    forger.connection.execute("DELETE FROM conversations WHERE name LIKE 'bylaw/removed/%'")


FORGERIES: dict[str, Callable[[Forger], None]] = {
    "the end of a conversation emptied, with an unsigned removal": _removal("a", slice(-2, None), key=None),
    "the middle of a conversation emptied, with an unsigned removal": _removal("a", slice(1, 2), key=None),
    "a whole conversation emptied, with an unsigned removal": _removal("b", slice(None), key=None),
    "a whole conversation emptied, signed with another key": _removal("b", slice(None), key=OTHER_KEY),
    "the end of a conversation emptied, signed with another key": _removal("a", slice(-2, None), key=OTHER_KEY),
    "a conversation emptied, with the signature of another removal": _copied_signature,
    "a genuine removal that says more": _existing(lambda each: replace(each, entries=[*each.entries, (9, 9)])),
    "a genuine removal without its signature": _existing(lambda each: replace(each, signature="")),
    "a genuine removal that names no conversation": _existing(lambda each: replace(each, conversations=[])),
    "the whole history behind an unsigned fold": _fold_of_all(None),
    "the whole history behind a fold signed with another key": _fold_of_all(OTHER_KEY),
    "a genuine fold without its anchors": _existing(
        lambda each: replace(each, folded=_without_anchors(each.folded)), is_fold=True
    ),
    "a genuine fold without its signature": _existing(lambda each: replace(each, signature=""), is_fold=True),
    "a word changed, and the chain computed anew": lambda forger: forger.change(
        forger.of("a")[1], body=(forger.of("a")[1].body or b"").replace(b"O1", b"O2")
    ),
    "a time changed, and the chain computed anew": lambda forger: forger.change(forger.of("a")[1], time=1.0),
    "a kind changed, and the chain computed anew": lambda forger: forger.change(forger.of("a")[1], kind="attestation"),
    "an entry deleted, and the chain computed anew": _drop,
    "an entry added, and the chain computed anew": _insert,
    "two entries swapped, and the chain computed anew": _swap,
    "the end replaced, and the chain computed anew": _cut_and_replace,
    "a conversation appended to another, and the chain computed anew": _move,
    "who approved a call, changed everywhere": _approve,
    "the mark of a removed conversation deleted": _unmark,
}
"""Attacks that recompute our hashes in every table. Only the signing key and the anchors are out of reach."""


def written(path: Path) -> None:
    """Write a log with every kind of entry that an attacker could change."""
    with Log(str(path)) as log:
        store = log.journal.store
        log.append([Draft(NORTH, "old", "event", b'{"said":"hello"}') for _ in range(3)])
        number, link = store.heads()[NORTH]
        store.remove(NORTH, key=KEY, conversation="old")
        anchor = Anchor(time.time(), NORTH, number, link.hex())
        store.fold(NORTH, key=KEY, before=time.time() + 1, anchors=[anchor])
        path.with_suffix(".anchor").write_bytes(msgspec.json.encode(anchor) + b"\n")
        with Shield(Pack.from_files(FILES), log=log, tenant=NORTH) as shield:
            for name in ("a", "b"):
                with shield.session(name) as session:
                    session.user("Refund O1.")
                    assert session.decide("refund", {"order_id": "O1"}).allowed
                    session.result("refunded O1")
        log.append([Draft(NORTH, "erased", "event", b'{"said":"my address"}') for _ in range(2)])
        store.remove(NORTH, key=KEY, conversation="erased")
        asked = Change("a/9", "waiting", expires=time.time() + 3600, tool="refund", arguments={"order_id": "O2"})
        log.append([draft(NORTH, "a", asked)])
        log.approve("a/9", by="ann", tenant=NORTH)
        stop = log.stop("tool", "refund", by="ann", reason="recall", until=time.time() + 3600, tenant=NORTH)
        log.lift(stop.id, by="bo", tenant=NORTH)
        for name in ("early", "late"):
            log.append([Draft(SOUTH, name, "event", b'{"said":"hi"}') for _ in range(2)])


def faults(path: Path, anchors: Sequence[Anchor] = ()) -> list[str]:
    store = open_store(str(path))
    try:
        known = {*store.tenants(), *(each.tenant for each in anchors)}
        return [fault for each in sorted(known) for fault in verify(store, each, anchors=anchors, key=KEY).faults]
    finally:
        store.close()


def altered(log: Path, copy: Path, statements: Sequence[str]) -> None:
    shutil.copyfile(log, copy)
    with sqlite3.connect(copy) as connection:
        changed = [connection.execute(each).rowcount for each in statements]
    connection.close()
    assert all(changed), f"nothing was altered by {statements}"


def forged(log: Path, copy: Path, forge: Callable[[Forger], None]) -> None:
    shutil.copyfile(log, copy)
    with sqlite3.connect(copy) as connection:
        forger = Forger(connection)
        forge(forger)
        forger.write()
    connection.close()


def table(folder: Path) -> tuple[list[str], int]:
    """Return the rows, and the number of undetected attacks."""
    log, kept, rows, undetected = folder / "log.db", folder / "log.anchor", list[str](), 0
    written(log)
    store = open_store(str(log))
    write_anchors(store, kept, {})
    store.close()
    anchors = read_anchors(kept)
    assert faults(log, anchors) == [], "the log verifies before"
    other = folder / "other.db"
    written(other)
    ways: dict[str, Sequence[str] | Callable[[Forger], None] | None] = {**WAYS, **FORGERIES}
    for number, (way, done) in enumerate({**ways, "another chain put in its place": None}.items()):
        copy = folder / f"copy-{number}.db"
        if done is None:
            shutil.copyfile(other, copy)
        elif callable(done):
            forged(log, copy, done)
        else:
            altered(log, copy, done)
        alone, anchored = faults(copy), faults(copy, anchors)
        undetected += not anchored
        rows.append(f"| {way} | {_said(alone)} | {'detected' if anchored else '**undetected**'} |")
    return rows, undetected


def _said(found: Sequence[str]) -> str:
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{found[0]}{more}" if found else "nothing"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--page", type=Path, help="Put the table there, between its marks.")
    given = parser.parse_args()
    with TemporaryDirectory(prefix="bylaw-tampering-") as folder:
        rows, undetected = table(Path(folder))
    head = ["| what is done to the database | what `bylaw log verify` says | with the anchors |", "|---|---|---|"]
    made = "\n".join([*head, *rows])
    print(made)
    print(f"{len(rows)} ways, {undetected} undetected with the anchors", file=sys.stderr)
    if given.page is not None:
        before, _, rest = given.page.read_text(encoding="utf-8").partition(BEGIN)
        _, _, after = rest.partition(END)
        given.page.write_text(f"{before}{BEGIN}\n{made}\n{END}{after}", encoding="utf-8")
    sys.exit(1 if undetected else 0)


if __name__ == "__main__":
    main()
