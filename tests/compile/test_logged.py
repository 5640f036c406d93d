"""A guard that fails on recorded calls, or denies most of them, is looked at once more; nobody's values are told."""

import json

from msgspec.structs import replace

from bylaw.compile.check import Check
from bylaw.compile.pipeline import compile_pack
from bylaw.trace import Call, Message, Result, Trajectory
from tests.compile.shop import LIMIT, WINDOW, Scripted, source

CAUTIOUS = LIMIT.replace(
    "    amount", '    if call.amount == "all":\n        return deny("name an amount")\n    amount'
)
STRICT = 'def refund_limit(call, facts):\n    return deny("never")\n'


def talk(number: int, *, amount: str = "20.00", delivered: str = "2025-01-16") -> Trajectory:
    """A conversation in which an order is read and a refund is made."""
    order = json.dumps({"order_id": f"A{number}", "customer_id": "C77", "delivered_on": delivered, "refunded": "0.00"})
    refund = Call("refund", {"order_id": f"A{number}", "customer_id": "C77", "amount": amount}, turn=2)
    events = (
        Message("user", "Hello.", 1),
        Call("get_order", {"order_id": f"A{number}"}, turn=1),
        Result(1, order, tool="get_order"),
        refund,
        Result(3, '{"ok": true}', tool="refund"),
    )
    return Trajectory(f"talk-{number}", events)


def made(chat: Scripted, talks: list[Trajectory]) -> dict[str, Check]:
    """The checks of the shop with these recorded conversations."""
    return compile_pack(replace(source(), trajectories=talks, now="2025-02-01T09:00:00"), chat)[0].checks


def test_a_guard_that_fails_on_recorded_calls_is_mended() -> None:
    chat = Scripted(repair=CAUTIOUS)
    checks = made(chat, [talk(1), talk(2, amount="all")])
    told = [each.messages[1].content for each in chat.asked("repair")]
    assert ["it fails on 1 of 2 recorded calls: line " in each for each in told] == [True]
    assert checks["refund-limit"].code.strip() == CAUTIOUS.strip()
    assert not [each for each in checks["refund-limit"].questions if each.about == "recorded calls"]


def test_a_guard_that_denies_most_recorded_calls_is_asked_about_and_then_told() -> None:
    chat = Scripted(repair=WINDOW)
    checks = made(chat, [talk(number, delivered="2024-03-16") for number in range(12, 18)])
    (told,) = [each.messages[1].content for each in chat.asked("repair")]
    assert "it denies 6 of 6 recorded calls: more than 30 days ago (6)" in told
    for value in ("C77", "A12", "2024-03-16", "talk-12"):
        assert value not in told.partition("What went wrong:")[2]
    assert checks["refund-window"].code.strip() == WINDOW.strip()
    (question,) = [each for each in checks["refund-window"].questions if each.about == "recorded calls"]
    assert question.text == "it denies 6 of 6 recorded calls: more than 30 days ago (6)"


def test_what_comes_back_and_fails_its_cases_does_not_count() -> None:
    checks = made(Scripted(repair=STRICT), [talk(2, amount="all")])
    assert checks["refund-limit"].code.strip() == LIMIT.strip()
    (question,) = [each for each in checks["refund-limit"].questions if each.about == "recorded calls"]
    assert question.text.startswith("it fails on 1 of 1 recorded calls: line ")


def test_right_calls_ask_nothing() -> None:
    chat = Scripted()
    made(chat, [talk(number) for number in range(8)])
    assert chat.asked("repair") == []


def test_a_rule_that_most_conversations_break_is_asked_about_and_then_told() -> None:
    chat = Scripted()
    checks = made(chat, [talk(number) for number in range(8)])
    (told,) = [each.messages[-1].content for each in chat.asked("rules") if len(each.messages) > 2]
    assert "it is broken in 8 of 8 recorded conversations. Most of what was recorded is right" in told
    (question,) = [each for each in checks["confirm-refunds"].questions if each.about == "recorded conversations"]
    assert question.text == "it is broken in 8 of 8 recorded conversations"
    assert checks["confirm-refunds"].rules
