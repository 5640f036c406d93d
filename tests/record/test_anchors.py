"""Anchors lie outside of the database, and show what nothing in it can: a chain cut short, a tenant taken out whole."""

import sqlite3
import time
from pathlib import Path

import pytest

from bylaw.errors import UsageError
from bylaw.record import open_store
from bylaw.record.entry import Draft
from bylaw.record.verify import Anchoring, beside, read_anchors, verify, write_anchors
from tests.command import bylaw


def grow(log: str, tenant: str, count: int = 3) -> None:
    store = open_store(log)
    store.append([Draft(tenant, f"c{number}", "event", b'{"n":1}') for number in range(count)])
    store.close()


def note(log: str, path: Path, known: dict[str, int] | None = None) -> None:
    store = open_store(log)
    write_anchors(store, path, {} if known is None else known)
    store.close()


def test_a_chain_that_only_grew_holds_against_all_its_anchors(where: str, tmp_path: Path) -> None:
    path, known = tmp_path / "anchors", dict[str, int]()
    for tenant in ("north", "south", "north"):
        grow(where, tenant)
        note(where, path, known)
    note(where, path, known)
    noted = read_anchors(path)
    assert [(each.tenant, each.number) for each in noted] == [("north", 3), ("south", 3), ("north", 6)]
    grow(where, "north")
    store = open_store(where)
    assert [verify(store, tenant, anchors=noted).faults for tenant in ("north", "south")] == [(), ()]
    store.close()


def edit(log: Path, *statements: str) -> None:
    with sqlite3.connect(log) as connection:
        for each in statements:
            connection.execute(each)
    connection.close()


TAMPERED = {
    "a tenant taken out whole": (
        "delete from entries where tenant='south'",
        "delete from heads where tenant='south'",
        "delete from conversations where tenant='south'",
    ),
    "the end cut off, and the head set back": (
        "delete from entries where tenant='north' and number > 2",
        "delete from conversations where tenant='north' and name='c2'",
        "update heads set number=2, link=(select link from entries where tenant='north' and number=2)"
        " where tenant='north'",
    ),
}


@pytest.mark.parametrize("statements", TAMPERED.values(), ids=TAMPERED)
def test_what_the_database_cannot_show_its_anchors_do(statements: tuple[str, ...], tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    for tenant in ("north", "south"):
        grow(str(log), tenant)
    note(str(log), beside(str(log)))
    assert bylaw(tmp_path, "log", "verify", "--log", "log.db").returncode == 0
    edit(log, *statements)
    alone = tmp_path / "alone.db"
    with sqlite3.connect(log) as source, sqlite3.connect(alone) as target:
        source.backup(target)
    assert bylaw(tmp_path, "log", "verify", "--log", "alone.db").returncode == 0
    ran = bylaw(tmp_path, "log", "verify", "--log", "log.db")
    assert ran.returncode == 1
    assert "the log was cut off, or replaced by an old copy" in ran.stdout.replace("\n", " ")
    assert "Checked against 2 anchors" in ran.stdout
    given = bylaw(tmp_path, "log", "verify", "--log", "alone.db", "--anchors", "log.db.anchors", "--tenant", "south")
    assert given.returncode == (1 if "south" in statements[0] else 0)


def test_another_chain_in_its_place_is_seen(tmp_path: Path) -> None:
    grow(str(tmp_path / "log.db"), "north")
    grow(str(tmp_path / "other.db"), "north", 9)
    note(str(tmp_path / "log.db"), tmp_path / "kept")
    ran = bylaw(tmp_path, "log", "verify", "--log", "other.db", "--anchors", "kept")
    assert ran.returncode == 1
    assert "entry 3 differs from the entry anchored" in ran.stdout.replace("\n", " ")


def test_a_line_cut_off_by_a_crash_is_passed_over_and_any_other_is_told(tmp_path: Path) -> None:
    log, path = str(tmp_path / "log.db"), tmp_path / "kept"
    grow(log, "north")
    note(log, path)
    path.write_bytes(path.read_bytes() + b'{"time":17')
    assert len(read_anchors(path)) == 1
    note(log, path)
    with pytest.raises(UsageError, match="is not an anchor"):
        read_anchors(path)
    for name in ("missing", "."):
        with pytest.raises(UsageError, match="cannot be read"):
            read_anchors(tmp_path / name)


def test_anchors_are_noted_and_told_at_intervals_and_at_the_end(tmp_path: Path) -> None:
    log, path, told = str(tmp_path / "log.db"), tmp_path / "kept", list[str]()
    grow(log, "north")
    anchoring = Anchoring(log, path, told.append, often=0.05)
    deadline = time.monotonic() + 120
    while len(told) < 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    grow(log, "south")
    while len(told) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    anchoring.end()
    assert [line.split()[4:6] for line in told] == [["north", "3"], ["south", "3"]]
    assert [each.tenant for each in read_anchors(path)] == ["north", "south"]
    anchoring = Anchoring(log, tmp_path / "no" / "folder", told.append)
    anchoring.end()
    assert "no anchor was written" in told[-1]


def test_that_no_anchor_can_be_noted_is_known_before_there_is_one_and_tried_again_until_it_can(tmp_path: Path) -> None:
    log, path, noted = str(tmp_path / "log.db"), tmp_path / "later" / "kept", list[bool]()
    anchoring = Anchoring(log, path, lambda _: None, often=0.05, failing=noted.append)
    deadline = time.monotonic() + 120
    while not noted and time.monotonic() < deadline:
        time.sleep(0.01)
    assert noted[0] is True
    path.parent.mkdir()
    grow(log, "north")
    while noted[-1] and time.monotonic() < deadline:
        time.sleep(0.01)
    anchoring.end()
    assert noted[-1] is False
    assert len(read_anchors(path)) == 1


def test_two_anchors_of_one_entry_that_differ_are_a_fault(tmp_path: Path) -> None:
    log, path, other = tmp_path / "log.db", tmp_path / "anchors", tmp_path / "other.db"
    grow(str(log), "north")
    note(str(log), path)
    # Another log takes its place, and is anchored by a service that knows no earlier anchor.
    grow(str(other), "north")
    note(str(other), path)
    store = open_store(str(other))
    faults = verify(store, "north", anchors=read_anchors(path)).faults
    store.close()
    assert any("contradict each other" in each for each in faults)
