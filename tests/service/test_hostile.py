"""Tries of a hostile agent, host or tenant over HTTP that once got through, or nearly did."""

from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from bylaw.record import Log
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from bylaw.service.keys import Key, hash_of
from tests.service.asgi import get, post
from tests.shield.test_limits import FILES, pack

REFUND = {"tool": "refund", "arguments": {"order_id": "O1", "amount": "5.00"}}
NOTE = {"tool": "note", "arguments": {"text": "x"}}
PAID = [{"result": {"order_id": "O1", "paid": True}, "call": "l"}]
PER_AGENT = "tool: refund, most: 1, within: 1h, per: agent"
LOOK = {"tool": "get_order", "arguments": {"order_id": "O1"}, "id": "l"}


def decide(app: Any, **asked: Any) -> dict[str, Any]:
    answer = post(app, "/v1/decide", asked)
    assert answer.status == 200, answer.body
    return answer.json["decisions"][0]


def refund(app: Any, name: str, agent: str, *, first: str = "") -> dict[str, Any]:
    """A refund by an agent in a conversation that another one has begun."""
    decide(app, conversation=name, agent=first, **LOOK)
    return decide(app, conversation=name, agent=agent, events=PAID, **REFUND)


@pytest.mark.parametrize("first", ["", "triage"])
def test_a_stopped_agent_is_stopped_in_a_conversation_that_another_began(log: Log, first: str) -> None:
    app = Service(Desk(pack(PER_AGENT), log), {})
    stop = {"what": "agent", "name": "payer ", "seconds": 600, "reason": "pays twice", "by": "ann"}
    assert post(app, "/v1/stops", stop).status == 200
    stopped = refund(app, "c", " payer", first=first)
    assert (stopped["answer"], "agent `payer` is stopped" in stopped["feedback"]) == ("deny", True)
    assert refund(app, "d", "other", first=first)["allowed"]


def test_a_request_of_a_stopped_agent_that_is_sent_again_is_stopped(log: Log) -> None:
    app = Service(Desk(pack(PER_AGENT), log), {})
    decide(app, conversation="c", **LOOK)
    asked = {"conversation": "c", "agent": "payer", "request": "r1", "events": PAID, **REFUND}
    assert decide(app, **asked)["allowed"]
    stop = {"what": "agent", "name": "payer", "seconds": 600, "reason": "pays twice", "by": "ann"}
    assert post(app, "/v1/stops", stop).status == 200
    assert not decide(app, **asked)["allowed"]


def test_a_limit_counts_for_the_agent_that_asks_and_not_for_the_one_that_began(log: Log) -> None:
    app = Service(Desk(pack(PER_AGENT), log), {})
    assert refund(app, "c1", "payer")["allowed"]
    assert not refund(app, "c2", "payer", first="triage")["allowed"]
    assert refund(app, "c3", "triage")["allowed"]


@pytest.mark.parametrize("shown", ["Error: sent", {"error": "sent"}, {"status": "failed"}])
def test_a_text_that_begins_as_errors_do_gives_no_place_back(log: Log, shown: Any) -> None:
    app = Service(Desk(pack(PER_AGENT), log), {})
    assert refund(app, "c1", "payer")["allowed"]
    assert post(app, "/v1/events", {"conversation": "c1", "events": [{"result": shown}]}).status == 200
    assert not refund(app, "c2", "payer")["allowed"]


def test_a_refusal_that_the_pack_knows_gives_the_place_back(log: Log) -> None:
    tools = FILES["tools.yaml"].replace("changes: []}", "changes: [], refused: ^CLOSED}", 1)
    app = Service(Desk(pack(PER_AGENT, **{"tools.yaml": tools}), log), {})
    assert refund(app, "c1", "payer")["allowed"]
    assert post(app, "/v1/events", {"conversation": "c1", "events": [{"result": "CLOSED until nine"}]}).status == 200
    assert refund(app, "c2", "payer")["allowed"]


@pytest.mark.parametrize("time", [1e300, -1e300, 1.7e12 * 1000])
def test_a_time_that_is_none_is_refused(app: Any, time: float) -> None:
    told = post(app, "/v1/events", {"conversation": "c", "events": [{"user": "hi", "time": time}]})
    assert (told.status, "is not a time in seconds since 1970" in told.json["error"]["message"]) == (422, True)


def test_of_two_keys_in_one_request_neither_counts(log: Log) -> None:
    keys = {hash_of("one"): Key("t"), hash_of("two"): Key("u")}
    app = Service(Desk(pack(), log), keys)
    asked = {"conversation": "c", **NOTE}
    second = [(b"Authorization", b"Bearer two")]
    assert post(app, "/v1/decide", asked, key="one").status == 200
    assert post(app, "/v1/decide", asked, key="one", headers=second).status == 401
    assert get(app, "/v1/approvals", key="one", headers=second).status == 401
    assert get(app, "/v1/stops", key="one", headers=second).status == 401


def test_the_customer_1_is_not_the_customer_true(log: Log) -> None:
    app = Service(Desk(pack(), log), {})
    names = [decide(app, conversation="c", context={"signed_in_as": each}, **NOTE) for each in (1, True, 1)]
    assert [each["conversation"] == "c" for each in names] == [True, False, True]


def test_a_yes_under_one_pack_is_none_under_the_next_for_a_host_that_keeps_the_history(log: Log) -> None:
    asked = {"messages": [{"role": "user", "content": "hi"}], "context": {"signed_in_as": "C1"}, **NOTE}
    waits = decide(Service(Desk(pack(), log), {}), **asked)["approval"]
    app = Service(Desk(pack("tool: refund, most: 4, within: 1h"), log), {})
    assert post(app, "/v1/approvals", {"id": waits, "answer": "approve", "by": "ann"}).status == 200
    other = decide(app, **asked)
    assert (other["allowed"], other["approval"] != waits) == (False, True)
    assert decide(Service(Desk(pack(), log), {}), **asked)["allowed"]


def test_the_name_of_an_agent_is_one_that_can_be_stopped(app: Any) -> None:
    asked = {"conversation": "c", "tool": "refund", "arguments": {"order_id": "7"}, "agent": "x" * 301}
    assert post(app, "/v1/decide", asked).status == 400
    assert post(app, "/v1/events", {"conversation": "c", "events": [], "agent": "x" * 301}).status == 400


@pytest.mark.parametrize("event", [{"user": "No.", "agent": "Done."}, {"user": "No.", "messages": []}, {"time": 1.0}])
def test_an_event_says_one_thing(app: Any, event: dict[str, Any]) -> None:
    told = post(app, "/v1/events", {"conversation": "c", "events": [event]})
    assert (told.status, "exactly one of" in told.json["error"]["message"]) == (400, True)
