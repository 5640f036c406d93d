"""AuthZEN asks the same question: one at a time, several at once, and found by its configuration."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from bylaw.record import Log
from bylaw.record.journal import LogError
from bylaw.record.verify import verify
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from bylaw.service.keys import Key, hash_of, new_key
from bylaw.shield.history import read_history
from tests.command import bylaw
from tests.service.asgi import get, post
from tests.shield.scenes import shop

ALL = "/access/v1/evaluations"
RETURNED: dict[str, Any] = {"result": {"order_id": "7", "returned": True}, "call": "a"}
WHO: dict[str, Any] = {"subject": {"type": "agent", "id": "shop-bot"}, "resource": {"type": "order", "id": "7"}}
LOOK: dict[str, Any] = {"name": "get_order", "properties": {"order_id": "7"}}
REFUND: dict[str, Any] = {"name": "refund", "properties": {"order_id": "7"}}


def asked(app: Any, *actions: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    """Evaluations that have all but the action in common."""
    request = {**WHO, "context": {"conversation": "c"}, **more, "evaluations": [{"action": each} for each in actions]}
    answer = post(app, ALL, request)
    assert answer.status == 200, answer.body
    assert answer.json.keys() == {"evaluations"}
    return answer.json["evaluations"]


def calls_of(log: Log, name: str = "c") -> int:
    history = read_history(log.conversation("default", name))
    return len(history.decisions) if history is not None else 0


def test_authzen_asks_the_same_question(app: Any) -> None:
    evaluation: dict[str, Any] = {
        "subject": {"type": "agent", "id": "shop-bot"},
        "action": {"name": "refund", "properties": {"order_id": "7"}},
        "resource": {"type": "order", "id": "7"},
        "context": {"conversation": "z", "ip": "10.0.0.1"},
    }
    answer = post(app, "/access/v1/evaluation", evaluation)
    assert (answer.status, answer.json["decision"]) == (200, False)
    assert "get_order(order_id=7)" in answer.json["context"]["reason_user"]["en"]
    look = {**evaluation, "action": {"name": "get_order", "properties": {"order_id": "7"}}}
    look["context"] = {"conversation": "z", "call_id": "a"}
    assert post(app, "/access/v1/evaluation", look).json["decision"] is True
    evaluation["context"] = {"conversation": "z", "events": [RETURNED]}
    assert post(app, "/access/v1/evaluation", evaluation).json["decision"] is True


def test_each_of_several_is_answered_in_order_and_is_in_the_log(app: Any, log: Log) -> None:
    answers = asked(app, REFUND, LOOK, REFUND)
    assert [each["decision"] for each in answers] == [False, True, False]
    assert [each["context"]["id"] for each in answers] == ["c/1", "c/2", "c/3"]
    assert "get_order(order_id=7)" in answers[0]["context"]["reason_user"]["en"]
    assert calls_of(log) == 3
    assert verify(log.journal.store, "default").faults == ()
    page = get(app, "/metrics").body.decode()
    assert 'bylaw_requests_total{route="/access/v1/evaluations",status="200"} 1' in page


@pytest.mark.parametrize(
    ("semantic", "decisions"),
    [
        ("execute_all", [True, False, True]),
        ("deny_on_first_deny", [True, False]),
        ("permit_on_first_permit", [True]),
    ],
)
def test_what_is_not_evaluated_is_not_asked(app: Any, log: Log, semantic: str, decisions: list[bool]) -> None:
    answers = asked(app, LOOK, REFUND, LOOK, options={"evaluations_semantic": semantic, "another": 1})
    assert [each["decision"] for each in answers] == decisions
    assert calls_of(log) == len(decisions)


def test_an_evaluation_of_its_own_wins_over_what_is_said_for_all(app: Any, log: Log) -> None:
    other = {"action": LOOK, "context": {"conversation": "d"}}
    request = {**WHO, "action": REFUND, "context": {"conversation": "c"}, "evaluations": [{}, other, {}]}
    first, second, third = post(app, ALL, request).json["evaluations"]
    assert [first["context"]["tool"], second["context"]["tool"], third["context"]["tool"]] == [
        "refund",
        "get_order",
        "refund",
    ]
    assert (calls_of(log), calls_of(log, "d")) == (2, 1)


def test_what_happened_before_all_of_them_happened_once(app: Any, log: Log) -> None:
    asked(app, LOOK, context={"conversation": "c", "call_id": "a"})
    before = {"conversation": "c", "events": [RETURNED]}
    assert [each["decision"] for each in asked(app, REFUND, LOOK, context=before)] == [True, True]
    # Said with an evaluation, it is that one's: a result that comes twice is refused, and the evaluation with it.
    twice = [{"action": LOOK, "context": before}, {"action": LOOK}]
    first, second = post(app, ALL, {**WHO, "context": {"conversation": "c"}, "evaluations": twice}).json["evaluations"]
    assert (first["decision"], first["context"]["error"]["status"], second["decision"]) == (False, 422, True)
    assert "no call `a` is waiting" in first["context"]["error"]["message"]


def test_what_one_that_was_refused_said_for_all_is_still_to_be_said(app: Any) -> None:
    asked(app, LOOK, context={"conversation": "c", "call_id": "a"})
    wrong: dict[str, Any] = {"action": {"name": "", "properties": {}}}
    shared = {**WHO, "context": {"conversation": "c", "events": [RETURNED]}, "evaluations": [wrong, {"action": REFUND}]}
    first, second = post(app, ALL, shared).json["evaluations"]
    assert (first["decision"], first["context"]["error"]["status"], second["decision"]) == (False, 400, True)


def test_without_evaluations_it_is_one(app: Any) -> None:
    one = {**WHO, "action": REFUND, "context": {"conversation": "c"}}
    whole: dict[str, Any] = {**one, "evaluations": []}
    for request in (one, whole):
        answer = post(app, ALL, request)
        assert (answer.status, answer.json["decision"], answer.json.keys()) == (200, False, {"decision", "context"})
    assert post(app, ALL, {**WHO}).status == 400


@pytest.mark.parametrize(
    "wrong",
    [
        {"evaluations": [{"action": LOOK}, {}]},
        {"evaluations": [{"action": LOOK}, {"action": None}]},
        {"evaluations": [{"action": LOOK}] * 1001},
        {"evaluations": [{"action": LOOK}], "options": {"evaluations_semantic": "any"}},
        {"evaluations": {"action": LOOK}},
    ],
)
def test_a_request_that_does_not_read_decides_nothing(app: Any, log: Log, wrong: dict[str, Any]) -> None:
    answer = post(app, ALL, {**WHO, "context": {"conversation": "c"}, **wrong})
    assert (answer.status, answer.json["error"]["code"]) == (400, "BY703")
    assert calls_of(log) == 0


def test_nothing_is_permitted_that_the_log_does_not_hold(app: Any, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, count = Desk.decide, 0

    async def decide(desk: Desk, tenant: str, request: Any) -> Any:
        nonlocal count
        count += 1
        if count == 2:
            raise LogError("the disk is full")
        answer = await plain(desk, tenant, request)
        # It is on disk before the next is asked about, and before any is answered.
        assert calls_of(log) == (count if count < 2 else count - 1)
        return answer

    monkeypatch.setattr(Desk, "decide", decide)
    first, second, third = asked(app, LOOK, LOOK, LOOK)
    assert [first["decision"], second["decision"], third["decision"]] == [True, False, True]
    assert (second["context"]["error"]["status"], second["context"]["error"]["code"]) == (503, "BY701")


def test_keys_sizes_and_tenants_are_those_of_any_request(log: Log) -> None:
    ann, bob, person = new_key(), new_key(), new_key()
    keys = {hash_of(ann): Key("ann"), hash_of(bob): Key("bob"), hash_of(person): Key("ann", "approve")}
    app = Service(Desk(shop(), log), keys, largest=600)
    request = {**WHO, "context": {"conversation": "c"}, "evaluations": [{"action": LOOK}]}
    assert post(app, ALL, request).status == 401
    assert post(app, ALL, request, key=person).status == 403
    assert post(app, ALL, {**request, "more": "x" * 600}, key=ann).status == 413
    for key in (ann, bob):
        assert post(app, ALL, request, key=key).json["evaluations"][0]["context"]["id"] == "c/1"
    assert len(log.conversation("ann", "c")) == len(log.conversation("bob", "c")) > 0


def test_the_configuration_says_where_to_ask(app: Any, log: Log, tmp_path: Path) -> None:
    where = "/.well-known/authzen-configuration"
    assert get(app, where, headers=[]).status == 404
    answer = get(Service(Desk(shop(), log), {}, url="http://127.0.0.1:8300"), where, headers=[])
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json == {
        "policy_decision_point": "http://127.0.0.1:8300",
        "access_evaluation_endpoint": "http://127.0.0.1:8300/access/v1/evaluation",
        "access_evaluations_endpoint": "http://127.0.0.1:8300/access/v1/evaluations",
    }
    known = Service(Desk(shop(), log), {hash_of(new_key()): Key("ann")}, url="https://decisions.example.com/shop")
    told = get(known, where, only=[(b"host", b"inside:8300")]).json
    assert told["policy_decision_point"] == "https://decisions.example.com/shop"
    assert told["access_evaluations_endpoint"] == "https://decisions.example.com/shop/access/v1/evaluations"
    ran = bylaw(tmp_path, "serve", "--pack", "clinic", "--public-url", "decisions.example.com")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "`decisions.example.com` is not the address of a service" in ran.stderr


def test_an_answer_has_the_number_of_its_request(app: Any) -> None:
    number = [(b"x-request-id", b"bfe9eb29")]
    for body in ({**WHO, "action": LOOK}, {}, b"{"):
        answer = post(app, "/access/v1/evaluation", body, headers=number)
        assert answer.headers["x-request-id"] == "bfe9eb29"
    assert "x-request-id" not in post(app, "/access/v1/evaluation", {**WHO, "action": LOOK}).headers


def test_a_subject_does_not_go_on_in_the_conversation_of_another(app: Any) -> None:
    def refund_by(subject: dict[str, Any]) -> bool:
        asked = {**WHO, "subject": subject, "action": REFUND, "context": {"conversation": "h"}}
        return post(app, "/access/v1/evaluation", asked).json["decision"]

    look = {"id": "a", "type": "function", "function": {"name": "get_order", "arguments": '{"order_id": "7"}'}}
    shown = {"role": "tool", "tool_call_id": "a", "content": '{"order_id": "7", "returned": true}'}
    seen = [{"messages": [{"role": "assistant", "tool_calls": [look]}, shown]}]
    told = {"conversation": "h", "context": {"signed_in_as": "ann"}, "events": seen}
    assert post(app, "/v1/events", told).status == 200
    for stranger in ("user", "service", ""):
        assert refund_by({"type": stranger, "id": "mallory"}) is False
    assert refund_by({"type": "user", "id": "mallory", "properties": {"signed_in_as": "bob"}}) is False
    assert refund_by({"type": "user", "id": "mallory", "properties": {"signed_in_as": "ann"}}) is False
    assert refund_by({"type": "agent", "id": "shop-bot", "properties": {"signed_in_as": "mallory"}}) is False
    assert refund_by({"type": "user", "id": "ann"}) is True


@pytest.mark.parametrize(
    ("who", "more"),
    [
        ({"type": "agent", "id": "shop-bot"}, {}),
        ({"type": "agent", "id": " Shop-Bot "}, {}),
        ({"type": "agent", "id": "shop-bot"}, {"agent": "another"}),
        ({"type": "user", "id": "ann"}, {"agent": "shop-bot"}),
    ],
)
@pytest.mark.parametrize("begun_by", ["", "another"])
def test_a_stopped_agent_is_stopped_whoever_is_the_subject(
    app: Any, who: dict[str, str], more: dict[str, str], begun_by: str
) -> None:
    def refunds(conversation: str) -> tuple[bool, bool]:
        begun = {"conversation": conversation, "agent": begun_by, "context": {"signed_in_as": "ann"}}
        look = {**begun, "tool": "get_order", "arguments": {"order_id": "7"}, "id": "a"}
        assert post(app, "/v1/decide", look).json["decisions"][0]["allowed"]
        asked = {**WHO, "subject": who, "action": REFUND, "context": {"conversation": conversation, **more}}
        one = {**asked, "context": {**asked["context"], "events": [RETURNED]}}
        first = post(app, "/access/v1/evaluation", one).json["decision"]
        each = post(app, ALL, {**asked, "evaluations": [{"action": REFUND}]}).json["evaluations"]
        return first, each[0]["decision"]

    assert refunds("before")[0]
    post(app, "/v1/stops", {"what": "agent", "name": "shop-bot", "seconds": 600, "reason": "runs wild", "by": "ann"})
    assert refunds("after") == (False, False)


def test_a_stop_of_an_agent_stops_no_user_of_that_name(app: Any) -> None:
    post(app, "/v1/stops", {"what": "agent", "name": "ann", "seconds": 600, "reason": "runs wild", "by": "ann"})
    subject = {"type": "user", "id": "ann"}
    look = {**WHO, "subject": subject, "action": LOOK, "context": {"conversation": "c", "call_id": "a"}}
    assert post(app, "/access/v1/evaluation", look).json["decision"]
    asked = {**WHO, "subject": subject, "action": REFUND, "context": {"conversation": "c", "events": [RETURNED]}}
    assert post(app, "/access/v1/evaluation", asked).json["decision"]
