"""What a host says is of its type or refused at once, and it is always clear which turn and which call is meant."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bylaw import Shield
from bylaw.errors import BylawError, UsageError
from bylaw.shield import LiveSession, Postures
from bylaw.shield.history import read_history
from tests.shield.scenes import shop

ORDER = {"order_id": "7"}
SHOWN = {"order_id": "7", "returned": True}
WRONG: dict[str, Callable[[LiveSession], object]] = {
    "a time must be in seconds": lambda s: s.user("hi", time="2026-01-01"),  # type: ignore[arg-type]
    "a time must be in seconds since 1970, not `bool`": lambda s: s.agent("hi", time=True),
    "is not a time in seconds": lambda s: s.user("hi", time=float("nan")),
    "milliseconds": lambda s: s.decide("refund", ORDER, time=1_700_000_000_000_000.0),
    "the user's message must be a string, not `bytes`": lambda s: s.user(b"x"),  # type: ignore[arg-type]
    "the user's message must be a string, not `NoneType`": lambda s: s.user(None),  # type: ignore[arg-type]
    "the agent's message must be a string": lambda s: s.agent(None),  # type: ignore[arg-type]
    "not `str`; use": lambda s: s.result(SHOWN, time="x"),  # type: ignore[arg-type]
    "`error` must be true or false": lambda s: s.result(SHOWN, error="yes"),  # type: ignore[arg-type]
    "`captured` must be true or false": lambda s: s.result(SHOWN, captured="no"),  # type: ignore[arg-type]
    "the id of a call must be a string": lambda s: s.decide("refund", ORDER, id=5),  # type: ignore[arg-type]
    "id of a call must be a string, not `int`": lambda s: s.result(SHOWN, id=5),  # type: ignore[arg-type]
    "the tool name is empty": lambda s: s.decide("", {}),
    "the tool name must be a string, not `NoneType`": lambda s: s.decide(None, {}),  # type: ignore[arg-type]
    "agent's message must be a string, not `NoneType`": lambda s: s.decide_turn(None, [("refund", ORDER)]),  # type: ignore[arg-type]
    "a call in a turn must be": lambda s: s.decide_turn("x", [("refund",)]),  # type: ignore[list-item]
    "calls must be a list": lambda s: s.decide_turn("x", "refund"),  # type: ignore[arg-type]
    "messages must be a list": lambda s: s.messages(None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("why", WRONG)
def test_what_is_of_another_type_is_refused_and_leaves_nothing_behind(why: str, tmp_path: Path) -> None:
    where = str(tmp_path / "log.db")
    with Shield(shop(), log=where) as shield, shield.session("c") as session:
        assert session.decide("get_order", ORDER).allowed
        with pytest.raises(UsageError, match=why):
            WRONG[why](session)
        session.result(SHOWN)
        assert session.decide("refund", ORDER).allowed
    with Shield(shop(), log=where) as shield:
        assert shield.log is not None
        history = read_history(shield.log.conversation("default", "c"))
    assert history is not None
    assert len(history.events) == 3


@pytest.mark.parametrize("given", [{"context": [1]}, {"agent": 5}])
def test_a_session_is_opened_with_what_it_takes(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Shield(shop()).session(**given)


def test_no_turn_begins_inside_a_turn() -> None:
    session = Shield(shop()).session()
    with session.turn("Let me see."):
        with pytest.raises(UsageError, match="so a new turn cannot begin"):
            session.decide_turn("And this.", [("get_order", ORDER)])
        with pytest.raises(UsageError, match="so a new turn cannot begin"):
            asyncio.run(session.decide_turn_async("And this.", [("get_order", ORDER)]))
        assert session.decide("get_order", ORDER).allowed
        session.result(SHOWN)
        assert session.decide("refund", ORDER).answer == "look_up", "it is still one turn"
    assert session.decide("refund", ORDER).answer == "allow"


def test_a_result_without_an_id_is_not_taken_for_one_of_several_calls() -> None:
    session = Shield(shop()).session()
    with session.turn():
        assert session.decide("get_order", {"order_id": "7"}, id="a").allowed
        assert session.decide("get_order", {"order_id": "8"}, id="b").allowed
        with pytest.raises(UsageError, match="several calls of `get_order` are waiting"):
            session.result({"returned": True})
        session.result({"returned": True}, id="b")
        session.result({"returned": False}, id="a")
    assert session.decide("refund", {"order_id": "7"}).answer == "deny"
    assert session.decide("refund", {"order_id": "8"}).answer == "allow"


def test_calls_that_are_told_apart_need_no_id() -> None:
    session = Shield(shop()).session()
    for _ in range(2):
        assert session.decide("get_order", ORDER).allowed
    session.result(SHOWN)
    session.result(SHOWN)
    assert session.decide("refund", ORDER).answer == "allow"


def test_postures_may_be_a_mapping_as_pack_yaml_has_it() -> None:
    shield = Shield(shop(), postures={"posture": "shadow", "policies": {"returned-first": "advise"}})
    assert shield.postures == Postures("shadow", policies={"returned-first": "advise"})


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (Postures(policies={"returned-frist": "shadow"}), "policy `returned-frist`"),
        ({"tools": {"refnd": "shadow"}}, "tool `refnd`"),
        ({"posture": "firm"}, "`postures`: "),
        ({"postures": "shadow"}, "unknown field"),
        (["shadow"], "`postures`: "),
    ],
)
def test_postures_of_what_the_pack_does_not_have_are_refused(given: Any, why: str) -> None:
    with pytest.raises(BylawError, match=why) as raised:
        Shield(shop(), postures=given)
    assert raised.value.code == "BY405"


@pytest.mark.parametrize("name", ["bylaw/stops", "bylaw/removed/one"])
def test_a_conversation_has_no_name_that_the_log_uses_for_itself(name: str, tmp_path: Path) -> None:
    with Shield(shop(), log=tmp_path / "log.db") as shield, pytest.raises(UsageError, match="bylaw/"):
        shield.session(name)
