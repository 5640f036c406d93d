"""Stops in the log: who made them, who lifted them, in the chain; in both stores."""

import time

import pytest

from bylaw.errors import UsageError
from bylaw.record import Log
from bylaw.record.entry import Anchor
from bylaw.record.stop import STOPS
from bylaw.record.store import open_store
from bylaw.record.verify import verify
from tests.stores import KEY

HOUR = 3600.0


def test_a_stop_and_its_lifting_stand_in_the_chain_with_who_did_it(where: str) -> None:
    with Log(where) as log:
        stop = log.stop("tool", "refund", by="ann", reason="paid twice", until=time.time() + HOUR)
        log.stop("agent", "night", by="bo", reason="odd", until=time.time() + HOUR, answer="ask")
        with pytest.raises(UsageError, match="no stop `stop-x`"):
            log.lift("stop-x", by="ann")
        log.lift(stop.id, by="cy", reason="mended")
        with pytest.raises(UsageError, match="already lifted by cy"):
            log.lift(stop.id, by="ann")
        (first, second) = log.every_stop("default")
        assert first.lift is not None
        assert (first.stop.by, first.lift.by, first.lift.reason) == ("ann", "cy", "mended")
        assert first.stop.since <= first.lift.at
        assert second.stands(time.time())
        store = open_store(where)
        assert store.conversations("default") == []
        assert verify(store, "default", key=KEY).faults == ()
        kinds = [entry.kind for entry in store.entries("default")]
        assert kinds == ["stop", "stop", "stop"]
        store.close()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"by": ""}, "the name of the person who adds it"),
        ({"reason": " "}, "needs a reason"),
        ({"until": 1.0}, "must end in the future"),
        ({"until": time.time() + 1e9}, "must end in the future"),
        ({"until": float("nan")}, "must end in the future"),
        ({"name": ""}, "needs a name"),
        ({"what": "all"}, "has no name"),
        ({"answer": "allow"}, "is not a valid stop"),
    ],
)
def test_a_stop_without_reason_name_or_end_is_refused(given: dict[str, object], message: str) -> None:
    whole = {"what": "tool", "name": "refund", "by": "ann", "reason": "why", "until": time.time() + HOUR}
    with Log(":memory:") as log, pytest.raises(UsageError, match=message):
        log.stop(**{**whole, **given})  # type: ignore[arg-type]


def test_a_stop_that_was_altered_or_taken_out_is_seen(tmp_path: object) -> None:
    import sqlite3
    from pathlib import Path

    path = str(Path(str(tmp_path)) / "log.db")
    with Log(path) as log:
        log.stop("tool", "refund", by="ann", reason="paid twice", until=time.time() + HOUR)
        log.stop("all", by="ann", reason="paid twice", until=time.time() + HOUR)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE entries SET body = replace(body, 'refund', 'refute') WHERE number = 1")
    connection.commit()
    with Log(path) as log, pytest.raises(Exception, match="was altered"):
        log.every_stop("default")
    store = open_store(path)
    assert verify(store, "default", key=KEY).faults
    connection.execute("DELETE FROM entries WHERE number = 1")
    connection.execute("UPDATE entries SET position = 0")
    connection.commit()
    with Log(path) as log, pytest.raises(Exception, match=r"is missing|was altered"):
        log.every_stop("default")
    assert verify(store, "default", key=KEY).faults
    store.close()
    connection.close()


def test_a_retention_period_empties_stops_once_all_are_over_and_never_counts_them_anew(where: str) -> None:
    with Log(where) as log:
        stop = log.stop("tool", "refund", by="ann", reason="paid twice", until=time.time() + HOUR)
        store = open_store(where)
        assert store.remove("default", key=KEY, before=time.time() + 1) == 0
        log.lift(stop.id, by="ann")
        assert store.remove("default", key=KEY, before=time.time() + 1) == 2
        assert verify(store, "default", key=KEY).faults == ()
        log.forget_stops("default")
        assert log.stops("default").revision == 2
        assert log.every_stop("default") == []
        log.stop("all", by="ann", reason="again", until=time.time() + HOUR)
        assert store.length_of("default", STOPS) == 3
        assert len(log.every_stop("default")) == 1
        assert verify(store, "default", key=KEY).faults == ()
        anchors = [Anchor(0.0, "default", each.number, each.link.hex()) for each in store.entries("default")]
        store.fold("default", key=KEY, before=time.time() + 1, anchors=anchors[:2])
        assert store.length_of("default", STOPS) == 3
        assert verify(store, "default", key=KEY, anchors=anchors[:2]).faults == ()
        store.close()


def test_an_invented_number_of_stops_is_found(where: str) -> None:
    with Log(where) as log:
        stop = log.stop("tool", "refund", by="ann", reason="paid twice", until=time.time() + HOUR)
        log.lift(stop.id, by="ann")
        store = open_store(where)
        for before, emptied in ((0.0, 0), (time.time() + 1, 2)):
            assert store.remove("default", key=KEY, before=before) == emptied
            for number in (2, 3, 1):
                cursor = store.connection.begin(writing=True)
                cursor.execute("UPDATE conversations SET length = ? WHERE name = ?", (number, STOPS))
                store.connection.commit()
                faults = verify(store, "default", key=KEY).faults
                assert (not faults) is (number == 2)
            cursor = store.connection.begin(writing=True)
            cursor.execute("UPDATE conversations SET length = 2 WHERE name = ?", (STOPS,))
            store.connection.commit()
        store.close()
