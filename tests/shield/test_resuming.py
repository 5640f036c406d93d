"""A call that was allowed, paused and goes on: by what is known when it goes on."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bylaw import Pack, Shield
from bylaw.policy.tool import Postures
from bylaw.record import Log
from bylaw.shield import LiveSession
from bylaw.shield.history import Named

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


PIN = {
    "pack.yaml": "format: 1\nname: pin\ndocument: policy.md\n",
    "policy.md": "After a wrong PIN nothing is changed any more.\nPay only what the customer has confirmed.\n"
    "Only staff pay.\n",
    "tools.yaml": """\
tools:
  check_pin: {effect: read, parameters: {pin: string}}
  pay: {effect: write, put_as: "pay {to}", parameters: {to: string}, changes: []}
""",
    "entities.yaml": "context: {signed_in_as: string, role: string}\n",
    "policies.yaml": """\
policies:
  - {id: refused-login, kind: rule, spans: [After a wrong PIN nothing is changed any more.]}
  - {id: confirmed, kind: rule, spans: [Pay only what the customer has confirmed.]}
""",
    "rules.yaml": """\
predicates:
  change: {effect: write}
  denied: {returned: "wrong (pin|password)"}
  agreed: {consented: told, lifetime: 600}
rules:
  - {id: stop, policy: refused-login, formula: ALWAYS (ONCE denied IMPLIES NOT change), hard: true}
  - {id: confirm, policy: confirmed, formula: ALWAYS (change IMPLIES agreed)}
""",
    "guards/pin.py": """\
def staff_only(call: pay, facts):
    '''Only staff pay.'''
    return permit() if facts.context.role == "staff" else deny("not staff")
""",
}
PAY = {"to": "X-1"}


def wrong_pin(shield: Shield, session: LiveSession, clock: Clock) -> None:
    check(session, "wrong pin")


def right_pin(shield: Shield, session: LiveSession, clock: Clock) -> None:
    check(session, "right")


def wrong_pin_told(shield: Shield, session: LiveSession, clock: Clock) -> None:
    call = {"id": "p", "type": "function", "function": {"name": "check_pin", "arguments": '{"pin": "0"}'}}
    session.messages([{"role": "assistant", "tool_calls": [call]}])
    session.result("wrong password", id="p")


def check(session: LiveSession, said: str) -> None:
    session.decide("check_pin", {"pin": "0"}, id="p")
    session.result(said, id="p")


def nothing(shield: Shield, session: LiveSession, clock: Clock) -> None:
    clock.now += 60


def too_late(shield: Shield, session: LiveSession, clock: Clock) -> None:
    clock.now += 601


def another_role(shield: Shield, session: LiveSession, clock: Clock) -> None:
    session.vouch({"signed_in_as": "ann", "role": "guest"})


def doubted(shield: Shield, session: LiveSession, clock: Clock) -> None:
    shield.doubts = {"pay": "its description has changed"}


def lacking(shield: Shield, session: LiveSession, clock: Clock) -> None:
    session.lacks = "the result of a call could not be logged"


def stopped(shield: Shield, session: LiveSession, clock: Clock) -> None:
    assert shield.log is not None
    shield.log.stop("agent", "inner", until=clock.now + 60, by="ann", reason="runs wild", tenant=shield.tenant)


@pytest.mark.parametrize("since", [wrong_pin, wrong_pin_told, too_late, another_role, doubted, lacking, stopped])
def test_it_is_decided_anew_where_anything_objects_since(
    since: Callable[[Shield, LiveSession, Clock], None], tmp_path: Path
) -> None:
    assert went_on(since, tmp_path) == (False, False)


@pytest.mark.parametrize("since", [nothing, right_pin])
def test_it_goes_on_where_nothing_new_objects(
    since: Callable[[Shield, LiveSession, Clock], None], tmp_path: Path
) -> None:
    assert went_on(since, tmp_path)[0]


def went_on(since: Callable[[Shield, LiveSession, Clock], None], tmp_path: Path) -> tuple[bool, bool]:
    """Whether a paused call of an inner agent goes on after something happened, and whether it is allowed anew."""
    clock = Clock()
    with Shield(Pack.from_files(PIN), log=tmp_path / "log.db", clock=clock) as shield:
        session = shield.session("c", context={"signed_in_as": "ann", "role": "staff"})
        session.user("Pay X-1.")
        session.agent("Shall I pay X-1?")
        session.user("Yes.")
        decision = session.decide("pay", PAY, id="a", agent="inner")
        assert decision.allowed
        session.interrupt("a", decision)
        since(shield, session, clock)
        return session.resume("a", "pay", PAY) is not None, session.decide("pay", PAY, id="b", agent="inner").allowed


@pytest.mark.parametrize("has_log", [False, True])
def test_it_does_not_go_on_after_another_card_for_it(has_log: bool, tmp_path: Path) -> None:
    """A yes to that card allows a call of its own: with the paused one, the money would be sent twice."""
    pack = Pack.from_files(
        {
            "pack.yaml": "format: 1\nname: bank\ndocument: policy.md\n",
            "policy.md": "Money is sent only after a yes.\n",
            "policies.yaml": "policies: [{id: confirm, kind: rule, spans: [Money is sent only after a yes.]}]\n",
            "rules.yaml": (
                "predicates: {change: {effect: write}, agreed: {consented: card}}\n"
                "rules: [{id: confirm, formula: ALWAYS (change IMPLIES agreed)}]\n"
            ),
            "tools.yaml": "tools: {send: {effect: write, parameters: {to: string}, changes: []}}\n",
        }
    )
    call = {"to": "DE77"}
    with Shield(pack, log=tmp_path / "log.db" if has_log else None) as shield:
        session = shield.session("c" if has_log else "")
        first = session.decide("send", call, id="a")
        assert first.card is not None
        session.confirm(first.card, True, by="button")
        allowed = session.decide("send", call, id="b")
        assert allowed.allowed
        session.interrupt("b", allowed)
        again = session.decide("send", call, id="c")
        assert again.card is not None
        assert session.resume("b", "send", call) is None


REVIEWED = Pack.from_files(
    {
        "pack.yaml": "format: 1\nname: voids\ndocument: policy.md\n",
        "policy.md": "Void an order only after it was checked.\n",
        "tools.yaml": """\
tools:
  get_order: {effect: read, parameters: {order_id: string}}
  void: {effect: write, parameters: {order_id: string}, changes: []}
""",
        "entities.yaml": """\
entities:
  Order: {key: order_id, read: get_order, fields: {paid: money, checked: boolean}}
""",
        "guards/voids.py": """\
def checked_first(call: void, facts):
    '''Void an order only after it was checked.'''
    order = facts.Order(call.order_id)
    return permit() if order.paid > money("0") and order.checked else deny("not checked")
""",
    }
)


@pytest.mark.parametrize(
    ("later", "goes_on"), [("", True), ("same facts", True), ("other facts", False), ("a no", False)]
)
def test_an_approved_call_goes_on_unless_its_facts_changed_or_a_person_said_no_since(later: str, goes_on: bool) -> None:
    with Log(":memory:") as log:
        session = Shield(REVIEWED, log=log).session("c1")

        def look_at(paid: str) -> None:
            id = f"look {session.length}"
            session.decide("get_order", CALL, id=id)
            session.result({"order_id": "R-1", "paid": paid}, id=id)

        look_at("100.00")
        log.approve(session.decide("void", CALL, id="a").approval, by="ann")
        allowed = session.decide("void", CALL, id="b")
        assert allowed.allowed
        session.interrupt("b", allowed)
        if later == "a no":
            log.reject(session.decide("void", CALL, id="c").approval, by="bo")
        elif later:
            look_at("100.00" if later == "same facts" else "900.00")
        assert (session.resume("b", "void", CALL) is not None) == goes_on


@pytest.mark.parametrize("named", [False, True], ids=["resumed", "sent again"])
@pytest.mark.parametrize("later", ["same", "changed", "seen by the agent", "no tools"])
def test_a_call_decided_on_the_shields_own_look_ups_goes_on_if_they_show_the_same(
    later: str, tmp_path: Path, *, named: bool
) -> None:
    shows = {"order_id": "R-1", "status": "returned"}
    made: list[str] = []

    def tools(tool: str, arguments: Mapping[str, Any]) -> Any:
        made.append(tool)
        if later == "no tools" and len(made) > 1:
            raise TimeoutError
        return dict(shows)

    shield = Shield(PACK, postures=Postures(resolve="live"), tools=tools, log=tmp_path / "log.db")
    with shield:
        session = shield.session("c")
        request = Named("request", "digest")
        (first,) = asyncio.run(session.take_async([], [("refund", CALL, "a")], named=request))
        assert (first.allowed, len(made)) == (True, 1)
        if not named:
            session.interrupt("a", first)
        if later == "changed":
            shows["status"] = "sent"
        elif later == "seen by the agent":
            look_up(session, status="sent")
        again = session.resume("a", "refund", CALL) if not named else None
        if named:
            (again,) = asyncio.run(session.take_async([], [("refund", CALL, "a")], named=request))
        assert (again is not None and again.id == first.id) is (later == "same")
        assert again is None or again.allowed is (later in ("same", "seen by the agent"))
        assert later == "seen by the agent" or len(made) > 1, "a new decision would look it up"


@pytest.mark.parametrize("paid", ["100.00", "900.00"])
def test_a_yes_is_for_the_facts_that_the_shield_looked_up(paid: str) -> None:
    shows = {"order_id": "R-1", "paid": "100.00"}
    with Log(":memory:") as log:
        live = Postures(resolve="live")
        session = Shield(REVIEWED, postures=live, tools=lambda tool, arguments: dict(shows), log=log).session("c1")
        asked = session.decide("void", CALL)
        assert "Order['R-1'].paid is \"100.00\"" in asked.for_person
        log.approve(asked.approval, by="ann")
        shows["paid"] = paid
        assert session.decide("void", CALL).allowed is (paid == "100.00")
