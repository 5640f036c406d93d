"""A log in PostgreSQL is seen before it is synced: whoever is told of anything is told of what a crash leaves.

The server's own process that syncs what others leave unsynced is stopped meanwhile, so that what nobody waits for is
lost by a crash without fail.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bylaw.engine.conversation import Mutation
from bylaw.errors import UsageError
from bylaw.record import Draft, Journal, Log, Store, open_store, postgres
from bylaw.record.approval import Change
from bylaw.record.approval import draft as approval
from bylaw.record.journal import LogError
from bylaw.record.log import LastWriter
from bylaw.record.verify import verify
from bylaw.shield import Shield
from bylaw.shield.history import Named
from tests.shield.scenes import shop
from tests.stores import server_module

pytestmark = [
    pytest.mark.parametrize("where", ["postgres"], indirect=True),
    pytest.mark.skipif(bool(os.environ.get("BYLAW_POSTGRES")), reason="kills the server"),
]


def event(conversation: str, body: bytes = b"1", **more: Any) -> Draft:
    return Draft("t", conversation, "event", body, **more)


@pytest.fixture
def crash(postgres: str) -> Callable[[], None]:
    """Kills the server, and starts it again."""

    def fall() -> None:
        server_module().crash(postgres)
        server_module().start(postgres)

    return fall


@pytest.fixture(autouse=True)
def unsynced(where: str) -> Iterator[None]:
    """What nobody waits for is not synced."""
    ((writer,),) = asked(where, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")
    os.kill(writer, signal.SIGSTOP)
    yield
    try:
        os.kill(writer, signal.SIGCONT)
    except ProcessLookupError:
        return


def asked(where: str, query: str, *, finds: bool = True) -> list[Any]:
    import psycopg

    with psycopg.connect(where) as other:
        found: Any = other.execute(query)  # type: ignore[arg-type]
        return found.fetchall() if finds else []


@contextmanager
def hasty(monkeypatch: pytest.MonkeyPatch, where: str) -> Generator[Store]:
    """A log whose batches are committed and not synced, as another worker's are for a moment."""
    with monkeypatch.context() as context:
        store = open_store(where)
        connection: Any = store.connection
        send = connection._send
        context.setitem(postgres.STATEMENTS, "no mark", "SELECT 1")
        context.setattr(connection, "_send", lambda name, *given: send("no mark" if name == "mark" else name, *given))
        store.append([event("warm")])
        store.settle()
        yield store
    store.close()


def written(where: str) -> str:
    """The place up to which the server has written; part of it is not synced."""
    ((place, is_synced),) = asked(
        where,
        "SELECT pg_current_wal_insert_lsn()::text, pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn()",
    )
    assert not is_synced
    return place


def is_synced(where: str, place: str) -> bool:
    return asked(where, f"SELECT pg_current_wal_flush_lsn() >= '{place}'") == [(True,)]


def test_what_was_answered_is_there_after_the_server_was_killed(where: str, crash: Callable[[], None]) -> None:
    async def write(journal: Journal) -> None:
        await journal.append_async([event("in a loop")])

    store = open_store(where)
    with Journal(store) as journal:
        asyncio.run(write(journal))
        journal.append([event("in a thread")])
        crash()
        with pytest.raises(LogError):
            journal.append([event("unheard")])
        journal.append([event("called again")])
    assert store.conversations("t") == ["called again", "in a loop", "in a thread"]
    assert verify(store, "t").faults == ()
    store.close()


def test_what_is_committed_and_not_synced_is_told_to_nobody_and_may_be_lost(
    where: str, crash: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def write(journal: Journal) -> None:
        task = asyncio.create_task(journal.append_async([event("c")]))
        while not asked(where, "SELECT 1 FROM entries"):
            await asyncio.sleep(0.02)
        later = asyncio.create_task(journal.append_async([event("rests on it")]))
        await asyncio.sleep(0.05)
        assert not task.done()
        crash()
        for unheard in (task, later):
            with pytest.raises(LogError):
                await unheard

    monkeypatch.setitem(postgres.STATEMENTS, "mark", "SELECT pg_sleep(60)")
    store = open_store(where)
    with Journal(store) as journal:
        asyncio.run(write(journal))
    assert store.conversations("t") == []
    store.close()


def test_what_is_committed_and_cannot_be_synced_is_not_written_again(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def write(journal: Journal) -> list[Any]:
        writing = (journal.append_async([event(f"c{number}")]) for number in range(5))
        return await asyncio.gather(*writing, return_exceptions=True)

    store = open_store(where)
    asked(where, "CREATE SEQUENCE tries", finds=False)
    monkeypatch.setitem(postgres.STATEMENTS, "mark", "SELECT 1 / (nextval('tries') - 1)")
    with Journal(store) as journal:
        assert all(isinstance(each, LogError) for each in asyncio.run(write(journal)))
    assert [len(store.conversation("t", f"c{number}")) for number in range(5)] == [1] * 5
    store.close()


def test_who_builds_on_what_is_not_synced_has_it_synced(
    where: str, crash: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with hasty(monkeypatch, where) as other, Log(where) as log:
        other.append([event("c", b"theirs")])
        assert written(where)
        log.append([event("c", b"ours")])
        crash()
    store = open_store(where)
    assert [entry.body for entry in store.conversation("t", "c")] == [b"theirs", b"ours"]
    assert verify(store, "t").faults == ()
    store.close()


READS: dict[str, Callable[[Log, Store], object]] = {
    "conversation": lambda log, store: log.conversation("t", "c"),
    "openings": lambda log, store: log.openings("t", since=0.0),
    "approvals": lambda log, store: log.approvals("t"),
    "supported": lambda log, store: log.supported("t"),
    "entries": lambda log, store: list(store.entries("t")),
    "heads": lambda log, store: store.heads(),
    "tenants": lambda log, store: store.tenants(),
    "lengths": lambda log, store: store.lengths("t"),
    "conversations": lambda log, store: store.conversations("t"),
    "verify": lambda log, store: verify(store, "t"),
    "what was sent before": lambda log, store: log.append([event("c", id="named")]),
    "a conflict": lambda log, store: log.append([event("c", b"other", id="named")]),
    "a refusal": lambda log, store: _refused(log),
}
"""Whatever tells someone what stands in the log."""


def _refused(log: Log) -> None:
    with pytest.raises(UsageError, match="was already rejected"):
        log.approve("a", by="somebody", tenant="t")


def test_whoever_reads_is_told_what_is_synced(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with hasty(monkeypatch, where) as other, Log(where) as log:
        store = open_store(where)
        other.append([event("c", id="named"), approval("t", "c", Change("a", "waiting", expires=1e12))])
        for name, read in READS.items():
            change = Change(f"a{name}", "waiting", expires=1e12)
            other.append([event(name), approval("t", "c", change)])
            if name == "a refusal":
                other.append([approval("t", "c", Change("a", "rejected", "somebody"))])
            place = written(where)
            read(log, store)
            assert is_synced(where, place), name
        store.close()


def test_a_request_that_another_worker_took_is_answered_when_it_is_synced(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def send(shield: Shield, text: str, name: str, digest: str = "d") -> None:
        await shield.session("c").take_async([Mutation("user", {"text": text})], named=Named(name, digest))

    async def talk() -> None:
        last = LastWriter()
        with hasty(monkeypatch, where) as other, Log(where, is_shared=True, last=last) as log:
            theirs = Log(where, is_shared=True, last=last, process=1)
            theirs.journal.store = other
            first, second = Shield(shop(), log=theirs), Shield(shop(), log=log)
            await send(first, "hello", "one")
            place = written(where)
            await send(second, "hello", "one")
            assert is_synced(where, place)
            await send(first, "again", "two")
            place = written(where)
            with pytest.raises(UsageError, match="different request"):
                await send(second, "again", "two", "another")
            assert is_synced(where, place)
            theirs.close()

    asyncio.run(talk())


def test_a_user_who_owns_no_more_than_the_database_can_write(where: str) -> None:
    name = where.partition("?")[0].rpartition("/")[2]
    asked_by = where.replace("//bylaw@", "//plain@")
    import psycopg

    with psycopg.connect(where, autocommit=True) as other:
        other.execute("CREATE ROLE plain LOGIN NOSUPERUSER")
        other.execute(f"ALTER DATABASE {name} OWNER TO plain")  # type: ignore[arg-type]
    store = open_store(asked_by)
    store.append([event("c")])
    assert store.conversations("t") == ["c"]
    store.close()
    with psycopg.connect(where, autocommit=True) as other:
        other.execute(f"ALTER DATABASE {name} OWNER TO bylaw")  # type: ignore[arg-type]
        other.execute("DROP OWNED BY plain")
        other.execute("DROP ROLE plain")
