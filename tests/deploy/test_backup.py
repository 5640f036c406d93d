"""Backup and restore as the operations page tells them, tried on logs that are written to meanwhile."""

import os
import sqlite3
import subprocess
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bylaw.record import Log
from bylaw.record.verify import read_anchors, verify
from bylaw.shield import Shield
from tests.command import bylaw
from tests.shield.scenes import looked_up, shop
from tests.stores import server_module


@contextmanager
def written_to(where: str) -> Iterator[None]:
    """Conversations go on in a log until the end of the `with`."""
    ended, begun = threading.Event(), threading.Event()

    def write() -> None:
        with Shield(shop(), log=where) as shield:
            number = 0
            while not ended.is_set() or number < 20:
                number += 1
                with shield.session(f"chat-{uuid.uuid4().hex}") as session:
                    looked_up(session, "get_order", {"order_id": "7"}, {"order_id": "7", "returned": True})
                if number == 10:
                    begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    assert begun.wait(200)
    try:
        yield
    finally:
        ended.set()
        writer.join()


def anchored(where: str, folder: Path) -> Path:
    """What the service would have noted of a log as it is now."""
    from bylaw.record.verify import Anchoring

    kept = folder / "log.anchors"
    Anchoring(where, kept, lambda _: None).end()
    assert read_anchors(kept)
    return kept


def told(folder: Path, where: str, anchors: Path) -> tuple[int, str]:
    ran = bylaw(folder, "log", "verify", "--log", where, "--anchors", anchors)
    return ran.returncode, ran.stdout


def test_a_copy_of_a_log_file_in_use_verifies_and_says_what_it_lacks(tmp_path: Path) -> None:
    where, copy = tmp_path / "decisions.db", tmp_path / "copy.db"
    with written_to(str(where)), sqlite3.connect(where) as source:
        source.execute("VACUUM INTO ?", (str(copy),))
    anchors = anchored(str(where), tmp_path)
    assert told(tmp_path, str(where), anchors)[0] == 0
    with Log(str(copy)) as log:
        held = verify(log, "default")
    assert held.faults == ()
    status, said = told(tmp_path, str(copy), anchors)
    assert status == 1
    assert f"the log ends at entry {held.entries}, but" in said


def test_a_dump_of_a_database_in_use_is_restored_and_goes_on(postgres: str, tmp_path: Path) -> None:
    import psycopg

    if "host=" not in postgres or not (server_module()._home(postgres) / "programs").exists():
        pytest.skip("the server's programs are not here")
    programs = server_module()._home(postgres) / "programs"
    names = {each: f"bylaw_{uuid.uuid4().hex}" for each in ("first", "second")}
    head, _, options = postgres.partition("?")
    first, second = (f"{head.rpartition('/')[0]}/{name}?{options}" for name in names.values())
    with psycopg.connect(postgres, autocommit=True) as connection:
        for name in names.values():
            connection.execute(f"CREATE DATABASE {name}")
    try:
        dump = tmp_path / "log.dump"
        with written_to(first):
            run(programs / "pg_dump", "--format=custom", f"--file={dump}", first)
        anchors = anchored(first, tmp_path)
        run(programs / "pg_restore", f"--dbname={second}", dump)
        status, said = told(tmp_path, second, anchors)
        assert status == 1
        assert "but" in said
        assert bylaw(tmp_path, "log", "verify", "--log", second, "--anchors", os.devnull).returncode == 0
        with written_to(second):
            pass
        assert bylaw(tmp_path, "log", "verify", "--log", second, "--anchors", os.devnull).returncode == 0
    finally:
        with psycopg.connect(postgres, autocommit=True) as connection:
            for name in names.values():
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def run(program: Path, *arguments: str | Path) -> None:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
