"""Over HTTP, where the pack lets another principal go on: one conversation, and nothing agreed to crosses."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from bylaw.pack import load_pack
from bylaw.record import Log
from bylaw.record.verify import verify
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from tests.integrations.rental import CUSTOMER, FILES, desk
from tests.service.asgi import post
from tests.service.test_speaking import AGREED, CALL, OTHER, decide, look_up


@pytest.fixture
def app(tmp_path: Path, log: Log) -> Any:
    return service(tmp_path, log)


def service(folder: Path, log: Log) -> Any:
    desk(folder)
    (folder / "desk" / "pack.yaml").write_text(f"{FILES['pack.yaml']}shield: {{handover: true}}\n")
    return Service(Desk(load_pack(folder / "desk"), log), {})


def test_the_second_goes_on_with_what_was_looked_up_for_the_first(app: Any, log: Log) -> None:
    assert look_up(app, OTHER, "a") == "c"
    assert not decide(app, OTHER, **CALL, events=AGREED)["allowed"]
    handed = decide(app, CUSTOMER, **CALL)
    assert (handed["conversation"], handed["answer"], handed["allowed"]) == ("c", "ask", False)
    assert decide(app, CUSTOMER, **CALL, events=AGREED)["allowed"]
    assert verify(log.journal.store, "default").faults == ()


def test_a_yes_that_comes_with_another_name_is_no_yes(app: Any) -> None:
    look_up(app, OTHER, "a")
    decide(app, OTHER, tool="get_rental", arguments={"rental_id": "R1"}, events=AGREED[:2])
    assert not decide(app, CUSTOMER, **CALL, events=AGREED[2:])["allowed"]


def test_a_card_put_to_the_first_cannot_be_confirmed_by_the_second(app: Any) -> None:
    look_up(app, CUSTOMER, "a")
    card = decide(app, CUSTOMER, **CALL, events=AGREED[:1])["card"]["id"]
    decide(app, OTHER, tool="get_rental", arguments={"rental_id": "R1"})
    for more, why in (({}, "does not name the current user"), ({"context": OTHER}, "has no card")):
        refused = post(app, "/v1/confirm", {"conversation": "c", "card": card, "answer": "yes", **more})
        assert (refused.status, why in refused.body.decode()) == (422, True)
    assert not decide(app, CUSTOMER, **CALL)["allowed"]


def test_after_a_handover_the_cards_own_user_confirms_it_by_name(app: Any) -> None:
    decide(app, OTHER, tool="get_rental", arguments={"rental_id": "R1"}, id="z")
    look_up(app, CUSTOMER, "a")
    card = decide(app, CUSTOMER, **CALL, events=AGREED[:1])["card"]["id"]
    confirmed = {"conversation": "c", "card": card, "answer": "yes"}
    assert post(app, "/v1/confirm", confirmed).status == 422
    assert post(app, "/v1/confirm", {**confirmed, "context": CUSTOMER}).status == 200
    assert decide(app, CUSTOMER, **CALL)["allowed"]


def test_a_request_that_says_nobodys_name_is_refused_from_then_on(app: Any) -> None:
    look_up(app, OTHER, "a")
    look_up(app, CUSTOMER, "b")
    for more in ({**CALL, "events": AGREED}, {"context": {"locale": "de"}, **CALL}):
        refused = post(app, "/v1/decide", {"conversation": "c", **more})
        assert (refused.status, "does not name the current user" in refused.body.decode()) == (422, True)
    refused = post(app, "/v1/events", {"conversation": "c", "events": AGREED})
    assert refused.status == 422


def test_another_worker_knows_of_it(app: Any, tmp_path: Path) -> None:
    look_up(app, OTHER, "a")
    decide(app, OTHER, **CALL, events=AGREED)
    with Log(str(tmp_path / "decisions.db")) as same:
        second = service(tmp_path, same)
        assert not decide(second, CUSTOMER, **CALL)["allowed"]
        assert decide(second, CUSTOMER, **CALL, events=AGREED)["allowed"]
    assert "another customer's rental" in decide(app, OTHER, **CALL, events=AGREED)["feedback"]
