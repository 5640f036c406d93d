"""Tampers with a log in every way of a list, and tells which of them `bylaw log verify` sees.

    python benchmarks/service_tampering.py [--page docs/results/service.md]

A log in SQLite with two tenants is written through the same doors as any other: decisions, an approval and its answer,
stops and a lifting, a place under a limit, a conversation removed on request, a beginning that was folded. Each row
then takes a fresh copy of the file, alters it with SQL, as whoever can write to the database may, and verifies it
twice: alone, and against the anchors that were kept beside it. `--page` puts the table between two marks of a page.
Status 1 where something is not seen even with the anchors.
"""

import argparse
import shutil
import sqlite3
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bylaw import Pack, Shield
from bylaw.record import Draft, Log, open_store
from bylaw.record.anchor import Anchor, read_anchors, write_anchors
from bylaw.record.approval import Change, draft
from bylaw.record.verify import verify

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


def written(path: Path) -> None:
    """A log in which all is that may be tampered with."""
    with Log(str(path)) as log:
        store = log.journal.store
        log.append([Draft(NORTH, "old", "event", b'{"said":"hello"}') for _ in range(3)])
        store.remove(NORTH, conversation="old")
        store.fold(NORTH, before=time.time() + 1)
        with Shield(Pack.from_files(FILES), log=log, tenant=NORTH) as shield:
            for name in ("a", "b"):
                with shield.session(name) as session:
                    session.user("Refund O1.")
                    assert session.decide("refund", {"order_id": "O1"}).allowed
                    session.result("refunded O1")
        log.append([Draft(NORTH, "erased", "event", b'{"said":"my address"}') for _ in range(2)])
        store.remove(NORTH, conversation="erased")
        asked = Change("a/9", "waiting", expires=time.time() + 3600, tool="refund", arguments={"order_id": "O2"})
        log.append([draft(NORTH, "a", asked)])
        log.approve("a/9", by="ann", tenant=NORTH)
        stop = log.stop("tool", "refund", by="ann", reason="recall", until=time.time() + 3600, tenant=NORTH)
        log.lift(stop.id, by="bo", tenant=NORTH)
        for name in ("early", "late"):
            log.append([Draft(SOUTH, name, "event", b'{"said":"hi"}') for _ in range(2)])


def faults(path: Path, anchors: Sequence[Anchor] = ()) -> list[str]:
    """What verifying finds, over both tenants."""
    store = open_store(str(path))
    try:
        known = {*store.tenants(), *(each.tenant for each in anchors)}
        return [fault for each in sorted(known) for fault in verify(store, each, anchors=anchors).faults]
    finally:
        store.close()


def altered(log: Path, copy: Path, statements: Sequence[str]) -> None:
    shutil.copyfile(log, copy)
    with sqlite3.connect(copy) as connection:
        changed = [connection.execute(each).rowcount for each in statements]
    connection.close()
    assert all(changed), f"nothing was altered by {statements}"


def table(folder: Path) -> tuple[list[str], int]:
    """The rows, and how many ways nothing shows."""
    log, kept, rows, unseen = folder / "log.db", folder / "anchors.jsonl", list[str](), 0
    written(log)
    store = open_store(str(log))
    write_anchors(store, kept, {})
    store.close()
    anchors = read_anchors(kept)
    assert faults(log, anchors) == [], "the log verifies before"
    other = folder / "other.db"
    written(other)
    for number, (way, statements) in enumerate({**WAYS, "another chain put in its place": ()}.items()):
        copy = folder / f"copy-{number}.db"
        if statements:
            altered(log, copy, statements)
        else:
            shutil.copyfile(other, copy)
        alone, anchored = faults(copy), faults(copy, anchors)
        unseen += not anchored
        rows.append(f"| {way} | {_said(alone)} | {'seen' if anchored else '**nothing**'} |")
    return rows, unseen


def _said(found: Sequence[str]) -> str:
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{found[0]}{more}" if found else "nothing by itself"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--page", type=Path, help="Put the table there, between its marks.")
    given = parser.parse_args()
    with TemporaryDirectory(prefix="bylaw-tampering-") as folder:
        rows, unseen = table(Path(folder))
    head = ["| what is done to the database | what `bylaw log verify` says | with the anchors |", "|---|---|---|"]
    made = "\n".join([*head, *rows])
    print(made)
    print(f"{len(rows)} ways, {unseen} not seen with the anchors", file=sys.stderr)
    if given.page is not None:
        before, _, rest = given.page.read_text(encoding="utf-8").partition(BEGIN)
        _, _, after = rest.partition(END)
        given.page.write_text(f"{before}{BEGIN}\n{made}\n{END}{after}", encoding="utf-8")
    sys.exit(1 if unseen else 0)


if __name__ == "__main__":
    main()
