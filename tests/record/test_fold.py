"""Folding: the emptied beginning of a chain goes, and what is left still shows whatever was altered."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from bylaw.record import Store, open_store
from bylaw.record.anchor import Anchor
from bylaw.record.entry import Draft
from bylaw.record.verify import verify
from tests.command import bylaw

DAY = 86_400.0
DECEMBER = 1_764_590_400.0
"""2025-12-01 12:00 UTC."""


def written(where: str, monkeypatch: pytest.MonkeyPatch, days: int = 90) -> Store:
    """A log with a conversation of three entries a day, from the first of December on."""
    store = open_store(where)
    for day in range(days):
        now = SimpleNamespace(time=lambda day=day: DECEMBER + day * DAY)
        monkeypatch.setattr("bylaw.record.batch.clock", now)
        store.append_groups([[Draft("default", f"day-{day}", "event", b'{"n":%d}' % n) for n in range(3)]])
    monkeypatch.undo()
    return store


def rows(store: Store) -> int:
    return sum(1 for _ in store.entries("default"))


def test_the_chain_verifies_from_where_it_was_folded(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = written(where, monkeypatch)
    whole = verify(store, "default")
    february = DECEMBER + 62 * DAY
    assert store.fold("default", before=february).entries == 0
    assert store.remove("default", before=february) == 62 * 3
    assert rows(store) == 271
    folded = store.fold("default", before=february)
    assert (folded.entries, folded.until) == (186, 186)
    assert rows(store) == 86
    found = verify(store, "default", head=whole.head)
    assert (found.faults, found.entries, found.folded, found.removed) == ((), 272, 186, 0)
    kept = store.folded("default")
    assert kept is not None
    assert [(month, number) for month, number, _ in kept.heads] == [("2025-12", 93), ("2026-01", 186)]
    store.append_groups([[Draft("default", "later", "event", b"{}")]])
    assert store.fold("default", before=february).entries == 0
    store.remove("default", before=time.time() + DAY)
    assert store.fold("default", before=time.time() + DAY).until == 274
    found = verify(store, "default")
    assert (found.faults, found.folded) == ((), 274)
    assert rows(store) == 1
    later = store.folded("default")
    assert later is not None
    assert later.heads[:2] == kept.heads
    store.close()


def test_what_still_says_something_is_not_folded(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = written(where, monkeypatch, days=4)
    for day in (0, 1, 3):
        store.remove("default", conversation=f"day-{day}")
    assert store.fold("default", before=time.time()).until == 6
    assert [entry.body for entry in store.conversation("default", "day-2")] == [b'{"n":0}', b'{"n":1}', b'{"n":2}']
    assert verify(store, "default").faults == ()
    store.close()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DELETE FROM entries WHERE number = 7", "entry 7 is not there"),
        ("DELETE FROM entries WHERE number < 9", "entry 7 is not there"),
        ("DELETE FROM entries WHERE kind = 'removal' AND number = 13", "is not there"),
        ("UPDATE entries SET body = CAST('{}' AS BYTEA) WHERE number = 13", "entry 13 was altered"),
    ],
)
def test_what_was_altered_after_a_fold_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str, said: str
) -> None:
    import sqlite3

    store = written(str(tmp_path / "log.db"), monkeypatch, days=4)
    store.remove("default", before=DECEMBER + 1.5 * DAY)
    store.fold("default", before=time.time())
    assert verify(store, "default").faults == ()
    with sqlite3.connect(tmp_path / "log.db") as connection:
        connection.execute(statement.replace("BYTEA", "BLOB"))
    assert any(said in fault for fault in verify(store, "default").faults)
    store.close()


def test_a_fold_that_names_another_hash_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlite3

    store = written(str(tmp_path / "log.db"), monkeypatch, days=4)
    store.remove("default", before=DECEMBER + 1.5 * DAY)
    store.fold("default", before=time.time())
    kept = store.folded("default")
    assert kept is not None
    with sqlite3.connect(tmp_path / "log.db") as connection:
        connection.execute(
            "UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), ?, ?) AS BLOB) WHERE kind = 'removal'",
            (kept.link, "0" * 64),
        )
    assert len(verify(store, "default").faults) >= 2
    store.close()


def test_anchors_of_months_are_held_against_what_is_kept(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = written(where, monkeypatch, days=40)
    links = {entry.number: entry.link.hex() for entry in store.entries("default")}
    noted = [Anchor(DECEMBER, "default", number, links[number]) for number in (50, 93, 120)]
    store.remove("default", before=DECEMBER + 39.5 * DAY)
    store.fold("default", before=time.time())
    assert verify(store, "default", anchors=noted).faults == ()
    false = [Anchor(DECEMBER, "default", 93, "0" * 64)]
    assert "is not the one that was anchored" in verify(store, "default", anchors=false).faults[0]
    store.close()


def test_the_command_folds_what_was_removed_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlite3

    written(str(tmp_path / "log.db"), monkeypatch).close()
    fold = ("log", "fold", "--log", "log.db", "--before", "2026-02-01")
    assert bylaw(tmp_path, *fold).stdout == "Nothing was folded; the chain begins after entry 0.\n"
    assert bylaw(tmp_path, "log", "remove", "--log", "log.db", "--before", "2026-02-01").returncode == 0
    assert bylaw(tmp_path, *fold).stdout == "186 entries folded; the chain begins after entry 186.\n"
    said = bylaw(tmp_path, "log", "verify", "--log", "log.db").stdout
    assert said.startswith("default: 272 entries, the first 186 of them folded, nothing altered\n")
    with sqlite3.connect(tmp_path / "log.db") as connection:
        connection.execute("DELETE FROM entries WHERE number = 200")
    ran = bylaw(tmp_path, *fold)
    assert (ran.returncode, "it does not verify: entry 200 is not there" in ran.stderr) == (2, True)
