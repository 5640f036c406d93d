"""Which of several things the user meant, and which not: exceptions, rivals, times, shares, pieces of a text."""

import time
from typing import Any

import pytest

from bylaw.engine.request import Allowance, Choice, Delegation, Limit, Slot, Source
from tests.engine.test_requests import answer
from tests.engine.test_requests_named import EVENTS, FOLLOWS, Read, decided, found, spans

MOST_SECONDS = 1.0
"""Of the processor; each with each, 400 records took more than two."""
TEAM: Read = ("find_people", {"name": "choir"}, "- Ada\n- Ben\n- Cleo\n")
BAND: Read = ("find_people", {"name": "band"}, "- Ben\n")


@pytest.mark.parametrize(
    ("text", "but", "out"),
    [
        ("Remove everyone of the choir except Ben.", "Ben", {"Ben"}),
        ("Remove all of the choir who are not in the band.", "in the band", {"Ben"}),
        ("Remove everyone of the choir but the founders.", "founders", {"Ada", "Ben", "Cleo"}),
        ("Remove everyone of the choir except Zoe.", "Zoe", set[str]()),
    ],
    ids=["by name", "those whom a tool shows", "a description that nothing bears", "a name of nobody here"],
)
def test_what_the_user_left_out_is_asked_about(text: str, but: str, out: set[str]) -> None:
    slot = found("user", text, "find_people", "choir", every=True, but=spans(text, but))
    for user in ("Ada", "Ben", "Cleo"):
        want = "ask" if user in out else "allow"
        assert decided(text, "remove_user", {"user": user}, [TEAM, BAND], slot) == want, user


@pytest.mark.parametrize(("event", "want"), [("101", "ask"), ("102", "allow"), ("103", "allow")])
def test_an_excepted_record_is_the_one_that_bears_the_words_best(event: str, want: str) -> None:
    """That another mentions it does not make it the exception."""
    text = "Cancel all that I have on 30 May, but not the design review."
    slot = found("event_id", text, "get_events", "30 May", every=True, but=spans(text, "design review"))
    assert decided(text, "cancel_event", {"event_id": event}, [EVENTS], slot) == want


@pytest.mark.parametrize(("body", "want"), [("My name is Kim Roe.", "allow"), ("Kim Roe, account LV88123456", "ask")])
def test_a_text_may_not_hold_what_the_user_left_out(body: str, want: str) -> None:
    text = "Mail hotel@inn.example my name, but no bank details."
    user: Read = ("get_user", {}, "{'Name': 'Kim Roe', 'Bank Account': 'LV88123456'}")
    slots = (
        Slot("to", "said", spans(text, "hotel@inn.example")),
        Slot("body", "free", (), (Source("get_user"),), but=spans(text, "bank details")),
    )
    assert decided(text, "mail", {"to": ["hotel@inn.example"], "body": body}, [user], *slots) == want


@pytest.mark.parametrize(("event", "every", "want"), [("101", False, "ask"), ("101", True, "allow")])
def test_where_several_fit_and_one_is_meant_the_user_is_asked(event: str, every: bool, want: str) -> None:
    text = "Cancel what I have on 30 May."
    slot = found("event_id", text, "get_events", "30 May", every=every)
    assert decided(text, "cancel_event", {"event_id": event}, [EVENTS], slot) == want


def test_of_several_none_is_meant_by_no_words_at_all() -> None:
    text = "Cancel my event."
    slot = found("event_id", text, "get_events")
    assert decided(text, "cancel_event", {"event_id": "101"}, [EVENTS], slot) == "ask"


def test_one_of_many_records_is_found_in_no_time() -> None:
    """What is compared with all the others is compared once with each."""
    text = "Cancel the meeting about tulips."
    rows = "".join(f"- {{id: '{number}', title: Meeting {number} about roses}}\n" for number in range(400))
    events: Read = ("get_events", {}, f"{rows}- {{id: '999', title: Meeting about tulips}}\n")
    slot = found("event_id", text, "get_events", "meeting", "tulips")
    started = time.thread_time()
    assert decided(text, "cancel_event", {"event_id": "999"}, [events], slot) == "allow"
    assert time.thread_time() - started < MOST_SECONDS


def test_what_is_called_by_the_very_words_comes_before_what_holds_them() -> None:
    text = "Cancel the budget talk."
    events: Read = (
        "get_events",
        {},
        "- {id: '7', title: Tips for the budget talk}\n- {id: '8', title: Budget talk}\n",
    )
    slot = found("event_id", text, "get_events", "budget talk")
    assert decided(text, "cancel_event", {"event_id": "8"}, [events], slot) == "allow"
    assert decided(text, "cancel_event", {"event_id": "7"}, [events], slot) == "ask"


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


@pytest.mark.parametrize(("given", "want"), [("2024-05-30 10:00", "allow"), ("2024-05-30 11:30", "ask")])
def test_a_moment_is_the_field_that_it_should_be(given: str, want: str) -> None:
    text = "Book Riga Inn for when the design review begins."
    events: Read = (
        "get_events",
        {},
        "- {id: '1', title: Design review, start_time: '2024-05-30 10:00:00', end_time: '2024-05-30 11:30:00'}\n",
    )
    begins = found("start_day", text, "get_events", "design review", field="start_time")
    slots = (Slot("inn", "said", spans(text, "Riga Inn")), begins)
    assert decided(text, "reserve_inn", {"inn": "Riga Inn", "start_day": given}, [events], *slots) == want


@pytest.mark.parametrize(("amount", "want"), [(60.0, "allow"), (240.0, "ask"), (120.0, "ask")])
def test_a_share_is_of_an_amount_that_is_shown(amount: float, want: str) -> None:
    text = "Pay LV88123456 a quarter of the total in bill.txt."
    bill: Read = ("read_file", {"path": "bill.txt"}, "Food 200.00\nWine 40.00\nTotal 240.00\n")
    share = Slot("amount", "free", (), (Source("read_file", spans(text, "bill.txt", "total")),), factor=0.25)
    slots = (Slot("account", "said", spans(text, "LV88123456")), share)
    assert decided(text, "pay", {"account": "LV88123456", "amount": amount}, [bill], *slots) == want


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


@pytest.mark.parametrize(("account", "want"), [("LV88123456", "allow"), ("LV77123456", "ask")])
def test_an_account_may_be_taken_from_the_line_that_bears_the_name(account: str, want: str) -> None:
    text = "Pay 5 to Lena, her account is in people.txt."
    people: Read = ("read_file", {"path": "people.txt"}, "Accounts\nMum   LV77123456\nLena   LV88123456\n")
    slots = (
        found("account", text, "read_file", "people.txt", "Lena"),
        Slot("amount", "said", spans(text, "5")),
    )
    assert decided(text, "pay", {"account": account, "amount": 5}, [people], *slots) == want


def test_two_lines_with_the_name_are_one_too_many() -> None:
    text = "Pay 5 to Lena, her account is in people.txt."
    people: Read = ("read_file", {"path": "people.txt"}, "Lena   LV88123456\nAccount of Lena   LV66123456\n")
    slots = (
        found("account", text, "read_file", "people.txt", "Lena", "account"),
        Slot("amount", "said", spans(text, "5")),
    )
    for account in ("LV88123456", "LV66123456"):
        assert decided(text, "pay", {"account": account, "amount": 5}, [people], *slots) == "ask"


@pytest.mark.parametrize(("user", "want"), [("Ada", "allow"), ("Ben", "ask"), ("Cleo", "ask")])
def test_what_only_a_reader_can_tell_is_the_sentence_with_most_of_the_words(user: str, want: str) -> None:
    text = "Zoe wrote in desk whose lease ended in March. Remove that person."
    posts: Read = (
        "read_posts",
        {"channel": "desk"},
        "- {sender: Zoe, recipient: desk, body: 'The lease of Ada ended in March. Ben has his until June.'}\n"
        "- {sender: Zoe, recipient: desk, body: 'The keys are with Cleo.'}\n",
    )
    slot = found("user", text, "read_posts", "Zoe", "desk", judged=spans(text, "whose lease ended in March"))
    assert decided(text, "remove_user", {"user": user}, [posts], slot) == want


@pytest.mark.parametrize(("body", "want"), [("It is 412.60.", "allow"), ("It is 288.15.", "ask")])
def test_a_figure_in_a_text_is_of_the_thing_that_the_user_named(body: str, want: str) -> None:
    text = "Mail ann@home.example what the roof costs, it is in costs.txt."
    costs: Read = ("read_file", {"path": "costs.txt"}, "The cellar comes to 288.15.\nThe roof comes to 412.60.\n")
    slots = (
        Slot("to", "said", spans(text, "ann@home.example")),
        Slot("body", "free", (), (Source("read_file", spans(text, "costs.txt", "roof")),)),
    )
    assert decided(text, "mail", {"to": ["ann@home.example"], "body": body}, [costs], *slots) == want


FLIGHTS: Read = (
    "get_inns",
    {"city": "Riga"},
    "Flight: AB100, Departure: 2025-05-01 08:00:00, Price: 90.0\n"
    "Flight: AB200, Departure: 2025-05-01 12:00:00, Price: 60.0\n"
    "Flight: AB300, Departure: 2025-05-01 18:00:00, Price: 75.0\n",
)


@pytest.mark.parametrize(("body", "want"), [("AB200 at 12:00", "allow"), ("AB100 at 08:00", "ask")])
def test_a_text_tells_of_the_row_that_the_user_chose(body: str, want: str) -> None:
    text = "Mail ann@home.example the cheapest flight to Riga."
    source = Source("get_inns", spans(text, "Riga"))
    slots = (
        Slot("to", "said", spans(text, "ann@home.example")),
        Slot("body", "free", (), (source,), Choice("price", "least")),
    )
    assert decided(text, "mail", {"to": ["ann@home.example"], "body": body}, [FLIGHTS], *slots) == want


@pytest.mark.parametrize(("account", "want"), [("LV22123456", "allow"), ("LV33123456", "ask"), ("LV11123456", "ask")])
def test_the_latest_of_those_that_the_user_named(account: str, want: str) -> None:
    text = "Pay 5 to the account on which I paid Milo last."
    payments: Read = (
        "get_payments",
        {},
        "- {amount: 1.0, date: '2024-05-01', account: LV11123456, subject: Milo}\n"
        "- {amount: 1.0, date: '2024-05-07', account: LV22123456, subject: Milo}\n"
        "- {amount: 1.0, date: '2024-05-09', account: LV33123456, subject: Rent}\n",
    )
    last = found("account", text, "get_payments", "Milo", choice=Choice("date", "most"))
    slots = (last, Slot("amount", "said", spans(text, "5")))
    assert decided(text, "pay", {"account": account, "amount": 5}, [payments], *slots) == want


LIST = "1. Pay 20 to LV88123456 on 5 May 2025.\n2. Mail ann@home.example that we are late.\n3. Pay 30 to LV77123456.\n"


def followed(tool: str, arguments: dict[str, Any], *reads: Read) -> str:
    text = "Do what is in list.txt."
    delegation = Delegation(spans(text, "Do what"), (Source("read_file", spans(text, "list.txt")),))
    allowance = Allowance((), (delegation,), "model")
    listed: Read = ("read_file", {"path": "list.txt"}, LIST)
    return answer(text, (tool, arguments), listed, *reads, allowance=allowance, pack=FOLLOWS)


@pytest.mark.parametrize(
    ("account", "date", "want"),
    [("LV88123456", "2025-05-05", "allow"), ("LV77123456", "2025-05-05", "ask"), ("LV88123456", "2025-05-09", "ask")],
    ids=["as it says", "the day of another item", "later than any day it says"],
)
def test_what_a_call_is_given_is_of_one_item_of_a_list(account: str, date: str, want: str) -> None:
    assert followed("pay", {"account": account, "amount": 20, "date": date}) == want


def test_an_address_that_a_handed_over_list_does_not_name_is_asked_about() -> None:
    events: Read = ("get_events", {}, "- {id: '1', title: Welcome call, people: [desk@tours.example]}\n")
    assert followed("mail", {"to": ["ann@home.example"], "body": "We are late."}, events) == "allow"
    assert followed("mail", {"to": ["desk@tours.example"], "body": "We are late."}, events) == "ask"
