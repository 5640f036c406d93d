"""What a host, an agent or somebody at the database may get wrong: each is said, and none ends in a quiet yes."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw import Shield
from bylaw.cli.proxy import _taken_up  # pyright: ignore[reportPrivateUsage]
from bylaw.errors import UsageError
from bylaw.facts.lost import is_lost
from bylaw.pack import Pack
from bylaw.record import Log
from bylaw.shield.history import read_history
from bylaw.trace.chat_record import chat_line
from bylaw.trace.recorded_value import repeated_key
from tests.command import bylaw
from tests.engine.test_conversation import FILES
from tests.shield.scenes import looked_up, shop
from tests.shield.test_approvals import REFUND, blind, shield

DESK = {
    **FILES,
    "tools.yaml": FILES["tools.yaml"].replace("changes: []", "changes: [Order]"),
}


def test_the_id_of_a_conversation_is_a_text() -> None:
    with pytest.raises(UsageError, match="is a text, not `int`"):
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
        assert "argument `order_id` is a number, and the tool takes a text" in decision.feedback
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
    told = [message for message in msgspec.json.decode(exported.read_bytes())["messages"] if message["role"] == "tool"]
    assert [message.get("captured", True) for message in told].count(False) == 1, "an audit reads it as it was decided"


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


LOST: list[Any] = [
    "500 Internal Server Error",
    "502 Bad Gateway",
    "503 Service Unavailable",
    "Service is temporarily unavailable",
    "HTTP 500",
    "Error: 500",
    "Error 503: try later",
    "HTTP/1.1 504 Gateway Timeout",
    "HTTPError: 503 Server Error: Service Unavailable for url: http://x",
    "Error code: 500 - {'error': {'message': 'x'}}",
    "<html><head><title>502 Bad Gateway</title></head>" + " " * 800,
    {"error": {"code": 500}},
    {"error": "x", "code": "500"},
    {"status": 500},
    {"statusCode": 503, "body": None},
    {"status": "error", "message": "Internal server error"},
    {"detail": "Internal Server Error"},
    {"errors": [{"title": "503 Service Unavailable"}]},
    {"content": [{"type": "text", "text": "Error: request timed out"}], "isError": True},
    "Error: gateway timeout",
    "Error: timeout",
    "TimeoutError()",
    "ReadTimeout",
    "context deadline exceeded",
    "MCP error -32001: Request timed out",
    "ECONNRESET",
    "ServerDisconnectedError",
    "[Errno 104] Connection reset by peer",
    "('Connection aborted.', RemoteDisconnected('Remote end closed connection without response'))",
    "httpx.RemoteProtocolError: Server disconnected without sending a response.",
    "Traceback (most recent call last):\n" + "  File x\n" * 80 + "ConnectionResetError: [Errno 104]",
    {"error": "duplicate request, already processed"},
    "Error: request already processed",
    "Error: partially refunded 40.00, then failed",
    "unexpected EOF",
    "Task was cancelled",
    "Error",
    "failed",
    "Internal error",
    "An unknown error occurred",
    "Something went wrong, please try again later.",
    "UnexpectedToolError",
    "Error executing tool refund",
    "Error calling tool 'refund'",
    "refund failed",
    {"error": True},
    {"success": False},
    {"error": "unknown error"},
    {"content": [{"type": "text", "text": "Error executing tool refund"}], "isError": True},
]
REFUSED_OR_DONE: list[Any] = [
    "refunded",
    "timeouts are handled elsewhere. " * 40,
    "we time our outings",
    "",
    "done",
    "Request completed",
    "The card was declined",
    "Error: insufficient balance",
    "Error executing tool refund: no such order",
    {"error": "insufficient balance"},
    {"error": {"code": "INSUFFICIENT_FUNDS"}},
    {"order_id": "7", "error": True},
    {"ok": True},
    "Error: reservation not found",
    "Error: payment amount does not add up, total price is 503, but paid 500",
    "Error: 500 is more than the limit of 300",
    "Error: 501, 502 and 503 are taken",
    "Error: zip code 500",
    "Error: flight 503 not available",
    "Error: invalid timeout",
    "Error: timeout must be below 30",
    "400 Bad Request",
    "Error: 404 not found",
    "Error: not allowed",
    "Error: appointment is already cancelled",
    {"error": {"code": 404, "message": "not found"}},
    {"status": 422, "error": "validation of the timeout failed"},
    {"status": 403, "message": "Forbidden"},
    {"status": 200, "message": "ok"},
    {"refunded": 500},
    {"code": 512},
    {"ticket": "T1", "note": "the connection was lost"},
    "Connection reset successfully",
    "Line disconnected.",
    "Created case 503",
]


@pytest.mark.parametrize("answer", LOST)
def test_an_answer_may_leave_open_whether_a_write_was_done(answer: Any) -> None:
    assert is_lost(answer if isinstance(answer, str) else json.dumps(answer), None, "refund")


@pytest.mark.parametrize("answer", REFUSED_OR_DONE)
def test_an_answer_that_came_is_not_lost(answer: Any) -> None:
    assert not is_lost(answer if isinstance(answer, str) else json.dumps(answer), None, "refund")


def test_an_error_that_gives_no_reason_is_no_refusal() -> None:
    assert is_lost("", True, "refund")
    assert is_lost("refund", True, "refund")
    assert not is_lost("card declined", True, "refund")
    assert not is_lost("failed", False, "refund"), "the host says that it is no error"


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
    assert listed.stdout.count("not to be trusted") == 2
    assert "no entry of the log asks for it" in listed.stdout
    assert "by the log it is waiting" in listed.stdout
    verified = bylaw(tmp_path, "log", "verify", "--log", file)
    assert (verified.returncode, verified.stdout.count("is not what the log says of it")) == (1, 2)
    shown = msgspec.json.decode(bylaw(tmp_path, "log", "approvals", "--all", "--json", "--log", file).stdout)
    assert {each["fault"] for each in shown} == {"no entry of the log asks for it", "by the log it is waiting"}


def test_a_fixed_conversation_that_the_log_knows_is_said_to_go_on(tmp_path: Path) -> None:
    with Shield(shop(), log=tmp_path / "log.db") as held:
        assert _taken_up(held, "desk") == ""
        with held.session("desk") as session:
            looked_up(session, "get_order", {"order_id": "7"}, {"order_id": "7", "returned": True})
        said = _taken_up(held, "desk")
    assert "conversation `desk` goes on where the log left it" in said
    assert "what was looked up then counts as seen" in said


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
