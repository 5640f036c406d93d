"""One request for one thing is one deed."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from bylaw.engine.request import Allowance, Deed, Slot, Span
from bylaw.engine.request.spending import Writes
from bylaw.facts.ledger import Ledger
from bylaw.shield import Shield
from bylaw.shield.session import LiveSession
from bylaw.trace.event import Call, Message, Result
from tests.engine.test_requests import desk

PAY = {"account": "AB1234", "amount": 20}
PAID = {"paid": 20}


def carried_out(session: LiveSession, arguments: dict[str, Any] = PAY, tool: str = "pay") -> str:
    """What a shield says of a call, which is carried out where it is allowed."""
    decision = session.decide(tool, arguments)
    if decision.allowed:
        session.result(PAID)
    return decision.answer


def test_the_same_call_again_is_asked_about():
    with Shield(desk()).session() as session:
        session.user("Pay 20 to AB1234.")
        assert [carried_out(session) for _ in range(3)] == ["allow", "ask", "ask"]
        assert carried_out(session, {"account": "ab 1234", "amount": "20.00"}) == "ask"


def test_of_two_in_one_turn_one_is_asked_for():
    with Shield(desk()).session() as session:
        session.user("Pay 20 to AB1234.")
        decisions = session.decide_turn("", [("pay", PAY, "a"), ("pay", PAY, "b")])
        assert [each.answer for each in decisions] == ["allow", "ask"]


def test_the_same_in_other_words_is_no_other_deed():
    with Shield(desk()).session() as session:
        session.user("Mail ann@home.example that I am late.")
        mail = {"recipient": "ann@home.example", "body": "Late!"}
        assert carried_out(session, mail, "send_email") == "allow"
        assert carried_out(session, {**mail, "body": "I am late."}, "send_email") == "ask"


@pytest.mark.parametrize(
    "request_",
    [
        "Pay 20 to AB1234 twice.",
        "Pay 20 to AB1234 for each of my two sons.",
        "Pay 20 to AB1234, 3 times.",
        "Pay 20 to AB1234. Pay 20 to AB1234 for the other bill as well.",
    ],
)
def test_who_asks_for_several_gets_several(request_: str):
    with Shield(desk()).session() as session:
        session.user(request_)
        assert [carried_out(session) for _ in range(2)] == ["allow", "allow"]


def test_who_asks_again_gets_another():
    with Shield(desk()).session() as session:
        session.user("Pay 20 to AB1234.")
        assert [carried_out(session) for _ in range(2)] == ["allow", "ask"]
        session.user("Pay 20 to CD5678 too.")
        assert carried_out(session) == "ask"
        assert carried_out(session, {"account": "CD5678", "amount": 20}) == "allow"
        session.user("Pay 20 to AB1234 once more.")
        assert [carried_out(session) for _ in range(2)] == ["allow", "ask"]


def test_what_was_refused_may_be_tried_again_and_what_failed_may_be_done():
    with Shield(desk()).session() as session:
        session.user("What does AB1234 get?")
        assert carried_out(session) == "ask"
        session.user("Pay 20 to AB1234.")
        assert session.decide("pay", PAY).answer == "allow"
        session.result("time-out", error=True)
        assert carried_out(session) == "ask"


def test_a_model_tells_how_often_by_its_deeds():
    request = "Pay 20 to AB1234 and the same to AB1234 for Ann."
    slots = (Slot("account", "said", (Span(10, 16),)), Slot("amount", "said", (Span(4, 6),)))
    once = Deed("pay", (Span(0, 16),), slots)
    again = Deed("pay", (Span(21, 29),), slots)

    def answers(*deeds: Deed) -> list[str]:
        with Shield(desk(), requests=lambda _: lambda _: Allowance(deeds, by="model")).session() as session:
            session.user(request)
            return [carried_out(session) for _ in range(3)]

    assert answers(once) == ["allow", "ask", "ask"]
    assert answers(once, again) == ["allow", "allow", "ask"]


def test_a_refusal_that_came_later_was_not_known_before():
    ledger = Ledger(desk().schema)
    calls = [Call(tool="pay", arguments=dict(PAY), id=name) for name in "ab"]
    ledger.observe_all(0, [Message("user", "Pay 20 to AB1234."), *calls])
    ledger.observe_all(3, [Result(call=1, content="closed", refused=True, error=True)])
    writes = Writes(ledger, ledger.provenance({}))
    later = ledger.record(Call(tool="pay", arguments=dict(PAY), id="c"), 4)
    assert [each.step for each in writes.before(later)] == [2]
    assert [each.step for each in writes.before(ledger.calls[2])] == [1]


@pytest.mark.parametrize("is_done", [False, True])
def test_what_was_paid_before_does_not_make_a_decision_dearer(is_done: bool):
    accounts = [f"AB{1000 + number}" for number in range(300)] if is_done else ["AB1234"] * 300
    with Shield(desk()).session() as session:
        session.user(f"Pay 20 to {', '.join(dict.fromkeys(accounts))}.")
        made: list[int] = []
        for account in accounts:
            pay = {"account": account, "amount": 20}
            made.append(_calls_made(lambda pay=pay: session.decide("pay", pay)))
            session.result(PAID) if is_done else session.result("closed", error=True, refused=True)
        assert min(made[-20:]) < 1.2 * max(made[20:40])


def _calls_made(work: Callable[[], object]) -> int:
    """How many functions are called for some work."""
    counted = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return counted
