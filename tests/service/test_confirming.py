"""Confirmations over HTTP: the user's answer to a card, reported by the host, in the log, and nobody else's."""

import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from bylaw.pack import Pack
from bylaw.record import Log
from bylaw.record.verify import verify
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from bylaw.service.keys import Key, hash_of
from bylaw.shield.history import read_history
from bylaw.trace.event import Confirmation, Message
from tests.service.asgi import post
from tests.shield.cards import TEXT, WANTED, write

CALL = {"tool": "transfer", "arguments": WANTED}


@pytest.fixture(name="bank")
def written(tmp_path: Path) -> Pack:
    (tmp_path / "bank").mkdir()
    return write(tmp_path / "bank")


def decide(app: Any, **more: Any) -> Any:
    answer = post(app, "/v1/decide", {"conversation": "c", **CALL, **more})
    assert answer.status == 200, answer.body
    return answer.json["decisions"][0]


def confirm(app: Any, card: str, answer: str = "yes", **more: Any) -> Any:
    return post(app, "/v1/confirm", {"conversation": "c", "card": card, "answer": answer, **more})


def test_the_users_answer_lets_the_call_run_once(bank: Pack, log: Log) -> None:
    one, two = Service(Desk(bank, log), {}), Service(Desk(bank, log), {})
    asked = decide(one, events=[{"user": "Send 250 to AC-22."}])
    assert (asked["answer"], asked["allowed"], asked["card"]["text"]) == ("ask", False, TEXT)
    card = asked["card"]["id"]
    told = confirm(two, card, by="button")
    assert (told.status, told.json) == (200, {"conversation": "c", "card": card, "answer": "yes"})
    assert confirm(one, card).status == 200
    assert decide(one)["allowed"]
    for wrong, why in ((card, "was used"), ("c/77", "has no card")):
        refused = confirm(one, wrong)
        assert (refused.status, why in refused.json["error"]["message"]) == (422, True)
    assert not decide(two)["allowed"]
    history = read_history(log.conversation("default", "c"))
    assert history is not None
    said = [each.confirmation for each in history.events if isinstance(each, Message)]
    assert [each for each in said if each is not None] == [Confirmation(card, True, "button")]
    assert verify(log.journal.store, "default").faults == ()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "wrote something else"),
        ({"after": 3}, "wrote something else"),
        ({"at": "later"}, "wrote something else"),
        ({"at": "in the future", "after": 3}, "in the future"),
        ({"at": "later", "after": 9}, "has only 3 messages"),
        ({"at": "later", "after": 3}, ""),
    ],
)
def test_after_other_words_a_yes_needs_its_time_and_the_last_message_seen(
    bank: Pack, log: Log, given: dict[str, Any], why: str
) -> None:
    app = Service(Desk(bank, log), {})
    card = decide(app, events=[{"user": "Send 250 to AC-22.", "time": time.time() - 60}])["card"]["id"]
    said = [{"user": "What is the fee?", "time": time.time() - 30}, {"agent": "There is none."}]
    assert post(app, "/v1/events", {"conversation": "c", "events": said}).json["position"] == 3
    times = {"later": time.time(), "in the future": time.time() + 600}
    told = confirm(app, card, **{name: times.get(each, each) for name, each in given.items()})
    assert (told.status, why in str(told.json)) == (422 if why else 200, True), told.json
    assert decide(app)["allowed"] is not bool(why)


def test_a_request_that_is_sent_again_is_taken_once(bank: Pack, log: Log) -> None:
    app = Service(Desk(bank, log), {})
    card = decide(app, events=[{"user": "Send 250 to AC-22."}])["card"]["id"]
    assert confirm(app, card, request="r").status == 200
    assert decide(app)["allowed"]
    before = len(log.conversation("default", "c"))
    assert confirm(app, card, request="r").status == 200
    assert confirm(app, card, "no", request="r").status == 422
    assert len(log.conversation("default", "c")) == before


def test_no_approver_confirms_and_nobody_confirms_for_another_tenant(bank: Pack, log: Log) -> None:
    keys = {hash_of("agent"): Key("ann"), hash_of("person"): Key("ann", "approve"), hash_of("other"): Key("bob")}
    app = Service(Desk(bank, log), keys)
    body = {"conversation": "c", **CALL, "events": [{"user": "Send 250 to AC-22."}]}
    card = post(app, "/v1/decide", body, key="agent").json["decisions"][0]["card"]["id"]
    yes = {"conversation": "c", "card": card, "answer": "yes"}
    assert [post(app, "/v1/confirm", yes, key=key).status for key in ("person", "other", "agent")] == [403, 422, 200]
    assert log.conversation("bob", "c") == []


@pytest.mark.parametrize(
    "wrong", [{"answer": "maybe"}, {"card": ""}, {"card": "c", "conversation": ""}, {"answer": True}, {"extra": 1}]
)
def test_a_wrong_request_is_refused(bank: Pack, log: Log, wrong: dict[str, Any]) -> None:
    app = Service(Desk(bank, log), {})
    card = decide(app, events=[{"user": "Send 250 to AC-22."}])["card"]["id"]
    body = {"conversation": "c", "card": card, "answer": "yes"} | wrong
    assert post(app, "/v1/confirm", body).status == 400
    assert not decide(app)["allowed"]


def test_an_answer_comes_with_the_context_of_whoever_gives_it(bank: Pack, log: Log) -> None:
    """A host that sends the same context with every request is not refused here; another principal's yes is."""
    app = Service(Desk(bank, log), {})
    ann, bob = {"signed_in_as": "C1"}, {"signed_in_as": "C2"}
    card = decide(app, events=[{"user": "Send 250 to AC-22."}], context=ann, agent="bot")["card"]["id"]
    other = confirm(app, card, context=bob)
    assert (other.status, "another principal" in other.json["error"]["message"]) == (422, True)
    assert not decide(app, context=ann)["allowed"]
    assert confirm(app, card, context=ann, agent="bot").status == 200
    assert decide(app, context=ann)["allowed"]
    # In the same conversation, another principal has one of their own.
    linked = decide(app, events=[{"user": "Send 250 to AC-22."}], context=bob)["card"]["id"]
    assert linked.rpartition("/")[0] != "c"
    assert confirm(app, linked, context=bob).status == 200
    assert decide(app, context=bob)["allowed"]


def test_a_yes_was_not_said_to_a_card_that_another_worker_has_shown_meanwhile(bank: Pack, log: Log) -> None:
    one, two = Service(Desk(bank, log), {}), Service(Desk(bank, log), {})
    asked = decide(one, events=[{"user": "Send 250 to AC-22."}])
    assert decide(two)["card"] == asked["card"]
    assert post(one, "/v1/events", {"conversation": "c", "events": [{"agent": TEXT}]}).status == 200
    # This worker does not know yet what the other one has told; nor does whoever said yes.
    assert decide(two, events=[{"user": "Yes."}])["answer"] == "ask"


def test_a_worker_that_has_just_begun_hears_a_yes(bank: Pack, log: Log) -> None:
    one = Service(Desk(bank, log), {})
    decide(one, events=[{"user": "Send 250 to AC-22."}])
    assert post(one, "/v1/events", {"conversation": "c", "events": [{"agent": TEXT}]}).status == 200
    assert decide(Service(Desk(bank, log), {}), events=[{"user": "Yes."}])["allowed"]


def test_a_yes_that_two_workers_take_in_at_once_is_one_yes(bank: Pack, log: Log) -> None:
    one, two = Service(Desk(bank, log), {}), Service(Desk(bank, log), {})
    decide(one, events=[{"user": "Send 250 to AC-22."}])
    assert post(one, "/v1/events", {"conversation": "c", "events": [{"agent": TEXT}]}).status == 200
    decide(two)
    yes = [{"user": "Yes."}]
    assert post(one, "/v1/events", {"conversation": "c", "events": yes}).status == 200
    assert decide(two, events=yes)["allowed"]
    history = read_history(log.conversation("default", "c"))
    assert history is not None
    assert [each.text for each in history.events if isinstance(each, Message)] == ["Send 250 to AC-22.", TEXT, "Yes."]
    assert not decide(one)["allowed"]
