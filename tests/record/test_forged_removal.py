"""A removal that somebody with write access to the database forges is detected."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from bylaw import Shield
from bylaw.errors import UsageError
from bylaw.record import Log, open_store
from bylaw.record.database import Cursor
from bylaw.record.entry import Anchor, Draft, digest_of, link_of, new_salts
from bylaw.record.journal import LogError
from bylaw.record.removal import Removal, encode, sign
from bylaw.record.store import Store
from bylaw.record.verify import verify
from tests.command import bylaw

FILES = {
    "pack.yaml": "{format: 1, name: teller, document: policy.md}",
    "policy.md": "Ask before you pay.\n",
    "policies.yaml": "policies: [{id: confirm, kind: rule, spans: [Ask before you pay.]}]\n",
    "rules.yaml": "predicates: {change: {effect: write}, agreed: {consented: told}}\n"
    "rules: [{id: confirm, formula: ALWAYS (change IMPLIES agreed)}]\n",
    "tools.yaml": "tools: {transfer: {effect: write, put_as: 'transfer {amount} to {to}', changes: [], "
    "parameters: {to: string, amount: string}}}\n",
}
TRANSFER = {"to": "AC-22", "amount": "250"}
KEY = b"a signing key of the adversary's own"


def forge(store: Store, emptied: list[int], length: int, *, key: bytes | None) -> None:
    """Empty entries of the conversation, and append a removal that names them."""
    cursor: Cursor = store.connection.begin(writing=True)
    for number in emptied:
        cursor.execute(
            "UPDATE entries SET conversation = NULL, position = NULL, id = NULL, body = NULL, salt = NULL"
            " WHERE tenant = ? AND number = ?",
            ("default", number),
        )
    cursor.execute("UPDATE conversations SET length = ? WHERE name = ?", (length, "c"))
    cursor.execute("SELECT number, link FROM heads WHERE tenant = ?", ("default",))
    ((last, before),) = cursor.fetchall()
    removal, number, now, salt = Removal([(each, each) for each in emptied]), last + 1, time.time(), new_salts(1)
    body = encode(removal)
    if key is not None:
        removal = Removal(removal.entries, signature=sign(key, "default", number, bytes(before), body))
        body = encode(removal)
    digest = digest_of(Draft("default", "", "removal", body), 0, salt)
    link = link_of(bytes(before), "default", number, repr(now), "removal", digest)
    cursor.execute(
        "INSERT INTO entries (tenant, number, time, kind, body, salt, digest, link) VALUES (?,?,?,?,?,?,?,?)",
        ("default", number, now, "removal", body, salt, digest, link),
    )
    cursor.execute("UPDATE heads SET number = ?, link = ? WHERE tenant = ?", (number, link, "default"))
    store.connection.commit()


@pytest.mark.parametrize("where", ["sqlite", "postgres"], indirect=True)
@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("part", ["from the no on", "one in the middle"])
def test_a_forged_removal_is_detected_and_a_conversation_with_a_gap_allows_nothing(
    where: str, key: bytes | None, part: str, tmp_path: Path
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with Shield(tmp_path, log=where) as shield, shield.session("c") as session:
        session.user("Send 250 to AC-22")
        session.agent("Shall I transfer 250 to AC-22?")
        session.user("Yes")
        session.user("No, stop. I changed my mind.")
        assert not session.decide("transfer", TRANSFER).allowed
    store = open_store(where)
    entries = store.conversation("default", "c")
    no = next(each for each in entries if each.body is not None and b"changed my mind" in each.body)
    gone = [each for each in entries if each.position >= no.position] if part == "from the no on" else [no]
    forge(store, [each.number for each in gone], len(entries) - len(gone), key=key)
    assert verify(store, "default").faults
    assert verify(store, "default", key=b"the signing key that the operator keeps").faults
    store.close()
    if part == "one in the middle":
        with Shield(tmp_path, log=where) as shield, pytest.raises(LogError, match="is incomplete"):
            shield.session("c").decide("transfer", TRANSFER)


def laundered(folder: Path) -> str:
    """A log whose conversation `b` an editor of the database has made to look like a part of `a`."""
    where = str(folder / "log.db")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    with Shield(folder, log=where) as shield:
        for name in ("a", "b"):
            with shield.session(name) as session:
                session.user(f"Send 250, says {name}")
                session.decide("transfer", TRANSFER)
    with closing(sqlite3.connect(where)) as database, database:
        (length,) = database.execute("SELECT length FROM conversations WHERE name = 'a'").fetchone()
        moved = "UPDATE entries SET conversation = 'a', position = position + ? WHERE conversation = 'b'"
        database.execute(moved, (length,))
        database.execute("UPDATE conversations SET length = 2 * ? WHERE name = 'a'", (length,))
        database.execute("DELETE FROM conversations WHERE name = 'b'")
    return where


def test_a_removal_is_not_signed_in_a_log_that_does_not_verify(tmp_path: Path) -> None:
    where = laundered(tmp_path)
    (tmp_path / "key").write_text("a" * 64)
    given = ("--log", where, "--signing-key", tmp_path / "key")
    ran = bylaw(tmp_path, "log", "remove", *given, "--even-live", "a")
    assert ran.returncode == 2
    assert "the log does not verify: entry" in ran.stderr
    assert bylaw(tmp_path, "log", "verify", *given).returncode == 1


def test_a_removal_does_not_take_in_entries_of_another_conversation(tmp_path: Path) -> None:
    with closing(open_store(laundered(tmp_path))) as store:
        before = list(store.entries("default"))
        with pytest.raises(UsageError, match=r"nothing was removed: entry \d+ was altered"):
            store.remove("default", key=KEY, conversation="a")
        assert list(store.entries("default")) == before


def test_a_removal_is_not_signed_in_a_log_that_its_anchors_contradict(tmp_path: Path) -> None:
    with Log(str(tmp_path / "log.db")) as log:
        log.append([Draft("default", "a", "event", b"{}")])
    (tmp_path / "key").write_text("a" * 64)
    (tmp_path / "kept").write_bytes(msgspec.json.encode(Anchor(1.0, "default", 1, "0" * 64)))
    given = ("--log", "log.db", "--signing-key", "key", "--even-live", "a")
    ran = bylaw(tmp_path, "log", "remove", *given, "--anchors", "kept")
    assert ran.returncode == 2
    assert "the log was replaced" in ran.stderr
    assert bylaw(tmp_path, "log", "remove", *given).returncode == 0
