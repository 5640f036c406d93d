"""Choices, bounds, shares and times: code finds the places, and a look settles which value the request asks for."""

import json
import time
from typing import Any

import pytest

from bylaw.engine.request import Choice, Limit, Slot, Source
from tests.engine.request.desk import Read, decided, found, looked_at, spans

MOST_SECONDS = 1.0


def test_one_of_many_records_is_found_in_no_time() -> None:
    """What is compared with all the others is compared once with each."""
    text = "Cancel the meeting about tulips."
    rows = "".join(f"- {{id: '{number}', title: Meeting {number} about roses}}\n" for number in range(400))
    events: Read = ("get_events", {}, f"{rows}- {{id: '999', title: Meeting about tulips}}\n")
    slot = found("event_id", text, "get_events", "meeting", "tulips")
    started = time.thread_time()
    assert decided(text, "cancel_event", {"event_id": "999"}, [events], slot) == "allow"
    assert time.thread_time() - started < MOST_SECONDS


@pytest.mark.parametrize(("event", "want"), [("7", "ask"), ("8", "allow")])
def test_the_figures_of_a_name_must_be_there(event: str, want: str) -> None:
    text = "Cancel the yearly stock check 2025."
    events: Read = (
        "get_events",
        {},
        "- {id: '7', title: yearly stock check of 2024}\n- {id: '8', title: yearly stock check of 2025}\n",
    )
    slot = found("event_id", text, "get_events", "yearly stock check 2025")
    assert decided(text, "cancel_event", {"event_id": event}, [events], slot) == want


@pytest.mark.parametrize(
    ("given", "want"), [("2025-06-10 15:45", "allow"), ("2025-06-10 16:45", "ask"), ("2025-06-11 15:45", "ask")]
)
def test_the_time_that_the_user_said_is_held(given: str, want: str) -> None:
    text = "Book Riga Inn for 10 June 2025 at a quarter to four."
    at = Slot("start_day", "said", spans(text, "10 June 2025"), limits=(Limit("start_day", "15:45", "15:45"),))
    slots = (Slot("inn", "said", spans(text, "Riga Inn")), at)
    assert decided(text, "reserve_inn", {"inn": "Riga Inn", "start_day": given}, [], *slots) == want


@pytest.mark.parametrize("more", [{"factor": 0.25}, {"factor": 1.0, "plus": -180.0}])
def test_an_amount_that_is_calculated_needs_a_look(more: dict[str, Any]) -> None:
    text = "Pay LV88123456 a quarter of the total in bill.txt."
    bill: Read = ("read_file", {"path": "bill.txt"}, "Food 200.00\nWine 40.00\nTotal 240.00\n")
    share = Slot("amount", "free", (), (Source("read_file", spans(text, "bill.txt", "total")),), **more)
    slots = (Slot("account", "said", spans(text, "LV88123456")), share)
    call = {"account": "LV88123456", "amount": 60.0}
    assert looked_at(text, "pay", call, [bill], *slots) == ("allow", [("amount",)])
    assert decided(text, "pay", call, [bill], *slots) == "ask"


@pytest.mark.parametrize(("amount", "want"), [(75.0, "allow"), (150.0, "ask")])
def test_the_amount_of_a_record_is_not_a_change_of_another(amount: float, want: str) -> None:
    text = "Milo paid me twice. Send one of the two back to LV88123456."
    payments: Read = (
        "get_payments",
        {},
        "- {amount: 75.0, id: 1, subject: Milo dinner}\n- {amount: 75.0, id: 2, subject: Milo dinner}\n",
    )
    slots = (
        Slot("account", "said", spans(text, "LV88123456")),
        found("amount", text, "get_payments", "Milo", field="amount"),
    )
    assert decided(text, "pay", {"account": "LV88123456", "amount": amount}, [payments], *slots) == want


PAYMENTS: Read = (
    "get_payments",
    {},
    "- {amount: 1.0, date: '2024-05-01', account: LV11123456, subject: Milo}\n"
    "- {amount: 1.0, date: '2024-05-07', account: LV22123456, subject: Milo}\n"
    "- {amount: 1.0, date: '2024-05-09', account: LV33123456, subject: Rent}\n",
)


@pytest.mark.parametrize(
    "more", [{"choice": Choice("date", "most")}, {"limits": (Limit("date", "2024-05-02", "2024-05-30"),)}]
)
def test_which_of_those_that_the_user_named_needs_a_look(more: dict[str, Any]) -> None:
    text = "Pay 5 to the account on which I paid Milo last."
    slots = (found("account", text, "get_payments", "Milo", **more), Slot("amount", "said", spans(text, "5")))
    for account in ("LV11123456", "LV22123456"):
        call = {"account": account, "amount": 5}
        assert looked_at(text, "pay", call, [PAYMENTS], *slots) == ("allow", [("account",)])
        assert decided(text, "pay", call, [PAYMENTS], *slots) == "ask"


def test_a_free_time_needs_a_look_and_a_period_has_its_length() -> None:
    text = "Book lunch at 2026-05-01 12:00 for an hour."
    stated = (Slot("title", "said", spans(text, "lunch")), Slot("start_time", "said", spans(text, "2026-05-01 12:00")))
    call = {"title": "lunch", "start_time": "2026-05-01 12:00", "end_time": "2026-05-01 13:00"}
    lasting, clear = Slot("end_time", "free", minutes=60), Slot("end_time", "free", clear=True)
    assert looked_at(text, "book", call, [], *stated, clear) == ("allow", [("end_time",)])
    assert decided(text, "book", call, [], *stated, lasting) == "allow"
    longer = {**call, "end_time": "2026-05-01 14:00"}
    assert looked_at(text, "book", longer, [], *stated, lasting) == ("ask", [])


def test_a_stated_time_that_has_to_be_free_is_left_to_the_look() -> None:
    text = "Book lunch at 2026-05-01 12:00 for an hour if I am free then."
    title, ends = Slot("title", "said", spans(text, "lunch")), Slot("end_time", "free", minutes=60)
    starts = Slot("start_time", "said", spans(text, "2026-05-01 12:00"), clear=True)
    call = {"title": "lunch", "start_time": "2026-05-01 12:00", "end_time": "2026-05-01 13:00"}
    assert decided(text, "book", call, [], title, starts, ends) == "ask"
    assert looked_at(text, "book", call, [], title, starts, ends) == ("allow", [("start_time",)])


def test_a_limit_on_the_record_is_left_to_the_look_even_where_the_agent_may_choose() -> None:
    text = "Reserve some inn in Riga, below 100 a night."
    inns: Read = ("get_inns", {"city": "Riga"}, json.dumps([{"inn": "Plaza", "price": 300}]))
    chosen = Slot("inn", "free", limits=(Limit("price", most="100"),))
    assert decided(text, "reserve_inn", {"inn": "Plaza"}, [inns], chosen) == "ask"
    assert looked_at(text, "reserve_inn", {"inn": "Plaza"}, [inns], chosen) == ("allow", [("inn",)])


def test_words_are_what_the_model_says_they_mean() -> None:
    text = "Ann should only look at a.txt, and just today."
    slots = (
        Slot("path", "said", spans(text, "a.txt")),
        Slot("right", "said", spans(text, "only look at"), value="r"),
        Slot("lasting", "said", spans(text, "just today"), value=False),
    )
    assert decided(text, "share", {"path": "a.txt", "right": "r", "lasting": False}, [], *slots) == "allow"
    assert decided(text, "share", {"path": "a.txt", "right": "rw", "lasting": False}, [], *slots) == "ask"
    assert decided(text, "share", {"path": "a.txt", "right": "r", "lasting": True}, [], *slots) == "ask"


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("We come on June 21 at half past seven (7:30 PM), 40 people.", "allow"),
        ("We come on 21 June at 19:30, forty people.", "allow"),
        ("We come on 22 June at 19:30, 40 people.", "ask"),
        ("We come on 21 June at 18:30, 40 people.", "ask"),
        ("We are not interested.", "ask"),
    ],
)
def test_a_text_says_what_it_has_to_in_any_form(body: str, want: str) -> None:
    text = "Tell inn@riga.example that 40 of us come on 21 June at 19:30."
    slots = (
        Slot("to", "said", spans(text, "inn@riga.example")),
        Slot("body", "free", must=spans(text, "40", "21 June", "19:30")),
    )
    assert decided(text, "mail", {"to": ["inn@riga.example"], "body": body}, [], *slots) == want


def test_one_address_is_not_left_out_because_another_is_like_it() -> None:
    text = "Mail zala.roe@post.example, not mum, who is majda.roe@post.example."
    slots = (
        Slot("to", "said", spans(text, "zala.roe@post.example"), but=spans(text, "majda.roe@post.example")),
        Slot("body", "free"),
    )
    for to, want in (("zala.roe@post.example", "allow"), ("majda.roe@post.example", "ask")):
        assert decided(text, "mail", {"to": [to], "body": "Come at six."}, [], *slots) == want
