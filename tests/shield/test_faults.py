"""What a host, an agent or somebody at the database may get wrong: each is said, and none ends in a quiet yes."""

import sqlite3
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw import Shield, Trajectory, verdicts
from bylaw.cli.proxy import _taken_up  # pyright: ignore[reportPrivateUsage]
from bylaw.errors import UsageError
from bylaw.pack import Pack
from bylaw.record import Log
from bylaw.shield.history import read_history
from bylaw.trace import read
from bylaw.trace.recorded_value import repeated_key
from bylaw.trace.transcript import chat_line
from tests.command import bylaw
from tests.engine.test_conversation import FILES
from tests.shield.scenes import looked_up, shop
from tests.shield.test_approvals import REFUND, blind, shield

DESK = {
    **FILES,
    "tools.yaml": FILES["tools.yaml"].replace("changes: []", "changes: [Order]"),
}


def test_the_id_of_a_conversation_is_a_text() -> None:
    with pytest.raises(UsageError, match="must be a string, not `int`"):
        Shield(shop()).session(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [
        '{"order_id": "7", "order_id": "8"}',
        '{"order_id" :"7","order_id":"8"}',
        '{"order_id": "a:b", "order_id": "7"}',
        '{"order_id": "7", "note": {"by": "x", "by": "y"}}',
        '{"order_id": "7", "\\u006frder_id": "8"}',
    ],
)
def test_a_key_that_is_given_twice_is_no_argument(arguments: str) -> None:
    tools = FILES["tools.yaml"].replace("{order_id: string}, changes", '{order_id: string, note: "object?"}, changes')
    with Shield(shop(tools_yaml=tools)).session() as session:
        looked_up(session, "get_order", {"order_id": "7"}, {"order_id": "7", "returned": True})
        looked_up(session, "get_order", {"order_id": "8"}, {"order_id": "8", "returned": True})
        assert session.decide("refund", '{"order_id": "7", "note": {"by": ["x:y"]}}').answer == "allow"
        decision = session.decide("refund", arguments)
    assert (decision.answer, decision.allowed) == ("deny", False)
    assert "is given twice" in decision.feedback


@pytest.mark.parametrize(
    "text",
    ['{"n": ' + "9" * 5000 + "}", '{"a": {"b": 1}, "c": {"b": 2}}', '{"a": [{"b": 1}, {"b": 1}]}', '{"a": "\\u003a"}'],
)
def test_keys_of_different_objects_are_not_one_key(text: str) -> None:
    assert repeated_key(text, {}) == ""


NAMES = st.sampled_from(['"a"', '"b:"', '"\\u0061"', '"b\\u003a"', '"c" '])
JSON = st.recursive(
    st.sampled_from(["1", '"a"', '"a:b"', '"\\u003a"', '"\\u003A:"', '"\\":"', '"\\\\u003a"', "null"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda parts: f"[{','.join(parts)}]")
        | st.lists(st.tuples(NAMES, inner), max_size=3).map(
            lambda pairs: "{" + ",".join(f"{name}: {value}" for name, value in pairs) + "}"
        )
    ),
    max_leaves=8,
)


@given(JSON)
def test_the_quick_look_for_a_key_given_twice_finds_what_the_plain_one_finds(text: str) -> None:
    assert repeated_key(text.encode()) == repeated_key(text)


def test_many_keys_are_looked_through_in_no_time() -> None:
    many = ",".join(f'"k{number}":[0,"a:b"]' for number in range(20_000))
    assert repeated_key("{" + many + "}") == ""
    assert repeated_key("{" + many + ',"k7":1}') == "k7"


def test_a_number_is_not_taken_for_the_text_that_a_tool_declares() -> None:
    with Shield(shop()).session() as session:
        looked_up(session, "get_order", {"order_id": "7"}, {"order_id": "7", "returned": True})
        decision = session.decide("refund", {"order_id": 7})
        assert decision.answer == "deny"
        assert "argument `order_id` is a number, but the tool requires text" in decision.feedback
        assert session.decide("refund", {"order_id": "7"}).answer == "allow"


@pytest.mark.parametrize("answer", ["Error: the system timed out, please try again", {"error": "504 Gateway Timeout"}])
def test_a_write_that_timed_out_may_have_been_done(answer: object, where: str, tmp_path: Path) -> None:
    pack = Pack.from_files(DESK)
    with Shield(pack, log=where) as held, held.session("c") as session:
        looked_up(session, "get_order", {"order_id": "7"}, {"order_id": "7", "returned": True})
        assert session.decide("refund", {"order_id": "7"}).allowed
        session.result(answer)
        decision = session.decide("refund", {"order_id": "7"})
        assert (decision.answer, decision.allowed) == ("look_up", False), "what it did has to be looked up first"
        looked_up(session, "get_order", {"order_id": "7"}, {"order_id": "7", "returned": True})
        assert session.decide("refund", {"order_id": "7"}).allowed
        session.result("Error: refused", refused=True)
        assert session.decide("refund", {"order_id": "7"}).allowed, "a refusal changes nothing"
    with Shield(pack, log=where) as held:
        assert held.log is not None
        history = read_history(held.log.conversation("default", "c"))
    assert history is not None
    exported = tmp_path / "export.jsonl"
    exported.write_bytes(chat_line(history.trajectory("c")))
    (trajectory,) = read(exported)
    assert isinstance(trajectory, Trajectory)
    judged = verdicts(pack, trajectory).calls
    assert [each.made.accepted for each in judged if not each.made.call.refused] == [None, False, None]


def test_a_tool_may_say_that_its_time_out_is_a_refusal() -> None:
    """`refused:` of the tool: it is known that nothing was done."""
    tools = DESK["tools.yaml"].replace("refund: {", 'refund: {refused: "^Error: timed out before", ')
    assert tools != DESK["tools.yaml"]
    with Shield(Pack.from_files({**DESK, "tools.yaml": tools})).session("c") as session:
        looked_up(session, "get_order", {"order_id": "7"}, {"order_id": "7", "returned": True})
        assert session.decide("refund", {"order_id": "7"}).allowed
        session.result("Error: timed out before it began")
        assert session.decide("refund", {"order_id": "7"}).allowed
        session.result("Error: timed out")
        assert session.decide("refund", {"order_id": "7"}).answer == "look_up"


def test_a_row_of_approvals_that_the_log_does_not_bear_out_is_told_as_such(tmp_path: Path) -> None:
    file = tmp_path / "log.db"
    with Log(str(file)) as log:
        decision = blind(shield(log).session("c")).decide("refund", REFUND)
        assert decision.approval
    listed = bylaw(tmp_path, "log", "approvals", "--log", file)
    assert (listed.returncode, "not to be trusted" in listed.stdout) == (0, False)
    with sqlite3.connect(file) as database:
        (row,) = database.execute("SELECT * FROM approvals").fetchall()
        names = [each[1] for each in database.execute("PRAGMA table_info(approvals)")]
        forged = dict(zip(names, row, strict=True)) | {"id": "forged"}
        marks = ",".join("?" * len(names))
        database.execute(
            f"INSERT INTO approvals ({','.join(names)}) VALUES ({marks})", [forged[each] for each in names]
        )
        database.execute("UPDATE approvals SET status = 'approved' WHERE id = ?", (decision.approval,))
    listed = bylaw(tmp_path, "log", "approvals", "--all", "--log", file)
    assert listed.returncode == 1
    assert listed.stdout.count("do not trust this entry") == 2
    assert "no entry requests it" in listed.stdout
    assert "according to the log, it is waiting" in listed.stdout
    verified = bylaw(tmp_path, "log", "verify", "--log", file)
    assert (verified.returncode, verified.stdout.count("contradicts the log")) == (1, 2)
    shown = msgspec.json.decode(bylaw(tmp_path, "log", "approvals", "--all", "--json", "--log", file).stdout)
    assert {each["fault"] for each in shown} == {"no entry requests it", "according to the log, it is waiting"}


def test_a_fixed_conversation_that_the_log_knows_is_said_to_go_on(tmp_path: Path) -> None:
    with Shield(shop(), log=tmp_path / "log.db") as held:
        assert _taken_up(held, "desk") == ""
        with held.session("desk") as session:
            looked_up(session, "get_order", {"order_id": "7"}, {"order_id": "7", "returned": True})
        said = _taken_up(held, "desk")
    assert "resuming conversation `desk`" in said
    assert "Earlier look-ups still count" in said


def test_a_question_about_an_open_rule_is_never_empty() -> None:
    rules = "predicates:\n  kind: {question: '  '}\n  change: {effect: write}\nrules:\n" + (
        "  - {id: be-kind, formula: ALWAYS (change IMPLIES kind)}\n"
    )
    policies = "policies:\n  - {id: be-kind, kind: rule, spans: [Refund an order only after it was returned.]}\n"
    files = {"pack.yaml": FILES["pack.yaml"], "policy.md": FILES["policy.md"], "tools.yaml": FILES["tools.yaml"]}
    with Shield(Pack.from_files({**files, "policies.yaml": policies, "rules.yaml": rules})).session() as session:
        decision = session.decide("refund", {"order_id": "7"})
    assert decision.answer == "ask"
    assert all(len(question.text.strip(" ?")) > 3 for question in decision.questions)
