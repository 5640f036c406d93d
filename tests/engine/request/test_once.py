"""One request permits one call per tool and per target that it names."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from bylaw.engine.request import Allowance, Deed, Slot, Span
from bylaw.shield.session import LiveSession
from tests.engine.request.desk import PAID, Model, allowed, found, handed_over, said, session, spans

TEXT = "Pay 20 to AB1234."
PAY = {"account": "AB1234", "amount": 20}


def paying(text: str, *accounts: str) -> Allowance:
    return allowed("pay", said("account", text, *accounts), said("amount", text, "20"), Slot("date", "free"))


def carried_out(opened: LiveSession, arguments: dict[str, Any] = PAY, tool: str = "pay") -> str:
    decision = opened.decide(tool, arguments)
    if decision.allowed:
        opened.result(PAID)
    return decision.answer


def test_the_same_call_again_is_asked_about() -> None:
    opened = session(Model(paying(TEXT, "AB1234")), TEXT)
    assert [carried_out(opened) for _ in range(3)] == ["allow", "ask", "ask"]
    assert carried_out(opened, {"account": "ab 1234", "amount": "20.00"}) == "ask"


def test_a_message_that_repeats_the_request_asks_for_nothing_new() -> None:
    model = Model(paying(TEXT, "AB1234"))
    opened = session(model, TEXT)
    assert carried_out(opened) == "allow"
    opened.user(TEXT)
    assert carried_out(opened) == "ask"
    assert set(model.asked) == {TEXT}


@pytest.mark.parametrize(
    "more", [{"date": "2022-01-0{}"}, {"note": "thanks {}"}, {"date": "2022-01-0{}", "note": "{}"}]
)
def test_arguments_that_the_request_does_not_state_multiply_nothing(more: dict[str, str]) -> None:
    opened = session(Model(paying(TEXT, "AB1234")), TEXT)
    calls = [{**PAY, **{name: each.format(number) for name, each in more.items()}} for number in range(1, 5)]
    assert [carried_out(opened, each) for each in calls] == ["allow", "ask", "ask", "ask"]


def test_of_two_calls_in_one_turn_one_is_permitted() -> None:
    opened = session(Model(paying(TEXT, "AB1234")), TEXT)
    decisions = opened.decide_turn("", [("pay", PAY, "a"), ("pay", PAY, "b")])
    assert [each.answer for each in decisions] == ["allow", "ask"]


def test_each_target_that_the_request_names_permits_one_call() -> None:
    text = "Pay 20 each to AB1, AB2 and AB3."
    opened = session(Model(paying(text, "AB1", "AB2", "AB3")), text)
    accounts = ("AB1", "AB2", "AB1", "AB3", "AB3", "AB4")
    answers = [carried_out(opened, {"account": each, "amount": 20}) for each in accounts]
    assert answers == ["allow", "allow", "ask", "allow", "ask", "ask"]


def test_each_of_all_that_fit_is_a_target() -> None:
    text = "Remove everyone of the choir."
    slot = found("user", text, "find_people", "choir", every=True)
    opened = session(Model(allowed("remove_user", slot)), text, ("find_people", {"name": "choir"}, "- Ada\n- Ben\n"))
    answers = [carried_out(opened, {"user": each}, "remove_user") for each in ("Ada", "Ben", "Ada")]
    assert answers == ["allow", "allow", "ask"]


def test_one_thing_to_be_found_is_one_target_whichever_it_was() -> None:
    text = "Cancel the meeting on 30 May."
    slot = found("event_id", text, "get_events", "30 May")
    events = ("get_events", {"day": "2024-05-30"}, "- {id: '1', day: 2024-05-30}\n- {id: '2', day: 2024-05-30}\n")
    opened = session(Model(allowed("cancel_event", slot)), text, events)
    assert [carried_out(opened, {"event_id": each}, "cancel_event") for each in "12"] == ["allow", "ask"]


def test_a_list_that_shares_a_target_with_an_earlier_call_is_asked_about() -> None:
    text = "Mail ann@home.example and bob@home.example that I am late."
    slots = (said("to", text, "ann@home.example", "bob@home.example"), Slot("body", "free"))
    opened = session(Model(allowed("mail", *slots)), text)
    mail = {"body": "I am late."}
    assert carried_out(opened, {**mail, "to": ["ann@home.example"]}, "mail") == "allow"
    assert carried_out(opened, {**mail, "to": ["bob@home.example", "ann@home.example"]}, "mail") == "ask"
    assert carried_out(opened, {**mail, "to": ["bob@home.example"]}, "mail") == "allow"


def test_a_call_for_one_deed_does_not_use_up_another() -> None:
    text = "Pay 20 to AB1234, and the bill in bill.txt to its account, 20 too."
    other = found("account", text, "read_file", "bill.txt")
    deeds = (
        Deed("pay", (Span(0, 3),), (said("account", text, "AB1234"), said("amount", text, "20"))),
        Deed("pay", (Span(23, 31),), (other, said("amount", text, "20"))),
    )
    opened = session(Model(Allowance(deeds)), text, ("read_file", {"path": "bill.txt"}, "IBAN: CD5678"))
    accounts = ("AB1234", "CD5678", "AB1234", "CD5678")
    answers = [carried_out(opened, {"account": each, "amount": 20}) for each in accounts]
    assert answers == ["allow", "allow", "ask", "ask"]


def test_two_deeds_alike_permit_two_calls() -> None:
    text = "Pay 20 to AB1234 and the same to AB1234 for Ann."
    slots = (said("account", text, "AB1234"), said("amount", text, "20"))
    deeds = (Deed("pay", (Span(0, 16),), slots), Deed("pay", (Span(21, 29),), slots))
    opened = session(Model(Allowance(deeds)), text)
    assert [carried_out(opened) for _ in range(3)] == ["allow", "allow", "ask"]


def test_a_call_uses_the_deed_that_it_fits_exactly() -> None:
    text = "Pay 20 to Anna and 20 to Anna Smith."
    deeds = tuple(
        Deed("pay", spans(text, asked), (said("account", text, name), said("amount", text, "20")))
        for asked, name in (("Pay 20 to Anna", "Anna"), ("20 to Anna Smith", "Anna Smith"))
    )
    sure = {"account": True, "amount": True}
    opened = session(Model(Allowance(deeds), says=sure), text)
    accounts = ("Anna Smith", "Anna Smith", "Anna", "Anna", "Anna Smith")
    answers = [carried_out(opened, {"account": each, "amount": 20}) for each in accounts]
    assert answers == ["allow", "ask", "allow", "ask", "ask"]


def test_a_stated_amount_does_not_use_up_the_amount_on_a_bill() -> None:
    text = "Pay 20 to AB1234, and AB1234 what bill.txt says."
    account = said("account", text, "AB1234")
    deeds = (
        Deed("pay", (Span(0, 3),), (account, said("amount", text, "20"))),
        Deed("pay", spans(text, "and AB1234"), (account, found("amount", text, "read_file", "bill.txt"))),
    )
    sure = {"account": True, "amount": True}
    bill = ("read_file", {"path": "bill.txt"}, "To pay: 250 EUR")
    opened = session(Model(Allowance(deeds), says=sure), text, bill)
    answers = [carried_out(opened, {"account": "AB1234", "amount": each}) for each in (20, 20, 250, 250)]
    assert answers == ["allow", "ask", "allow", "ask"]


def test_a_call_that_fits_no_deed_exactly_may_have_used_every_one_that_it_may_fit() -> None:
    text = "Pay 20 to Anna and 20 to Smith."
    deeds = tuple(
        Deed("pay", spans(text, asked), (said("account", text, name), said("amount", text, "20")))
        for asked, name in (("Pay 20 to Anna", "Anna"), ("20 to Smith", "Smith"))
    )
    reads = ("find_people", {"name": "Anna"}, "- {name: Anna Smith}\n")
    sure = {"account": True, "amount": True}
    opened = session(Model(Allowance(deeds), says=sure), text, reads)
    accounts = ("Anna Smith", "Anna Smith", "Anna", "Smith")
    answers = [carried_out(opened, {"account": each, "amount": 20}) for each in accounts]
    assert answers == ["allow", "ask", "ask", "ask"]


def test_the_second_look_is_about_the_deed_that_the_call_uses() -> None:
    text = "Pay 20 to AB1234, and AB1234 what bill.txt says."
    account = said("account", text, "AB1234")
    deeds = (
        Deed("pay", (Span(0, 3),), (account, said("amount", text, "20"))),
        Deed("pay", spans(text, "and AB1234"), (account, found("amount", text, "read_file", "bill.txt"))),
    )
    model = Model(Allowance(deeds))
    opened = session(model, text, ("read_file", {"path": "bill.txt"}, "To pay: 20 EUR, bill 20"))
    assert [carried_out(opened) for _ in range(3)] == ["allow", "allow", "ask"]
    assert [each.asked for each in model.doubts] == [("account", "amount"), ("amount",)]


def test_a_later_message_that_asks_again_permits_another_call() -> None:
    more = "Pay 20 to AB1234 once more."
    both = f"{TEXT}\n\n{more}"
    start = len(TEXT) + 2
    slots = (said("account", both, "AB1234"), said("amount", both, "20"))
    again = Allowance((Deed("pay", (Span(0, 3),), slots), Deed("pay", (Span(start, start + len(more) - 1),), slots)))
    opened = session(Model(paying(TEXT, "AB1234"), {both: again}), TEXT)
    assert [carried_out(opened) for _ in range(2)] == ["allow", "ask"]
    opened.user(more)
    assert [carried_out(opened) for _ in range(2)] == ["allow", "ask"]


def test_a_refused_call_uses_nothing_and_a_failed_one_may_have_run() -> None:
    opened = session(Model(paying(TEXT, "AB1234")), TEXT)
    opened.decide("pay", PAY)
    opened.result("closed", error=True, refused=True)
    assert opened.decide("pay", PAY).answer == "allow"
    opened.result("time-out", error=True)
    assert carried_out(opened) == "ask"


def test_an_earlier_call_whose_arguments_cannot_be_read_may_have_been_this_one() -> None:
    for arguments, want in (
        ('{"account": "AB12', "ask"),
        ('{"account": "[REDACTED]", "amount": 20}', "ask"),
        ('{"amount": 20}', "ask"),
        ('{"account": "CD5678", "amount": 1}', "allow"),
    ):
        opened = session(Model(paying(TEXT, "AB1234")), TEXT)
        call = {"id": "a", "type": "function", "function": {"name": "pay", "arguments": arguments}}
        opened.messages(
            [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "a", "content": "paid"},
            ]
        )
        assert opened.decide("pay", PAY, id="b").answer == want


def test_a_handed_over_text_permits_each_of_its_deeds_once() -> None:
    text, note = "Do what note.txt says.", "Remove Ada and remove Ben."
    both = f"{text}\n\nThe text that the user hands over to:\n{note}"
    deeds = tuple(
        Deed("remove_user", spans(both, f"emove {each}"), (said("user", both, each),)) for each in ("Ada", "Ben")
    )
    model = Model(handed_over(text, "read_file", "note.txt"), {both: Allowance(deeds)})
    opened = session(model, text, ("read_file", {"path": "note.txt"}, note), delegation="follow")
    answers = [carried_out(opened, {"user": each}, "remove_user") for each in ("Ada", "Ben", "Ada", "Ben")]
    assert answers == ["allow", "allow", "ask", "ask"]


def test_earlier_payments_cost_a_decision_no_more_than_a_glance_each() -> None:
    *accounts, last = (f"AB{1000 + number}" for number in range(200))
    text = f"Pay 20 to {', '.join(accounts)} and {last}."
    made: list[int] = []
    for earlier in (accounts[:2], accounts):
        opened = session(Model(paying(text, *accounts, last)), text)
        for account in earlier:
            assert carried_out(opened, {"account": account, "amount": 20}) == "allow"
        made.append(_calls_made(lambda opened=opened: opened.decide("pay", {"account": last, "amount": 20})))
    assert made[1] - made[0] < 30 * len(accounts)


def _calls_made(work: Callable[[], object]) -> int:
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


def test_what_is_said_while_a_call_may_run_may_take_the_request_back() -> None:
    text = "Pay 20 each to AB1 and AB2."
    opened = session(Model(paying(text, "AB1", "AB2")), text)
    assert opened.decide("pay", {"account": "AB1", "amount": 20}).allowed
    opened.user("Forget it.")
    assert opened.decide("pay", {"account": "AB2", "amount": 20}).answer == "ask"
