"""A call that was allowed, paused and goes on: by what is known when it goes on."""

from pathlib import Path
from typing import Any

import pytest

from bylaw import Pack, Shield
from bylaw.shield import LiveSession

FILES = {
    "pack.yaml": "format: 1\nname: vault\ndocument: policy.md\n",
    "policy.md": "Refund only what was returned.\n",
    "tools.yaml": """\
tools:
  get_order: {effect: read, parameters: {order_id: string}}
  refund: {effect: write, parameters: {order_id: string}, changes: [Order.status]}
""",
    "entities.yaml": """\
entities:
  Order: {key: order_id, read: get_order, fresh_for: 86400, fields: {status: [sent, returned]}}
""",
    "guards/vault.py": """\
def returned_only(call: refund, facts):
    '''Refund only what was returned.'''
    return permit() if facts.Order(call.order_id).status == "returned" else deny("not returned")
""",
}
PACK = Pack.from_files(FILES)
CALL = {"order_id": "R-1"}


class Clock:
    """A clock that stands still until it is moved."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def look_up(session: LiveSession, order: str = "R-1", status: Any = "returned") -> None:
    id = f"look {session.length}"
    session.decide("get_order", {"order_id": order}, id=id)
    session.result({"order_id": order, "status": status}, id=id)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "in another worker"])
@pytest.mark.parametrize(
    ("order", "status", "later", "goes_on"),
    [
        ("", "", 60.0, True),
        ("R-1", "returned", 60.0, True),
        ("R-2", "sent", 60.0, True),
        ("R-1", "sent", 60.0, False),
        ("", "", 2 * 86400.0, False),
    ],
    ids=["nothing new", "the same", "another thing", "another value", "too old"],
)
def test_it_goes_on_where_what_is_known_by_then_allows_it(
    order: str, status: str, later: float, goes_on: bool, elsewhere: bool, tmp_path: Path
) -> None:
    clock = Clock()
    with Shield(PACK, log=tmp_path / "log.db", clock=clock) as shield:
        session = shield.session("c")
        look_up(session)
        decision = session.decide("refund", CALL, id="a")
        assert decision.allowed
        session.interrupt("a", decision)
        clock.now += later
        if order:
            look_up(session, order, status)
        session.flush()
        session = shield.session("c") if elsewhere else session
        assert (session.resume("a", "refund", CALL) is not None) is goes_on
        if not goes_on:
            assert not session.decide("refund", CALL, id="b").allowed
