"""Folding: the emptied beginning of a chain is deleted, and the rest still shows whatever was altered."""

import time
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from bylaw.errors import BylawError
from bylaw.record import Store, open_store
from bylaw.record.entry import Draft
from bylaw.record.verify import Anchor, verify
from tests.command import bylaw
from tests.stores import KEY

DAY = 86_400.0
DECEMBER = 1_764_590_400.0
"""2025-12-01 12:00 UTC."""


def written(where: str, monkeypatch: pytest.MonkeyPatch, days: int = 90) -> Store:
    """A log with a conversation of three entries a day, from the first of December on."""
    store = open_store(where)
    for day in range(days):
        now = SimpleNamespace(time=lambda day=day: DECEMBER + day * DAY)
        monkeypatch.setattr("bylaw.record.store.clock", now)
        store.append_groups([[Draft("default", f"day-{day}", "event", b'{"n":%d}' % n) for n in range(3)]])
    monkeypatch.undo()
    return store


def rows(store: Store) -> int:
    return sum(1 for _ in store.entries("default"))


def anchors(store: Store, *numbers: int) -> list[Anchor]:
    """Anchors of some entries, as they were noted while the log was written."""
    return [
        Anchor(DECEMBER, "default", each.number, each.link.hex())
        for each in store.entries("default")
        if each.number in numbers
    ]


def test_a_fold_ends_at_the_last_anchored_entry_and_the_chain_verifies_from_there(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = written(where, monkeypatch)
    whole = verify(store, "default")
    noted = anchors(store, 93, 180)
    february = DECEMBER + 62 * DAY
    assert store.fold("default", key=KEY, before=february, anchors=noted).entries == 0
    assert store.remove("default", key=KEY, before=february) == 62 * 3
    with pytest.raises(BylawError, match="no anchor covers entries 1 to 186"):
        store.fold("default", key=KEY, before=february, anchors=[])
    folded = store.fold("default", key=KEY, before=february, anchors=noted)
    assert (folded.entries, folded.until) == (180, 180)
    found = verify(store, "default", head=whole.head, anchors=noted, key=KEY)
    assert (found.faults, found.entries, found.folded, found.removed) == ((), 272, 180, 6)
    assert verify(store, "default", key=KEY).faults == ()
    store.remove("default", key=KEY, before=time.time() + DAY)
    later = [*noted, *anchors(store, 272, 273)]
    assert store.fold("default", key=KEY, before=time.time() + DAY, anchors=later).until == 273
    found = verify(store, "default", anchors=later, key=KEY)
    assert (found.faults, found.folded) == ((), 273)
    assert rows(store) == 1
    store.close()


def test_an_anchor_that_the_fold_was_not_checked_against_is_a_fault(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = written(where, monkeypatch, days=40)
    noted = anchors(store, 50, 93, 117)
    other = Anchor(DECEMBER, "default", 93, "0" * 64)
    more = anchors(store, 60)
    store.remove("default", key=KEY, before=DECEMBER + 39.5 * DAY)
    store.fold("default", key=KEY, before=time.time(), anchors=noted)
    assert verify(store, "default", anchors=noted, key=KEY).faults == ()
    for false in ([noted[0], other, noted[2]], [*noted, *more], noted[1:]):
        assert "do not match the folded part of the log" in verify(store, "default", anchors=false, key=KEY).faults[0]
    store.close()


def test_entries_that_still_have_text_are_not_folded(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = written(where, monkeypatch, days=4)
    noted = anchors(store, 6, 9)
    for day in (0, 1, 3):
        store.remove("default", key=KEY, conversation=f"day-{day}")
    assert store.fold("default", key=KEY, before=time.time(), anchors=noted).until == 6
    assert [entry.body for entry in store.conversation("default", "day-2")] == [b'{"n":0}', b'{"n":1}', b'{"n":2}']
    assert verify(store, "default", key=KEY).faults == ()
    store.close()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DELETE FROM entries WHERE number = 7", "entry 7 is missing"),
        ("DELETE FROM entries WHERE number < 9", "entry 7 is missing"),
        ("DELETE FROM entries WHERE kind = 'removal' AND number = 13", "is missing"),
        ("UPDATE entries SET body = CAST('{}' AS BLOB) WHERE number = 13", "entry 13 was altered"),
        ("DELETE FROM conversations WHERE name LIKE 'bylaw/removed/%'", "the list of removed conversations"),
    ],
)
def test_an_alteration_after_a_fold_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str, said: str
) -> None:
    import sqlite3

    store = written(str(tmp_path / "log.db"), monkeypatch, days=4)
    noted = anchors(store, 6)
    store.remove("default", key=KEY, before=DECEMBER + 1.5 * DAY)
    store.fold("default", key=KEY, before=time.time(), anchors=noted)
    assert verify(store, "default", key=KEY).faults == ()
    with sqlite3.connect(tmp_path / "log.db") as connection:
        connection.execute(statement)
    assert any(said in fault for fault in verify(store, "default", key=KEY).faults)
    store.close()


def test_the_command_folds_removed_entries_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlite3

    store = written(str(tmp_path / "log.db"), monkeypatch)
    (tmp_path / "log.db.anchors").write_bytes(b"".join(msgspec.json.encode(each) for each in anchors(store, 186)))
    store.close()
    (tmp_path / "key").write_bytes(KEY)
    signed = ("--log", "log.db", "--before", "2026-02-01", "--signing-key", "key")
    unsigned = bylaw(tmp_path, "log", "remove", "--log", "log.db", "--before", "2026-02-01")
    assert (unsigned.returncode, "removals require a signing key" in unsigned.stderr) == (2, True)
    assert (
        bylaw(tmp_path, "log", "fold", *signed).stdout
        == "No entries were folded; the chain now begins after entry 0.\n"
    )
    assert bylaw(tmp_path, "log", "remove", *signed).returncode == 0
    assert (
        bylaw(tmp_path, "log", "fold", *signed).stdout == "186 entries folded; the chain now begins after entry 186.\n"
    )
    verified = bylaw(tmp_path, "log", "verify", "--log", "log.db", "--signing-key", "key")
    said = "default: 272 entries, the first 186 deleted, intact except for signed removals\n"
    assert (verified.returncode, verified.stdout.startswith(said)) == (4, True)
    with sqlite3.connect(tmp_path / "log.db") as connection:
        connection.execute("DELETE FROM entries WHERE number = 200")
    ran = bylaw(tmp_path, "log", "fold", *signed)
    assert (ran.returncode, "the log does not verify: entry 200 is missing" in ran.stderr) == (2, True)
