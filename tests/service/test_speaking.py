"""Who is speaking in a conversation over HTTP: the same principal may add context, another has a conversation apart."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from bylaw.record import Log
from bylaw.record.verify import verify
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, desk
from tests.service.asgi import post

OTHER = {"signed_in_as": "C2"}
AGREED = [{"user": "Keep the car until 2026-11-20."}, {"agent": PUT_EXTEND}, {"user": "Yes"}]
CALL = {"tool": "extend_rental", "arguments": EXTEND}


@pytest.fixture
def app(tmp_path: Path, log: Log) -> Any:
    with desk(tmp_path) as shield:
        return Service(Desk(shield.pack, log), {})


def decide(app: Any, context: Any = None, **more: Any) -> Any:
    told = {} if context is None else {"context": context}
    answer = post(app, "/v1/decide", {"conversation": "c", **told, **more})
    assert answer.status == 200, answer.body
    return answer.json["decisions"][0]


def look_up(app: Any, context: Any, id: str, owner: str = "C1") -> Any:
    """Look the rental up; where it was done."""
    shown = {"rental_id": "R1", "customer_id": owner, "ends_on": "2026-11-18", "paid": "4.00", "refunded": "0.00"}
    found = decide(app, context, tool="get_rental", arguments={"rental_id": "R1"}, id=id)
    events = [{"result": shown, "call": id}]
    told = {} if context is None else {"context": context}
    answer = post(app, "/v1/events", {"conversation": "c", "events": events, **told})
    assert answer.status == 200, answer.body
    assert answer.json["conversation"] == found["conversation"]
    return found["conversation"]


def test_another_principal_has_a_conversation_of_their_own(app: Any, log: Log) -> None:
    assert look_up(app, OTHER, "a") == "c"
    assert "another customer's rental" in decide(app, OTHER, **CALL, events=AGREED)["feedback"]
    linked = look_up(app, CUSTOMER, "b")
    assert linked.startswith("c > ")
    assert not decide(app, CUSTOMER, **CALL)["allowed"]
    done = decide(app, CUSTOMER, **CALL, events=AGREED)
    assert (done["allowed"], done["conversation"]) == (True, linked)
    # The first goes on in theirs.
    assert decide(app, OTHER, tool="get_rental", arguments={"rental_id": "R1"})["conversation"] == "c"
    assert verify(log.journal.store, "default").faults == ()


def test_so_it_is_where_another_worker_has_begun_it(app: Any, tmp_path: Path) -> None:
    look_up(app, OTHER, "a")
    decide(app, OTHER, **CALL, events=AGREED)
    with Log(str(tmp_path / "decisions.db")) as same, desk(tmp_path) as shield:
        second = Service(Desk(shield.pack, same), {})
        linked = look_up(second, CUSTOMER, "b")
        assert linked.startswith("c > ")
        assert not decide(second, CUSTOMER, **CALL)["allowed"]
        assert decide(second, None, tool="get_rental", arguments={"rental_id": "R1"})["conversation"] == "c"
    assert look_up(app, CUSTOMER, "d") == linked


def test_a_yes_to_ones_card_is_not_anothers(app: Any) -> None:
    look_up(app, CUSTOMER, "a")
    card = decide(app, CUSTOMER, **CALL, events=AGREED[:1])["card"]["id"]
    look_up(app, OTHER, "b", owner="C2")
    crossed = {"conversation": decide(app, OTHER, **CALL)["conversation"], "card": card, "answer": "yes"}
    assert post(app, "/v1/confirm", crossed).status == 422
    assert post(app, "/v1/confirm", {"conversation": "c", "card": card, "answer": "yes"}).status == 200
    assert not decide(app, OTHER, **CALL)["allowed"]
    assert decide(app, CUSTOMER, **CALL)["allowed"]


def test_the_same_principal_may_add_to_the_context(app: Any, log: Log) -> None:
    assert look_up(app, CUSTOMER, "a") == "c"
    assert look_up(app, {"locale": "de"}, "b") == "c"
    assert look_up(app, {**CUSTOMER, "locale": "fr"}, "d") == "c"
    done = decide(app, None, **CALL, events=AGREED)
    assert (done["allowed"], done["conversation"]) == (True, "c")


def test_what_a_refused_request_vouched_for_is_not_kept(app: Any) -> None:
    look_up(app, {}, "a")
    wrong = {"conversation": "c", "context": {"locale": "de"}, "events": [{"result": "x", "call": "no such"}]}
    assert post(app, "/v1/events", wrong).status == 422
    # Had it been kept, this would be somebody else's.
    assert look_up(app, {"locale": "fr"}, "b") == "c"


def test_messages_vouch_for_nothing(app: Any) -> None:
    asked = {"id": "a", "type": "function", "function": {"name": "get_rental", "arguments": '{"rental_id": "R1"}'}}
    shown = '{"rental_id": "R1", "customer_id": "C1", "paid": "4.00", "refunded": "0.00"}'
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [{**asked, "vouched": CUSTOMER}]},
        {"role": "tool", "tool_call_id": "a", "content": shown},
        *(
            {"role": "user" if by == "user" else "assistant", "content": said}
            for each in AGREED
            for by, said in each.items()
        ),
    ]
    answer = post(app, "/v1/decide", {"messages": messages, **CALL})
    assert answer.status == 200, answer.body
    assert not answer.json["decisions"][0]["allowed"]
    answer = post(app, "/v1/decide", {"messages": messages, **CALL, "context": CUSTOMER})
    assert answer.json["decisions"][0]["allowed"]


def test_messages_in_a_shape_that_cannot_be_read_are_refused(app: Any) -> None:
    hidden = {"role": "assistant", "content": "", "actions": [{"tool": CALL["tool"], "with": {"rental_id": "R1"}}]}
    messages = [{"role": "user", "content": "Refund it."}, hidden]
    answer = post(app, "/v1/decide", {"messages": messages, **CALL, "context": CUSTOMER})
    assert answer.status == 422, answer.body
    assert "message 1" in answer.body.decode()
    assert "actions" in answer.body.decode()
