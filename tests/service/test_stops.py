"""Stops over HTTP: a person's key stops and lifts, an agent's does not, and decisions obey."""

from pathlib import Path
from typing import Any

import pytest

from bylaw.record import Log
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from bylaw.service.keys import key_line, new_key, read_keys
from tests.service.asgi import get, post
from tests.shield.scenes import shop

REFUND = {"conversation": "c", "tool": "refund", "arguments": {"order_id": "7"}, "context": {"signed_in_as": "C1"}}
STOP = {"what": "tool", "name": "refund", "seconds": 600, "reason": "paid twice"}


def decided(app: Any, key: str = "") -> dict[str, Any]:
    return post(app, "/v1/decide", REFUND, key=key).json["decisions"][0]


def test_a_persons_key_stops_and_lifts_and_the_log_says_whose(log: Log, tmp_path: Path) -> None:
    agent, lena, viewer, other = new_key(), new_key(), new_key(), new_key()
    lines = [key_line("t", agent), key_line("t", lena, "approve", "lena"), key_line("t", viewer, "view", "vi")]
    (tmp_path / "keys").write_text("\n".join([*lines, key_line("u", other)]))
    app = Service(Desk(shop(), log), read_keys(tmp_path / "keys"))
    assert "stopped" not in decided(app, agent)["feedback"]
    for key in (agent, viewer):
        assert post(app, "/v1/stops", STOP, key=key).status == 403
    assert post(app, "/v1/stops", {**STOP, "by": "the boss"}, key=lena).status == 422
    made = post(app, "/v1/stops", STOP, key=lena)
    assert (made.status, made.json["stop"]["by"]) == (200, "lena")
    stopped = decided(app, agent)
    assert (stopped["answer"], stopped["allowed"]) == ("deny", False)
    assert "tool `refund` is stopped until" in stopped["feedback"]
    assert "paid twice" in stopped["feedback"]
    assert "stopped" not in decided(app, other)["feedback"]
    listed = get(app, "/v1/stops", key=agent).json["stops"]
    assert [each["stop"]["id"] for each in listed] == [made.json["stop"]["id"]]
    assert get(app, "/v1/stops", key=other).json["stops"] == []
    lift = {"lift": made.json["stop"]["id"], "reason": "mended"}
    assert post(app, "/v1/stops", lift, key=agent).status == 403
    assert post(app, "/v1/stops", lift, key=lena).json["lift"]["by"] == "lena"
    assert post(app, "/v1/stops", lift, key=lena).status == 422
    assert get(app, "/v1/stops", key=agent).json["stops"] == []
    assert len(get(app, "/v1/stops?all=1", key=agent).json["stops"]) == 1
    assert "stopped" not in decided(app, agent)["feedback"]


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({}, 400),
        ({**STOP, "lift": "stop-1"}, 400),
        ({**STOP, "name": "refnd"}, 422),
        ({**STOP, "seconds": 0}, 422),
        ({**STOP, "seconds": 1e300}, 422),
        ({**STOP, "reason": ""}, 422),
        ({**STOP, "what": "world"}, 400),
        ({**STOP, "answer": "allow"}, 400),
        ({**STOP, "what": "policy", "name": "nowhere"}, 422),
        ({"lift": "stop-1"}, 422),
    ],
)
def test_what_is_no_stop_is_refused(app: Any, given: dict[str, Any], status: int) -> None:
    assert post(app, "/v1/stops", {"by": "ann", **given}).status == status
    assert get(app, "/v1/stops?all=1").json["stops"] == []


def test_a_request_that_is_sent_again_is_held_to_a_stop(app: Any) -> None:
    look = {"conversation": "c", "tool": "get_order", "arguments": {"order_id": "7"}, "request": "r1"}
    assert post(app, "/v1/decide", look).json["decisions"][0]["allowed"]
    post(app, "/v1/stops", {"what": "all", "seconds": 600, "reason": "why", "by": "ann"})
    # A look-up changes nothing.
    assert post(app, "/v1/decide", look).json["decisions"][0]["allowed"]
