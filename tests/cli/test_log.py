"""`bylaw log`: what a policy owner does with a decision log, typed as they would."""
# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false

import json
import re
import sqlite3
from importlib.util import find_spec
from pathlib import Path

import pytest

from bylaw.shield import Shield
from bylaw.trace import read
from tests.command import bylaw
from tests.integrations.shop import write_pack
from tests.shield.scenes import looked_up, shop
from tests.shield.test_approvals import ask, blind
from tests.stores import KEY

ORDER_7 = '{"order_id": "7"}'


def write(folder: Path) -> None:
    with Shield(shop(), log=folder / "decisions.db") as shield:
        ask(blind(shield.session("chat-1")))
        with shield.session("chat-2", agent="shop-bot") as session:
            looked_up(session, "get_order", {"order_id": "7"}, {"order_id": "7", "returned": True})
            assert ask(session).allowed


def test_a_log_verifies_until_it_is_altered(tmp_path: Path) -> None:
    write(tmp_path)
    ran = bylaw(tmp_path, "log", "verify", "--log", "decisions.db")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("default: 13 entries, intact\n  last hash: ")
    head = ran.stdout.split()[-1]
    mistyped = bylaw(tmp_path, "log", "verify", "--log", "decisions.db", "--tenant", "defualt")
    assert (mistyped.returncode, "the log has no tenant `defualt`" in mistyped.stderr) == (2, True)
    assert bylaw(tmp_path, "log", "verify", "--log", "decisions.db", "--head", head).returncode == 0
    with sqlite3.connect(tmp_path / "decisions.db") as connection:
        connection.execute("UPDATE entries SET body = CAST('{}' AS BLOB) WHERE number = 3")
    ran = bylaw(tmp_path, "log", "verify", "--log", "decisions.db", "--json")
    assert ran.returncode == 1
    assert json.loads(ran.stdout)[0]["faults"] == ["entry 3 was altered"]


def test_what_waits_is_listed_and_answered(tmp_path: Path) -> None:
    write(tmp_path)
    ran = bylaw(tmp_path, "log", "approvals", "--log", "decisions.db")
    lines = ran.stdout.splitlines()
    assert lines[0] == "chat-1/2  waiting, 60 minutes left"
    assert lines[1:3] == ["  The agent wants to make this call: refund", '    order_id: "7"']
    assert lines[-1].endswith('Question for a reviewer: Is "returned" true for order 7? (yes or no)')
    ran = bylaw(tmp_path, "log", "approve", "--log", "decisions.db", "--by", "ann", "chat-1/2")
    assert ran.stdout == "chat-1/2: refund approved by ann\n"
    assert bylaw(tmp_path, "log", "approvals", "--log", "decisions.db").stdout == "No call is waiting for approval.\n"
    listed = json.loads(bylaw(tmp_path, "log", "approvals", "--log", "decisions.db", "--all", "--json").stdout)
    assert [(each["id"], each["status"], each["answer"]["by"]) for each in listed] == [("chat-1/2", "approved", "ann")]
    assert "The agent wants to make this call: refund" in listed[0]["request"]["for_person"]
    again = bylaw(tmp_path, "log", "reject", "--log", "decisions.db", "--by", "bob", "chat-1/2")
    assert again.returncode == 2
    assert "`chat-1/2` was already approved by ann" in again.stderr
    with Shield(shop(), log=tmp_path / "decisions.db") as shield:
        assert ask(shield.session("chat-1")).allowed
    (line, *_) = bylaw(tmp_path, "log", "approvals", "--log", "decisions.db", "--all").stdout.splitlines()
    assert re.fullmatch(r"chat-1/2  approved by ann \d{4}-\d\d-\d\d \d\d:\d\d, used \d{4}-\d\d-\d\d \d\d:\d\d", line)


def test_the_audit_of_an_export_honours_what_a_person_approved(tmp_path: Path) -> None:
    write_pack(tmp_path)
    with Shield(tmp_path / "pack", log=tmp_path / "decisions.db") as shield:
        session = blind(shield.session("chat-1"))
        waits = ask(session).approval
        assert shield.log is not None
        shield.log.approve(waits, by="ann", note="receipt seen")
        assert ask(session).allowed
        session.result("refunded")
        # Nobody was asked about this one.
        other = shield.session("chat-2")
        blind(other)
        other.messages(
            [{"role": "assistant", "tool_calls": [{"id": "x", "function": {"name": "refund", "arguments": ORDER_7}}]}]
        )
        for each in (session, other):
            each.flush()
    assert bylaw(tmp_path, "log", "export", "--log", "decisions.db", "--out", "log.jsonl").returncode == 0
    bylaw(tmp_path, "audit", "log.jsonl", "--pack", "pack", "--out", "out")
    lines = [json.loads(line) for line in (tmp_path / "out" / "calls.jsonl").read_text().splitlines()]
    told = [
        (line["trajectory"], policy["determined"], policy["because"])
        for line in lines
        for policy in line["policies"]
        if line["tool"] == "refund"
    ]
    assert ("chat-1", "compliant", f"approved by ann ({waits}): receipt seen") in told
    assert [verdict for name, verdict, _ in told if name == "chat-2"] == ["inconclusive"]


def test_conversations_are_removed_by_name_or_by_age_and_the_chain_still_holds(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "key").write_bytes(KEY)
    signed = ("--log", "decisions.db", "--signing-key", "key")
    remove = ("log", "remove", *signed)
    for wrong, said in (
        ((), "name the conversations"),
        (("chat-1", "--before", "2026-01-01"), "name the conversations"),
        (("chat-9",), "no conversation `chat-9`"),
        (("chat-1", "chat-9"), "no conversation `chat-9`"),
        (("--before", "soon"), "`soon` is not a time"),
        (("chat-1",), "`chat-1` had an event in the last day and may still be running; add --even-live"),
        (("--before", "2101-01-01"), "conversations from the last day may still be running"),
    ):
        ran = bylaw(tmp_path, *remove, *wrong)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert said in ran.stderr
    assert bylaw(tmp_path, *remove, "--before", "2001-01-01").stdout == "Nothing was removed.\n"
    assert bylaw(tmp_path, *remove, "--even-live", "chat-1").stdout == "1 conversation removed, 7 entries emptied\n"
    assert json.loads(bylaw(tmp_path, "log", "export", "--log", "decisions.db").stdout)["id"] == "chat-2"
    assert bylaw(tmp_path, *remove, "--even-live", "--before", "2101-01-01T10:00").stdout.startswith("1 conv")
    ran = bylaw(tmp_path, "log", "verify", *signed)
    said = "default: 15 entries, 13 of them removed, intact except for signed removals"
    assert (ran.returncode, ran.stdout.splitlines()[0]) == (4, said)
    (tmp_path / "other").write_bytes(KEY[::-1])
    for given, said in (
        ((), "cannot be checked without the signing key"),
        (("--signing-key", "other"), "was not signed"),
    ):
        ran = bylaw(tmp_path, "log", "verify", "--log", "decisions.db", *given)
        assert (ran.returncode, said in ran.stdout) == (1, True)


def test_the_signing_key_may_be_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path)
    remove = ("log", "remove", "--log", "decisions.db", "--even-live", "chat-1")
    fold = ("log", "fold", "--log", "decisions.db", "--before", "2001-01-01")
    for unsigned in (remove, fold):
        ran = bylaw(tmp_path, *unsigned)
        assert (ran.returncode, "removals require a signing key" in ran.stderr) == (2, True)
    monkeypatch.setenv("BYLAW_SIGNING_KEY", KEY.decode())
    assert bylaw(tmp_path, *remove).returncode == 0
    assert bylaw(tmp_path, "log", "verify", "--log", "decisions.db").returncode == 4
    monkeypatch.setenv("BYLAW_SIGNING_KEY", KEY.decode()[::-1])
    assert bylaw(tmp_path, "log", "verify", "--log", "decisions.db").returncode == 1


def test_an_export_is_audited(tmp_path: Path) -> None:
    write(tmp_path)
    shop_files = tmp_path / "shop"
    from tests.engine.test_conversation import FILES

    for name, text in FILES.items():
        (shop_files / name).parent.mkdir(parents=True, exist_ok=True)
        (shop_files / name).write_text(text)
    ran = bylaw(tmp_path, "log", "export", "--log", "decisions.db", "--out", "export.jsonl")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert bylaw(tmp_path, "log", "export", "--log", "decisions.db", "chat-2").stdout.count("\n") == 1
    assert bylaw(tmp_path, "audit", "export.jsonl", "--pack", "shop", "--out", "found").returncode == 0
    calls = [json.loads(line) for line in (tmp_path / "found" / "calls.jsonl").open()]
    assert [(call["trajectory"], call["tool"], call["executed"]) for call in calls] == [
        ("chat-1", "refund", False),
        ("chat-2", "refund", None),
    ]


def test_an_export_as_a_table_is_read_as_the_lines_are(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    write(tmp_path)
    with Shield(shop(), log=tmp_path / "decisions.db") as shield:
        shield.session("chat-3", context={"signed_in_as": "C7"}).user("Hello?")
    for name in ("export.jsonl", "export.parquet"):
        ran = bylaw(
            tmp_path, "log", "export", "--log", "decisions.db", "--out", name, "--format", name.partition(".")[2]
        )
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    lines, table = (
        [(each.id, each.agent, each.context, each.events) for each in read(tmp_path / name)]  # type: ignore[union-attr]
        for name in ("export.jsonl", "export.parquet")
    )
    assert [name for name, *_ in lines] == ["chat-1", "chat-2", "chat-3"]
    assert [(id, context, events) for id, _, context, events in table] == [
        (id, context, events) for id, _, context, events in lines
    ]
    found = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "export.parquet").to_pylist()
    assert [[(each["tool"], each["answer"], each["policies"]) for each in row["decisions"]] for row in found] == [
        [("get_order", "allow", []), ("refund", "ask", ["returned-first"])],
        [("get_order", "allow", []), ("refund", "allow", [])],
        [],
    ]
    assert found[1]["agent"] == "shop-bot"
    ran = bylaw(tmp_path, "log", "export", "--log", "decisions.db", "--format", "parquet")
    assert (ran.returncode, "cannot be written to standard output" in ran.stderr) == (2, True)


def test_a_log_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    for command in (["verify"], ["export"], ["approvals"], ["approve", "--by", "ann", "x"]):
        ran = bylaw(tmp_path, "log", command[0], "--log", "nowhere.db", *command[1:])
        assert (ran.returncode, ran.stderr) == (2, "bylaw: BY001 nowhere.db: no such log\n")
    assert not (tmp_path / "nowhere.db").exists()
    write(tmp_path)
    assert "no conversation `x`" in bylaw(tmp_path, "log", "export", "--log", "decisions.db", "x").stderr


def test_a_log_of_others_does_not_look_like_an_empty_one(tmp_path: Path) -> None:
    write(tmp_path)
    for command in ("export", "approvals"):
        ran = bylaw(tmp_path, "log", command, "--log", "decisions.db", "--tenant", "shop")
        assert (ran.returncode, ran.stdout) == (2, "")
        assert "the log has no tenant `shop`" in ran.stderr
        assert "add --tenant with a tenant of the log: `default`" in ran.stderr


def test_a_log_whose_heads_are_gone_is_not_empty(tmp_path: Path) -> None:
    write(tmp_path)
    with sqlite3.connect(tmp_path / "decisions.db") as connection:
        connection.execute("DELETE FROM heads")
    ran = bylaw(tmp_path, "log", "verify", "--log", "decisions.db")
    assert ran.returncode == 1
    assert "the number of written entries is missing" in ran.stdout


def test_an_export_does_not_go_over_its_log(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "link.db").symlink_to("decisions.db")
    (tmp_path / "hard.db").hardlink_to(tmp_path / "decisions.db")
    before = (tmp_path / "decisions.db").read_bytes()
    for out in ("decisions.db", "./link.db", "hard.db", "decisions.db-wal"):
        ran = bylaw(tmp_path, "log", "export", "--log", "decisions.db", "--out", out)
        assert ran.returncode == 2
        assert "would overwrite the log itself" in ran.stderr
    assert (tmp_path / "decisions.db").read_bytes() == before
    assert bylaw(tmp_path, "log", "verify", "--log", "decisions.db").returncode == 0


def test_an_export_names_what_it_cannot_read_and_goes_on(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "export.jsonl").write_text("older\n")
    with sqlite3.connect(tmp_path / "decisions.db") as connection:
        connection.execute("UPDATE entries SET body = NULL WHERE conversation = 'chat-1' AND kind = 'event'")
    ran = bylaw(tmp_path, "log", "export", "--log", "decisions.db", "--out", "export.jsonl")
    assert ran.returncode == 1
    assert ran.stderr.startswith("bylaw: skipped `chat-1`: ")
    assert "Traceback" not in ran.stderr
    (line,) = (tmp_path / "export.jsonl").read_text().splitlines()
    assert json.loads(line)["id"] == "chat-2"
    with sqlite3.connect(tmp_path / "decisions.db") as connection:
        connection.execute("UPDATE entries SET body = CAST('{' AS BLOB) WHERE conversation = 'chat-2' AND position = 1")
    ran = bylaw(tmp_path, "log", "export", "--log", "decisions.db")
    assert (ran.returncode, ran.stdout, ran.stderr.count("bylaw: skipped ")) == (1, "", 2)
    assert sorted(path.name for path in tmp_path.iterdir() if "part" in path.name) == []


def test_a_database_of_something_else_is_no_log_and_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "app.db") as other:
        other.execute("CREATE TABLE customers (name)")
    other.close()
    before = (tmp_path / "app.db").read_bytes()
    commands = [("log", "verify", "--log"), ("log", "export", "--log")]
    if find_spec("starlette") is not None and find_spec("uvicorn") is not None:
        commands.append(("serve", "--pack", "clinic", "--store"))
    for command in commands:
        ran = bylaw(tmp_path, *command, "app.db")
        assert (ran.returncode, ran.stdout) == (2, "")
        assert "`app.db` is another program's database, not a decision log" in ran.stderr
    assert (tmp_path / "app.db").read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["app.db"]


def test_an_export_into_a_folder_that_is_not_there_names_the_folder(tmp_path: Path) -> None:
    write(tmp_path)
    ran = bylaw(tmp_path, "log", "export", "--log", "decisions.db", "--out", "nowhere/log.jsonl")
    assert (ran.returncode, "nowhere: the folder does not exist" in ran.stderr) == (2, True)


def test_one_persons_words_are_erased_and_the_chain_still_verifies(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    with Shield(shop(), log=str(log)) as shield:
        for name, person, words in (
            ("a", "CUST-7731", "I am Ines Übel, tel. 5551234."),
            ("b", "CUST-7731", "Me again."),
            ("c", "C8", "My neighbour Ines Übel told me."),
            ("d", "C9", "Nothing to do with her."),
        ):
            with shield.session(name, context={"signed_in_as": person}) as session:
                session.user(words)
                session.decide("get_order", {"order_id": "7"})
        with shield.session("e", context={"channel": "web"}) as session:
            session.user("Who has not said yet who they are: 5559876.")
            session.decide("get_order", {"order_id": "7"})
            session.result({"order_id": "7", "context": {"signed_in_as": "C8"}})
            session.vouch({"card_number": "K1"})
            session.decide("get_order", {"order_id": "8"})
    (tmp_path / "key").write_bytes(KEY)
    signed = ("--log", "log.db", "--signing-key", "key")
    erase = ("log", "remove", *signed, "--even-live")
    assert "1 conversation removed" in bylaw(tmp_path, *erase, "--person", "card_number=K1").stdout
    assert (
        "3 conversations removed"
        in bylaw(tmp_path, *erase, "--person", "signed_in_as=CUST-7731", "--mentions", "Ines Übel").stdout
    )
    assert bylaw(tmp_path, "log", "verify", *signed).returncode == 4
    left = b"".join(path.read_bytes() for path in tmp_path.glob("log.db*"))
    for word in ("Ines", "5551234", "Me again", "CUST-7731", "5559876"):
        assert word.encode() not in left
    assert "Nothing was removed" in bylaw(tmp_path, *erase, "--person", "signed_in_as=CUST-7731").stdout
    for wrong in (("--person", "CUST-7731"), ("--mentions", "a"), ("--person", "x=1", "d"), ()):
        assert bylaw(tmp_path, *erase, *wrong).returncode == 2


def test_an_answer_needs_the_name_of_a_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "root")
    ran = bylaw(tmp_path, "log", "approve", "--log", "nowhere.db", "x")
    assert ran.returncode == 2
    assert (
        "the account `root` does not identify a person, but the log must record who answers; pass your name: --by NAME"
        in ran.stderr
    )
    monkeypatch.setattr("getpass.getuser", lambda: "ann")
    assert "no such log" in bylaw(tmp_path, "log", "approve", "--log", "nowhere.db", "x").stderr
