"""A guard that flags an outlying share of logged calls is read again by somebody who sees only sentences and calls."""

import json

import pytest
from msgspec.structs import replace

from bylaw.compile.check import Check
from bylaw.compile.pipeline import compile_pack
from bylaw.trace import Call, Message, Result, Trajectory
from tests.compile.shop import LIMIT, WINDOW, Scripted, source

MISREAD = LIMIT.replace('!= "gold"', '== "gold"')
"""Gold customers are taken for everybody else: as both generations have it, nobody is asked."""
CASES = """
- {note: on the last day, policy: refund-window, call: {refund: {order_id: A1, customer_id: C1, amount: "20.00"}},
   facts: {"Order[A1]": {delivered_on: 2025-01-16}}, now: 2025-02-15T09:00:00, want: permit}
- {note: a day late, policy: refund-window, call: {refund: {order_id: A1, customer_id: C1, amount: "20.00"}},
   facts: {"Order[A1]": {delivered_on: 2025-01-16}}, now: 2025-02-16T09:00:00, want: deny}
- {note: little, policy: refund-limit, call: {refund: {order_id: A1, customer_id: C1, amount: "200.00"}},
   facts: {"Customer[C1]": {level: none}}, want: permit}
- {note: too much, policy: refund-limit, call: {refund: {order_id: A1, customer_id: C1, amount: "500.01"}},
   facts: {"Customer[C1]": {level: none}}, want: deny}
"""

RECORDED = (
    '{"rulings": [{"number": 1, "want": "permit", "why": "Gold customers are refunded up to $500.00 at once, and'
    ' $300.00 is within that."}]}'
)
"""What a model answered to the third reader's question of the first test, asked apart, on 2026-11-17."""
ASKED = "431f1fb8aeab7364fa3f78f6c7df7fea-1"
"""The key of that question: where it changes, it has to be asked anew."""


def refund(number: int, amount: str) -> Trajectory:
    """A gold customer's refund, after a look at the customer."""
    customer = f"C{number}"
    shown = json.dumps({"customer_id": customer, "level": "gold"})
    given = {"order_id": f"A{number}", "customer_id": customer, "amount": amount}
    events = (
        Message("user", "Refund me."),
        Call("get_customer", {"customer_id": customer}, turn=1),
        Result(1, shown, tool="get_customer"),
        Call("refund", given, turn=2),
        Result(3, '{"ok": true}', tool="refund"),
    )
    return Trajectory(f"t{number}", events)


def compiled(chat: Scripted, dear: int, cheap: int = 40) -> Check:
    logs = [refund(number, "300.00" if number < dear else "20.00") for number in range(dear + cheap)]
    work, _ = compile_pack(replace(source(), trajectories=logs), chat)
    return work.checks["refund-limit"]


def ruled(want: str) -> str:
    return json.dumps({"rulings": [{"number": 1, "want": want, "why": "gold customers get up to $500.00"}]})


def scripted(**answers: str) -> Scripted:
    return Scripted(guards=WINDOW + MISREAD, cases=CASES, **answers)


def test_a_misreading_that_both_generations_share_is_found_by_the_calls_it_flags() -> None:
    chat = scripted(referee=RECORDED, repair=LIMIT)
    check = compiled(chat, dear=8)
    assert check.code.strip() == LIMIT.strip()
    (question,) = (each for each in check.questions if each.about == "two readings")
    assert "the guard speaks against 8 of 48 logged calls" in question.text
    assert "One reading denies this call: more than may be refunded at once" in question.text
    assert (
        "another permits it: Gold customers are refunded up to $500.00 at once, and $300.00 is within" in question.text
    )
    assert "Gold customers are refunded up to $500.00 at once" in question.text
    assert question.input is not None
    assert question.input["facts"] == {"Customer[C0]": {"level": "gold"}}
    assert [case["want"] for case in check.cases if case["note"].startswith("a logged call")] == ["permit"]
    (asked,) = chat.asked("referee")
    assert asked.key == ASKED
    assert "misread" not in asked.messages[1].content
    assert "more than may be refunded" not in asked.messages[1].content, "whoever reads again sees no earlier reading"


def test_where_the_third_reader_reads_alike_the_owner_is_not_asked() -> None:
    check = compiled(scripted(referee=ruled("deny")), dear=8)
    assert check.code.strip() == MISREAD.strip()
    assert not [each for each in check.questions if each.about == "two readings"]


@pytest.mark.parametrize(("want", "repairs"), [("unclear", 0), ("permit", 3)])
def test_what_cannot_be_settled_leaves_the_guard_and_asks_the_owner(want: str, repairs: int) -> None:
    check = compiled(scripted(referee=ruled(want), repair=MISREAD), dear=8)
    assert check.code.strip() == MISREAD.strip()
    assert (check.failed, check.repairs) == ("", repairs)
    assert [each.about for each in check.questions] == ["two readings"]
    assert len(check.cases) == 2


@pytest.mark.parametrize(("dear", "cheap"), [(4, 0), (8, 80)], ids=["few calls", "a small share"])
def test_a_few_flagged_calls_are_those_of_careless_agents(dear: int, cheap: int) -> None:
    chat = scripted()
    compiled(chat, dear, cheap)
    assert not chat.asked("referee")
