"""The log keeps what it was given, says when it was altered, and lets what it says be removed."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.errors import UsageError
from bylaw.record import Conflict, Draft, Entry, Journal, Log, approval, open_store
from bylaw.record.journal import LogError
from bylaw.record.store import Store
from bylaw.record.verify import verify
from tests.command import bylaw_process
from tests.ready import begin


def event(conversation: str, text: str, **more: object) -> Draft:
    return Draft("t", conversation, "event", text.encode(), **more)  # type: ignore[arg-type]


def fill(where: str, count: int = 5) -> Store:
    store = open_store(where)
    store.append([event("c", f'"{number}"') for number in range(count)])
    return store


def test_what_was_appended_is_read_back_in_order(where: str) -> None:
    store = fill(where)
    assert [entry.body for entry in store.conversation("t", "c")] == [b'"0"', b'"1"', b'"2"', b'"3"', b'"4"']
    assert [entry.body for entry in store.conversation("t", "c", after=3)] == [b'"3"', b'"4"']
    assert [entry.number for entry in store.entries("t", page=2)] == [1, 2, 3, 4, 5]
    assert verify(store, "t").faults == ()
    assert store.conversations("t") == ["c"]
    store.close()


def test_a_draft_sent_twice_is_written_once(where: str) -> None:
    store = open_store(where)
    first, again = store.append([event("c", "1", id="x"), event("c", "1", id="x")])
    (later,) = store.append([event("c", "1", id="x")])
    (other,) = store.append([event("c", "2", id="x")])
    assert isinstance(first, Entry)
    assert first == again == later
    assert isinstance(other, Conflict)
    assert len(store.conversation("t", "c")) == 1
    store.close()


def test_what_a_write_costs_does_not_grow_with_the_log(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "log.db"))

    def steps(first: int) -> int:
        """How many hundreds of steps SQLite takes for sixty drafts, each with a name."""
        taken = 0

        def step() -> None:
            nonlocal taken
            taken += 1

        connection: sqlite3.Connection = store.connection._connection  # type: ignore[attr-defined]
        connection.set_progress_handler(step, 100)
        store.append([event(f"c{number}", "1", id=f"x{number}") for number in range(first, first + 60)])
        connection.set_progress_handler(None, 0)
        return taken

    steps(0)
    early = steps(60)
    store.append([event(f"c{number}", "1", id=f"x{number}") for number in range(1000, 6000)])
    assert steps(120) < 2 * early
    store.close()


def test_the_write_ahead_log_does_not_grow_with_the_log(tmp_path: Path) -> None:
    path, ahead = tmp_path / "log.db", tmp_path / "log.db-wal"
    store = open_store(str(path))
    with Journal(store) as journal:
        for _ in range(100):
            journal.append([event(f"c{number}", "1" * 500) for number in range(50)])
    # Far more was written than stands there: it is in the file, and again and again the rest began anew.
    assert path.stat().st_size > 2_000_000
    assert ahead.stat().st_size < 6_000_000
    assert verify(store, "t").faults == ()
    store.close()
    assert not ahead.exists()


def test_a_draft_that_cannot_be_written_does_not_take_its_neighbours_with_it(where: str) -> None:
    store = open_store(where)
    jobs: list[Any] = [([event(name, "1")], Future()) for name in ("a", "b", "\ud800", "c", "d")]
    with Journal(store) as journal:
        # Handed over at once, they are written in one transaction.
        for drafts, future in jobs:
            journal._put(drafts, future)  # pyright: ignore[reportPrivateUsage]
        journal._due.set()  # pyright: ignore[reportPrivateUsage]
        written = [future.exception(10) is None for _, future in jobs]
        with pytest.raises(LogError, match="could not be written"):
            jobs[2][1].result()
    assert written == [True, True, False, True, True]
    assert verify(store, "t").entries == 4
    store.close()


def test_what_coroutines_append_together_shares_commits_and_each_is_told_its_own(where: str) -> None:
    store = open_store(where)

    async def append(journal: Journal) -> list[Any]:
        drafts = [[event(name, "1", position=place)] for name, place in (("a", 0), ("\ud800", 0), ("b", 0), ("a", 7))]
        return await asyncio.gather(*map(journal.append_async, drafts), return_exceptions=True)

    with Journal(store) as journal:
        first, unwritable, second, misplaced = asyncio.run(append(journal))
        assert isinstance(unwritable, LogError)
        assert isinstance(misplaced[0], Conflict)
        assert [entry.body for entry in (*store.conversation("t", "a"), *store.conversation("t", "b"))] == [b"1", b"1"]
        assert [first[0].number, second[0].number] == [1, 2]
        before = journal.commits
        with store.lock:
            many = threading.Thread(target=lambda: asyncio.run(_many(journal)))
            many.start()
            time.sleep(0.2)
        many.join()
        assert journal.commits <= before + 2
    with pytest.raises(LogError, match="closed"):
        asyncio.run(_many(journal))
    assert verify(store, "t").faults == ()
    store.close()


async def _many(journal: Journal) -> None:
    await asyncio.gather(*(journal.append_async([event("many", str(number))]) for number in range(20)))


def test_nothing_to_write_is_written_at_once(where: str) -> None:
    store = open_store(where)
    assert store.append([]) == []
    assert store.append_groups([[], []]) == [[], []]
    nothing, something = store.append_groups([[], [event("c", "1")]])
    assert (nothing, len(something)) == ([], 1)
    assert verify(store, "t").entries == 1
    store.close()


def test_postgres_looks_for_names_and_not_through_all_that_a_tenant_has(postgres: str) -> None:
    """Also where nobody has told the server yet how many rows there are."""
    import psycopg

    from bylaw.record.postgres import PLANS, STATEMENTS

    open_store(postgres).close()
    with psycopg.connect(postgres) as connection:
        connection.execute(PLANS)
        for name, column in (("lengths", "name"), ("named", "id")):
            statement = STATEMENTS[name].replace("%t", "$1", 1).replace("%t", "$2", 1)
            connection.execute(f"PREPARE {name} AS {statement}")
            plan = connection.execute(f"EXPLAIN EXECUTE {name} ('{{t}}', '{{x}}')")
            found = "\n".join(line for (line,) in plan.fetchall())
            assert f"Index Cond: ((tenant = wanted.tenant) AND ({column} = wanted.name))" in found, found


def test_a_draft_for_a_place_that_is_taken_is_refused_and_its_neighbours_are_not(where: str) -> None:
    store = fill(where, 2)
    stale, good = store.append([event("c", "x", position=1), event("d", "y", position=0)])
    assert isinstance(stale, Conflict)
    assert "to 2 entries" in stale.message
    assert isinstance(good, Entry)
    assert len(store.conversation("t", "c")) == 2
    store.close()


def test_many_threads_share_commits_and_nothing_is_lost(where: str) -> None:
    with Journal(open_store(where)) as journal:

        def write(name: str) -> None:
            for number in range(25):
                (answer,) = journal.append([event(name, str(number), position=number)])
                assert isinstance(answer, Entry)

        threads = [threading.Thread(target=write, args=(f"c{number}",)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert journal.commits < 200
    store = open_store(where)
    for number in range(8):
        assert [entry.body for entry in store.conversation("t", f"c{number}")] == [b"%d" % n for n in range(25)]
    assert verify(store, "t").faults == ()
    store.close()


def test_two_processes_extend_one_chain(where: str) -> None:
    code = (
        "import sys\nfrom bylaw.record import Draft, open_store\nstore = open_store(sys.argv[1])\n"
        "for n in range(40): store.append([Draft('t', sys.argv[2], 'event', b'%d' % n, position=n)])\n"
    )
    open_store(where).close()
    workers = [subprocess.Popen([*begin("-c"), code, where, name]) for name in ("a", "b")]
    assert [worker.wait(250) for worker in workers] == [0, 0]
    store = open_store(where)
    assert verify(store, "t").entries == 80
    assert verify(store, "t").faults == ()
    store.close()


def test_what_was_acknowledged_survives_a_kill(where: str) -> None:
    code = (
        "import sys\nfrom bylaw.record import Draft, Journal, open_store\njournal = Journal(open_store(sys.argv[1]))\n"
        "for n in range(100000):\n"
        "    journal.append([Draft('t', 'c', 'event', b'%d' % n)])\n    print(n, flush=True)\n"
    )
    worker = subprocess.Popen([sys.executable, "-c", code, where], stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    for _ in range(20):
        worker.stdout.readline()
    os.kill(worker.pid, signal.SIGKILL)
    heard = [int(line) for line in worker.stdout.read().split("\n")[:-1]]
    worker.wait(120)
    store = open_store(where)
    kept = [int(entry.body or b"-1") for entry in store.conversation("t", "c")]
    assert kept == list(range(len(kept)))
    assert len(kept) > (heard[-1] if heard else 19)
    assert verify(store, "t").faults == ()
    store.close()


def test_a_log_that_cannot_be_written_answers_nobody(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    journal = Journal(open_store(str(path)))
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE entries")
    with pytest.raises(LogError):
        journal.append([event("c", "1", id="x")])
    journal.close()
    with pytest.raises(LogError):
        journal.append([event("c", "1")])


def test_a_file_that_is_taken_away_while_it_is_in_use_is_not_written_to(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store = fill(str(path))
    with Journal(store) as journal:
        path.rename(tmp_path / "log.db.1")
        # It would be acknowledged, and nobody would find it again.
        with pytest.raises(LogError, match="moved, removed or replaced"):
            journal.append([event("c", "1")])
        assert "moved" in journal.fault
        (tmp_path / "log.db.1").rename(path)
        journal.append([event("c", "1")])
        assert journal.fault == ""
    assert verify(store, "t").entries == 6
    store.close()


@pytest.mark.process
def test_another_process_that_closes_the_log_takes_nothing_away_from_this_one(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with Log(str(path)) as log, Log(str(path)) as beside:
        for text, known in (("1", 1), ("2", 5)):
            log.append([event("c", text)])
            ran = bylaw_process(tmp_path, "log", "verify", "--log", "log.db")
            assert f"t: {known} entr" in ran.stdout, ran
            beside.append([event("d", text)])
            assert [entry.body for entry in log.conversation("t", "d")][-1:] == [text.encode()]
            # Without its write-ahead log the file lacks what is written from here on.
            assert (tmp_path / "log.db-wal").exists()
            log.append([event("c", text)])
            beside.append([event("d", text)])
    assert "t: 8 entries" in bylaw_process(tmp_path, "log", "verify", "--log", "log.db").stdout


def test_a_log_is_its_owners_to_read(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store = fill(str(path))
    modes = {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()}
    assert set(modes.values()) == {0o600}, modes
    store.close()


def test_a_file_that_was_cut_off_is_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    fill(str(path), 400).close()
    os.truncate(path, path.stat().st_size - 5000)
    with pytest.raises(UsageError, match=r"log\.db` (could not be read|is not a decision log): database disk image"):
        verify(open_store(str(path)), "t")


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("not a database, but long enough to be looked at as one" * 20)
    with pytest.raises(UsageError, match="not a decision log"):
        open_store(str(tmp_path / "x.db"))
    with pytest.raises(UsageError, match="a folder that does not exist"):
        open_store(str(tmp_path / "nowhere" / "x.db"))


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("cd"), st.binary(max_size=9)), max_size=20))
def test_any_batching_gives_the_same_conversations(drafts: list[tuple[str, str, bytes]]) -> None:
    one, many = open_store(":memory:"), open_store(":memory:")
    made = [Draft(tenant, name, "event", body) for tenant, name, body in drafts]
    one.append(made)
    for draft in made:
        many.append([draft])
    for tenant in "ab":
        for name in "cd":
            told = [entry.body for entry in one.conversation(tenant, name)]
            assert told == [entry.body for entry in many.conversation(tenant, name)]
        assert not verify(one, tenant).faults + verify(many, tenant).faults


def test_drafts_that_belong_together_are_written_together_or_not_at_all(where: str) -> None:
    store = fill(where, 2)
    waits = approval.Change("a1", "waiting", expires=4e9)
    stale = [event("c", "x", position=1), event("c", "y", position=2)]
    used = [event("d", "x", position=0), approval.draft("t", "d", approval.Change("a1", "used")), event("d", "y")]
    asks = [event("e", "x", position=0), approval.draft("t", "e", waits), event("e", "y", position=9)]
    good = [event("d", "z", position=0, id="z"), event("d", "z2", position=1)]
    answers = store.append_groups([stale, used, asks, good])
    assert [all(isinstance(each, Conflict) for each in group) for group in answers] == [True, True, True, False]
    assert [entry.body for entry in store.conversation("t", "d")] == [b"z", b"z2"]
    assert store.conversation("t", "e") == []
    assert store.approvals("t") == []
    assert (verify(store, "t").entries, verify(store, "t").faults) == (4, ())
    store.close()
