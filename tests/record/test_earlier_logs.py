"""Logs that version 0.1 wrote, one of each store, are opened, verified and gone on with.

`fixtures/log-0.1` has a file of SQLite and a dump of PostgreSQL, as 0.1 left them: conversations of two tenants under
the pack beside them, with approvals in every state, and one conversation that was removed.
"""

import gzip
import json
from pathlib import Path

import pytest

from bylaw import Pack, Shield
from bylaw.record import Log, open_store
from bylaw.record.verify import verify
from bylaw.shield.history import read_history
from tests.stores import KEY

KEPT = Path(__file__).parent.parent / "fixtures" / "log-0.1"
PACK = Pack.from_files(json.loads((KEPT / "pack.json").read_bytes()))
UNSIGNED = [("the removal in entry 58 is not signed",), ()]
"""What is wrong with it today: removals were not signed then."""
REFUND = ("refund", {"order_id": "7"})


@pytest.fixture
def earlier(where: str) -> str:
    """The log of 0.1, in a store of its own."""
    if "://" in where:
        import psycopg

        with psycopg.connect(where) as connection:
            connection.execute(gzip.decompress((KEPT / "decisions.sql.gz").read_bytes()).decode())
    else:
        Path(where).write_bytes(gzip.decompress((KEPT / "decisions.db.gz").read_bytes()))
    return where


def faults(log: str) -> list[tuple[str, ...]]:
    store = open_store(log)
    try:
        return [verify(store, tenant, key=KEY).faults for tenant in store.tenants()]
    finally:
        store.close()


def test_an_earlier_log_verifies_and_is_read(earlier: str) -> None:
    assert faults(earlier) == UNSIGNED
    store = open_store(earlier)
    assert store.conversations("default") == ["approved", "rejected", "used", "waiting"]
    assert {each.id: each.status for each in store.approvals("default")} == {
        "approved/2": "approved",
        "rejected/2": "rejected",
        "used/2": "used",
        "waiting/2": "waiting",
    }
    history = read_history(store.conversation("default", "used"))
    assert history is not None
    assert [each.allowed for each in history.decisions] == [True, False, True]
    store.close()


def test_an_earlier_log_is_gone_on_with(earlier: str) -> None:
    with Log(earlier) as log, Shield(PACK, log=log) as shield:
        with shield.session("approved") as session:
            assert session.decide(*REFUND).allowed
            session.result("refunded")
            assert not session.decide(*REFUND).allowed
        with shield.session("waiting") as session:
            assert session.decide(*REFUND).approval == "waiting/2"
            log.approve("waiting/2", by="ann")
            assert session.decide(*REFUND).allowed
        with shield.session("rejected") as session:
            assert session.decide(*REFUND).answer == "deny"
        with shield.session("used") as session:
            assert not session.decide(*REFUND).allowed
        assert shield.session("new").decide("get_order", {"order_id": "7"}).allowed
        assert shield.stranded(within=1e9) == 0
    assert faults(earlier) == UNSIGNED
    store = open_store(earlier)
    assert store.remove("south", key=KEY, conversation="waiting") > 0
    store.close()
    assert faults(earlier) == UNSIGNED
