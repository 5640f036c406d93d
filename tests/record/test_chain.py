"""The chain of hashes: what was altered is found, and what was removed leaves it whole."""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bylaw.errors import BylawError
from bylaw.record import Conflict, Draft, Log, open_store
from bylaw.record.approval import Change, draft
from bylaw.record.verify import verify
from tests.command import bylaw
from tests.record.test_log import event, fill
from tests.stores import KEY


def test_removing_a_conversation_leaves_the_chain_whole_and_none_of_its_words(where: str) -> None:
    store = fill(where)
    store.append([event("other", '"stays"')])
    assert store.remove("t", key=KEY, conversation="c") == 5
    found = verify(store, "t", key=KEY)
    # The removal is an entry itself, and says which entries it emptied.
    assert (found.entries, found.removed, found.faults) == (7, 5, ())
    *_, last = store.entries("t")
    assert (last.kind, b'"entries":[[1,5]]' in (last.body or b"")) == ("removal", True)
    with pytest.raises(BylawError, match="conversation `c` was removed from the log"):
        store.conversation("t", "c")
    (again,) = store.append([Draft("t", "c", "opening", b"{}")])
    assert isinstance(again, Conflict)
    assert [entry.salt for entry in store.entries("t") if entry.is_removed] == [None] * 5
    assert store.conversations("t") == ["other"]
    store.close()


def test_of_what_was_removed_no_word_is_left_in_any_file(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store, other = open_store(str(path)), open_store(str(path))
    for number in range(20):
        store.append([event(f"c{number}", f'"secret {number}; {"x" * 3000}"')])
    assert other.conversation("t", "c7")
    assert store.remove("t", key=KEY, conversation="c7") == 1
    files = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert b"secret 7;" not in files
    assert b"secret 8;" in files
    other.close()
    store.close()


def test_retention_spares_conversations_that_still_go_on(where: str) -> None:
    store = open_store(where)
    store.append([event("old", "1"), event("live", "2")])
    time.sleep(0.02)
    now = time.time()
    store.append([event("live", "3")])
    assert store.remove("t", key=KEY, before=now) == 1
    assert len(store.conversation("t", "live")) == 2
    assert verify(store, "t", key=KEY).faults == ()
    store.close()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE entries SET body = '9' WHERE number = 3", "entry 3 was altered"),
        ("UPDATE entries SET body = CAST('9' AS BLOB) WHERE number = 3", "entry 3 was altered"),
        ("UPDATE entries SET position = 7 WHERE number = 3", "entry 3 was altered"),
        ("UPDATE entries SET time = 1 WHERE number = 3", "entry 3 does not follow"),
        ("UPDATE entries SET kind = 'decision' WHERE number = 3", "entry 3 does not follow"),
        ("DELETE FROM entries WHERE number = 3", "entry 3 is missing"),
        *(
            (
                f"INSERT INTO entries SELECT tenant, {number}, time, 'event', conversation, 5, NULL, body, salt,"
                " digest, link FROM entries WHERE number = 3",
                fault,
            )
            for number, fault in (
                ("-1000000000", "entry 1 is missing; the next one is -1000000000"),
                ("0", "entry 1 is missing; the next one is 0"),
                ("2.5", "entry 3 is missing; the next one is 2.5"),
                ("'x'", "entry 6 is missing; the next one is x"),
            )
        ),
        ("DELETE FROM entries WHERE number = 5", "ends at entry 4, but 5 entries were written"),
        ("DELETE FROM heads", "ends at entry 5, but the number of written entries is missing"),
        ("UPDATE entries SET position = 'x' WHERE number = 4", "entry 4 was altered"),
        ("UPDATE heads SET number = 'x', link = 'y'", "the log ends at entry 5, but x entries were written"),
        ("DELETE FROM conversations", "conversation `c` has 5 entries but is missing"),
        ("UPDATE conversations SET length = 4", "conversation `c` has 5 entries, but 4 were written"),
        ("INSERT INTO conversations VALUES ('t', 'd', 2)", "conversation `d` has 0 entries, but 2 were written"),
        ("UPDATE entries SET body = NULL WHERE number = 4", "entry 4 was emptied without a signed removal"),
        (
            "UPDATE entries SET body = NULL, salt = NULL, conversation = NULL, position = NULL WHERE number > 2",
            "entries 3 to 5 were emptied without a signed removal",
        ),
    ],
)
def test_an_altered_log_does_not_verify(tmp_path: Path, statement: str, said: str) -> None:
    path = tmp_path / "log.db"
    fill(str(path)).close()
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    store = open_store(str(path))
    assert any(said in fault for fault in verify(store, "t", key=KEY).faults)
    store.close()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE entries SET body = NULL WHERE number = 3", "entry 3 was emptied"),
        ("UPDATE entries SET body = NULL WHERE kind = 'removal'", "entries 1 to 2 were emptied"),
        ("UPDATE entries SET body = '{\"entries\":[[1,3]]}' WHERE kind = 'removal'", "entries 1 to 2 were emptied"),
        ("DELETE FROM entries WHERE kind = 'removal'", "entries 1 to 2 were emptied"),
    ],
)
def test_a_removal_covers_what_it_emptied_and_no_more(tmp_path: Path, statement: str, said: str) -> None:
    path = tmp_path / "log.db"
    store = fill(str(path), 2)
    store.append([event("other", "1")])
    store.remove("t", key=KEY, conversation="c")
    store.append([event("c", "anew"), event("other", "2")])
    # A later removal leaves the earlier one's entry as it is.
    assert store.remove("t", key=KEY, conversation="c") == 1
    assert (verify(store, "t", key=KEY).removed, verify(store, "t", key=KEY).faults) == (3, ())
    assert store.remove("t", key=KEY, conversation="c") == 0
    assert verify(store, "t", key=KEY).entries == 7
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute(statement + (" AND number = 4" if "removal" in statement else ""))
    store = open_store(str(path))
    assert any(said in fault for fault in verify(store, "t", key=KEY).faults)
    store.close()


def test_a_log_cut_off_with_its_head_is_found_by_a_hash_noted_earlier(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store = fill(str(path))
    noted = verify(store, "t", key=KEY).head
    fourth = next(entry.link for entry in store.entries("t") if entry.number == 4)
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM entries WHERE number = 5")
        connection.execute("UPDATE heads SET number = 4, link = ?", (fourth,))
        connection.execute("UPDATE conversations SET length = 4")
    store = open_store(str(path))
    assert verify(store, "t", key=KEY).faults == ()
    assert verify(store, "t", head=noted, key=KEY).faults != ()
    store.close()


def test_a_log_that_is_written_to_meanwhile_is_not_taken_for_a_damaged_one(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, writer = fill(where), open_store(where)
    heads, lengths = store.heads, store.lengths

    def between(read: Callable[..., Any], *asked: str) -> Any:
        writer.append([event("c", '"more"'), event("d", '"new"')])
        return read(*asked)

    monkeypatch.setattr(store, "heads", lambda: between(heads))
    monkeypatch.setattr(store, "lengths", lambda tenant: between(lengths, tenant))
    found = verify(store, "t", key=KEY)
    assert (found.entries, found.faults) == (5, ())
    monkeypatch.undo()
    assert (verify(store, "t", key=KEY).entries, verify(store, "t", key=KEY).faults) == (9, ())
    store.close()
    writer.close()


def test_tenants_have_chains_of_their_own(where: str) -> None:
    store = open_store(where)
    store.append([Draft("a", "c", "event", b"1"), Draft("b", "c", "event", b"2"), Draft("a", "c", "event", b"3")])
    assert [entry.body for entry in store.conversation("a", "c")] == [b"1", b"3"]
    assert {tenant: number for tenant, (number, _) in store.heads().items()} == {"a": 2, "b": 1}
    assert not verify(store, "a", key=KEY).faults + verify(store, "b", key=KEY).faults
    store.close()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("delete from approvals", "it is missing from the list of approvals"),
        ("update approvals set expires = expires + 1e7", "at a different time"),
        ("update approvals set asked = asked - 1e6", "at a different time"),
        ("update approvals set conversation = 'other'", "the log has a different request"),
        ("update approvals set body = replace(body, x'616e6e', x'626f62')", "a different answer"),
        ("update approvals set status = 'waiting'", "according to the log, it is approved"),
    ],
)
def test_a_row_of_an_approval_is_held_against_its_entries(tmp_path: Path, statement: str, said: str) -> None:
    path = tmp_path / "log.db"
    with Log(str(path)) as log:
        asked = Change("c/1", "waiting", expires=time.time() + 99, tool="pay", arguments={"amount": "5"})
        log.append([draft("default", "c", asked)])
        log.approve("c/1", by="ann")
    store = open_store(str(path))
    assert verify(store, "default", key=KEY).faults == ()
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    store = open_store(str(path))
    (fault,) = verify(store, "default", key=KEY).faults
    assert said in fault
    store.close()


def test_who_approved_is_read_from_the_entries(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with Log(str(path)) as log:
        asked = Change("c/1", "waiting", expires=time.time() + 99, tool="pay", arguments={"amount": "5"})
        log.append([draft("default", "c", asked)])
        log.approve("c/1", by="ann")
        log.append([draft("default", "c", Change("c/1", "used"))])
        with sqlite3.connect(path) as connection:
            # Earlier versions kept no answer of an approval that was used.
            hide = "cast(json_remove(body, '$.answer', '$.answered') as blob)"
            connection.execute(f"update approvals set body = {hide}")
        connection.close()
        assert [each.answer for each in log.approvals("default")] == [None]
        shown = [*log.supported("default")[0], *log.recently_answered("default", 5)]
    assert [each.answer.by for each in shown if each.answer is not None] == ["ann", "ann"]
    assert "approved by ann" in bylaw(tmp_path, "log", "approvals", "--all", "--log", path).stdout
