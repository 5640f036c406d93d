"""A log in PostgreSQL: the loop goes on while the server writes, and nobody is answered before it has."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bylaw.record import Conflict, Draft, Entry, Journal, approval, open_store, postgres
from bylaw.record.journal import LogError
from bylaw.record.verify import verify

pytestmark = pytest.mark.parametrize("where", ["postgres"], indirect=True)


def event(conversation: str, body: bytes = b"1", **more: Any) -> Draft:
    return Draft("t", conversation, "event", body, **more)


@contextmanager
def held(where: str) -> Iterator[Any]:
    """Somebody else writes, and does not come to an end."""
    import psycopg

    with psycopg.connect(where) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", (postgres.LOCK,))
        yield other
        other.rollback()


@contextmanager
def hanging(where: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The same, and the log loses its patience soon, but not with a server that is merely slow afterwards."""
    with held(where) as other, monkeypatch.context() as patch:
        patch.setattr(postgres, "HANGS", 0.2)
        yield other


def test_a_loop_goes_on_while_the_server_writes_and_what_gathers_is_one_commit(where: str) -> None:
    async def write(journal: Journal) -> None:
        with held(where):
            first = asyncio.create_task(journal.append_async([event("first")]))
            await asyncio.sleep(0.05)
            later = [asyncio.create_task(journal.append_async([event(f"c{n}")])) for n in range(5)]
            await asyncio.sleep(0.05)
            assert not any(task.done() for task in (first, *later))
        assert isinstance((await first)[0], Entry)
        assert [answers[0].number for answers in await asyncio.gather(*later)] == [2, 3, 4, 5, 6]  # type: ignore[union-attr]

    store = open_store(where)
    with Journal(store) as journal:
        asyncio.run(write(journal))
        assert journal.commits == 2
    assert verify(store, "t").faults == ()
    store.close()


def test_a_server_that_hangs_is_given_up_and_called_again(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def write(journal: Journal) -> None:
        with hanging(where, monkeypatch), pytest.raises(LogError, match="has not answered"):
            await journal.append_async([event("c")])
        assert isinstance((await journal.append_async([event("c", position=0)]))[0], Entry)

    store = open_store(where)
    with Journal(store) as journal:
        asyncio.run(write(journal))
        with hanging(where, monkeypatch), pytest.raises(LogError, match="has not answered"):
            journal.append([event("d")])
        journal.append([event("d", position=0)])
    assert [verify(store, "t").entries, verify(store, "t").faults] == [2, ()]
    store.close()


def test_what_is_under_way_when_the_loop_ends_is_written_before_the_log_closes(where: str) -> None:
    store = open_store(where)
    journal = Journal(store)

    async def leave() -> None:
        for name in ("a", "b"):
            task = asyncio.ensure_future(journal.append_async([event(name)]))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not task.done()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(leave())
    for task in asyncio.all_tasks(loop):
        # Nobody is left who would hear of it.
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()
    journal.close()
    assert store.conversations("t") == ["a", "b"]
    store.close()


def test_whatever_its_size_and_its_holes_an_entry_is_kept_as_it_was(where: str) -> None:
    store, large = open_store(where), bytes(range(256)) * 30_000
    drafts = [event("c", large, id="named"), event("d", b""), event("é\u2028", large), event("c", b"\x00", id="n")]
    written = store.append(drafts)
    assert store.append(drafts[:1] + drafts[3:]) == [written[0], written[3]]
    assert [entry for name in ("c", "d", "é\u2028") for entry in store.conversation("t", name)] == [
        written[0], written[3], written[1], written[2],
    ]  # fmt: skip
    assert verify(store, "t").faults == ()
    store.close()


def asked(number: int) -> list[Draft]:
    change = approval.Change(f"a{number}", "waiting", expires=time.time() + 60, call="x", facts="y")
    return [event("c"), approval.draft("t", "c", change)]


def test_a_batch_that_is_taken_back_leaves_the_next_as_it_should_be(where: str) -> None:
    store = open_store(where)
    for number in range(20):
        # Often enough for the driver to have the server keep statements of its own, which it drops after a rollback.
        store.append_groups([asked(number)])
    refused = [event("c"), approval.draft("t", "c", approval.Change("nobody's", "used"))]
    (answers,) = store.append_groups([refused])
    assert all(isinstance(each, Conflict) for each in answers)
    assert isinstance(store.append_groups([asked(20)])[0][1], Entry)
    with pytest.raises(UnicodeEncodeError):
        store.append([event("\ud800")])
    assert isinstance(store.append_groups([asked(21)])[0][1], Entry)
    assert (verify(store, "t").entries, verify(store, "t").faults) == (44, ())
    store.close()


def test_who_reads_as_of_one_moment_reads_on_afterwards(where: str) -> None:
    store = open_store(where)
    store.append([event("c")])
    for _ in range(20):
        with store.at_one_moment():
            assert len(store.conversation("t", "c")) == 1
        assert store.conversation("t", "d") == []
    store.close()


def test_a_server_that_ends_our_connection_is_called_again(where: str) -> None:
    import psycopg

    async def write(journal: Journal) -> list[Any]:
        return await journal.append_async([event("c")])

    store = open_store(where)
    with Journal(store) as journal:
        asyncio.run(write(journal))
        with psycopg.connect(where, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                          " AND datname = current_database()")  # fmt: skip
        time.sleep(0.1)
        with pytest.raises(LogError, match="could not be written"):
            asyncio.run(write(journal))
        assert asyncio.run(write(journal))[0].number == 2
    assert verify(store, "t").faults == ()
    store.close()
