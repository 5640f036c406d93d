"""Cards that show a fact, for hosts that send the whole history with each request."""

import json
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from bylaw.record import Log
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from tests.consent.test_card_facts import ADD, PLAN, pack
from tests.service.asgi import post

ASKED: list[dict[str, Any]] = [{"role": "user", "content": "Add 2 GB to plan P1."}]


def looked_up(name: str, price: str) -> list[dict[str, Any]]:
    call = {"id": name, "type": "function", "function": {"name": "get_plan", "arguments": '{"plan_id": "P1"}'}}
    record = json.dumps({"plan_id": "P1", "price_per_gb": price})
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": name, "content": record},
    ]


def decide(app: Any, messages: list[dict[str, Any]]) -> Any:
    context = {"signed_in_as": "C1"}
    answer = post(app, "/v1/decide", {"messages": messages, "tool": "add_data", "arguments": ADD, "context": context})
    assert answer.status == 200, answer.body
    return answer.json["decisions"][0]


def test_a_yes_is_found_again_for_the_price_that_was_shown_alone() -> None:
    with Log(":memory:") as log:
        app = Service(Desk(pack(consented="card", plan=PLAN.replace("fresh_for: 600, ", "")), log), {})
        assert decide(app, ASKED)["answer"] == "look_up"
        seen = [*ASKED, *looked_up("k1", "2.50")]
        card = decide(app, seen)["card"]
        assert "- total price: €5.00" in card["text"]
        assert post(app, "/v1/confirm", {"card": card["id"], "answer": "yes"}).status == 200
        dearer = decide(app, [*seen, *looked_up("k2", "3.50")])
        assert (dearer["allowed"], "- total price: €7.00" in dearer["card"]["text"]) == (False, True)
        assert decide(app, seen)["allowed"]
        assert not decide(app, seen)["allowed"]
