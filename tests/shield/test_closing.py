"""What a host hands over stays as it was, a turn is decided whole or not at all, and nothing said is lost."""

import logging
from pathlib import Path
from typing import Any

import pytest

from bylaw import BylawError, Conversation, Pack, Shield
from bylaw.shield.history import read_history
from bylaw.trace.event import Message, Result
from tests.engine.test_conversation import FILES
from tests.shield.scenes import looked_up, shop

ORDER = {"order_id": "7", "returned": True}
REFUND = {"order_id": "7"}
BY_MANAGER = {
    **FILES,
    "policy.md": FILES["policy.md"].rstrip() + " Only a manager.\n",
    "entities.yaml": FILES["entities.yaml"] + "context:\n  manager: boolean\n  desk: object\n",
    "guards/manager.py": 'def manager(call: refund, facts):\n    """Only a manager."""\n'
    '    return permit() if facts.context().manager else deny("not a manager")\n',
}


def events(log: Path, id: str) -> list[Any]:
    with Shield(shop(), log=log) as shield:
        assert shield.log is not None
        history = read_history(shield.log.conversation("default", id))
    assert history is not None
    return history.events


def test_what_was_said_after_the_last_decision_is_written_when_the_shield_closes(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    with Shield(shop(), log=log) as shield:
        session = shield.session("c")
        session.decide("get_order", REFUND)
        session.result(ORDER)
        shield.session("d").user("nobody holds on to this one")
    assert [type(event) for event in events(log, "c")][-1] is Result
    assert [event.text for event in events(log, "d") if isinstance(event, Message)] == ["nobody holds on to this one"]
    with pytest.raises(BylawError, match="the shield is closed"):
        session.user("too late")


def test_a_session_that_is_written_is_not_remembered(tmp_path: Path) -> None:
    with Shield(shop(), log=tmp_path / "log.db") as shield:
        session = shield.session("c")
        session.user("hello")
        assert list(shield.unwritten.values()) == [session]
        looked_up(session, "get_order", REFUND, ORDER)
        session.flush()
        assert shield.unwritten == {}


@pytest.mark.parametrize("has_log", [False, True])
def test_a_turn_with_one_id_twice_is_not_begun(has_log: bool, tmp_path: Path) -> None:
    with Shield(shop(), log=tmp_path / "log.db" if has_log else None) as shield:
        session = shield.session("c")
        looked_up(session, "get_order", REFUND, ORDER)
        before = session.trajectory().events
        with pytest.raises(BylawError, match="two calls in the turn have the id `a`"):
            session.decide_turn("x", [("refund", REFUND, "a"), ("get_order", REFUND, "a")])
        assert session.trajectory().events == before
        session.decide("get_order", REFUND, id="b")
        waiting = session.trajectory().events
        with pytest.raises(BylawError, match="call `b` is still waiting"):
            session.decide_turn("", [("refund", REFUND, "a"), ("get_order", REFUND, "b")])
        assert [event for event in session.trajectory().events if event not in waiting] == []


def test_a_context_is_kept_as_it_was_when_the_session_was_opened() -> None:
    pack = Pack.from_files(BY_MANAGER)
    context: dict[str, Any] = {"manager": False, "desk": {"open": True}}
    session, told = Shield(pack).session("c", context=context), Conversation(pack, context=context)
    context["manager"] = True
    context["desk"]["open"] = False
    looked_up(session, "get_order", REFUND, ORDER)
    assert session.decide("refund", REFUND).answer == "deny"
    told.call("get_order", REFUND)
    told.result(ORDER)
    assert told.call("refund", REFUND).outcome == "deny"


def test_a_name_of_a_context_that_the_pack_does_not_declare_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    shield = Shield(Pack.from_files(BY_MANAGER))
    with caplog.at_level(logging.WARNING, logger="bylaw"):
        for _ in range(2):
            shield.session("c", context={"manger": True}).user("hello")
    assert [record.getMessage() for record in caplog.records if "manger" in record.getMessage()] == [
        f"{shield.pack.name}: the context contains `manger`, but the pack does not declare it; did you mean `manager`?"
    ]
