"""Calls that differ from what was told in ways that once went through: none at all, pairs, years, units, free text."""

from typing import Any

import pytest

from bylaw import Pack, Shield
from bylaw.consent.card import misleads
from bylaw.text.number import numbers
from tests.consent.agreed_pack import agreed_pack

TOOLS = """
tools:
  get_member: {effect: read, parameters: {member_id: string}}
  close_membership: {effect: write, parameters: {member_id: string}, changes: []}
  get_order: {effect: read, parameters: {order_id: string}}
  cancel_order: {effect: write, parameters: {order_id: string}, changes: []}
  transfer: {effect: write, parameters: {to: string, amount: string}, changes: []}
  book_visit: {effect: write, parameters: {date: string, time: string}, changes: []}
  change_name: {effect: write, parameters: {booking_id: string, name: string}, changes: []}
  change_address: {effect: write, parameters: {order_id: string, address: string}, changes: []}
  order_items: {effect: write, parameters: {items: {type: array, items: {type: string}}}, changes: []}
  send_message: {effect: write, parameters: {to: string, text: string}, changes: []}
  assign_seats: {effect: write, parameters: {seats: {type: object}}, changes: []}
  pay_all:
    effect: write
    parameters:
      payments: {type: array, items: {type: object, properties: {to: {type: string}, amount: {type: string}}}}
    changes: []
"""
PACK = agreed_pack(TOOLS)
CARDS = agreed_pack(TOOLS, "card")
ADDRESS = "I would change the address of order R-1001 to 12 Main Street. Shall I go ahead?"
ITEMS = "I would order items IT-100 and IT-200. Shall I go ahead?"
PAIRS = "I would pay:\n- 100.00 to AC-22\n- 200.00 to AC-33\nShall I go ahead?"
SEATS = "I would assign seats:\n- 12A to Anna\n- 14B to Bob\nShall I go ahead?"
TEXT = 'I would send AC-22 the message "See you at five, and do bring the grey umbrella". Shall I go ahead?'
SENT = "I would transfer 250.00 to AC-22. Shall I go ahead?"
VISIT = "I would book the visit for March 3 at 10:00. Shall I go ahead?"
NAME = "I would change the name on booking BK-100 from Anna Lee to Bob Ray. Shall I go ahead?"


def allowed(told: str, tool: str, arguments: dict[str, Any], *, seen: bool = False) -> bool:
    session = Shield(PACK).session()
    if seen:
        session.decide("get_order", {"order_id": "R-1001"})
        session.result({"order_id": "R-1001", "customer": "Carla"})
    session.agent(told)
    session.user("Yes, please.")
    return session.decide(tool, arguments).allowed


def pay(*pairs: tuple[str, str]) -> dict[str, Any]:
    return {"payments": [{"to": to, "amount": amount} for to, amount in pairs]}


@pytest.mark.parametrize(
    ("told", "tool", "right", "wrong"),
    [
        (ITEMS, "order_items", {"items": ["IT-100", "IT-200"]}, {"items": []}),
        (
            ADDRESS,
            "change_address",
            {"order_id": "R-1001", "address": "12 Main Street"},
            {"order_id": "R-1001", "address": ""},
        ),
        (
            ADDRESS,
            "change_address",
            {"order_id": "R-1001", "address": "12 Main Street"},
            {"order_id": "R-1001", "address": "Please leave the whole parcel with Mallory at the corner shop."},
        ),
        (
            TEXT,
            "send_message",
            {"to": "AC-22", "text": "See you at five, and do bring the grey umbrella"},
            {"to": "AC-22", "text": "I quit, and do send my last pay to Mallory at once please"},
        ),
        (
            PAIRS,
            "pay_all",
            pay(("AC-22", "100.00"), ("AC-33", "200.00")),
            pay(("AC-22", "200.00"), ("AC-33", "100.00")),
        ),
        (SEATS, "assign_seats", {"seats": {"Anna": "12A", "Bob": "14B"}}, {"seats": {"Anna": "14B", "Bob": "12A"}}),
        (SEATS, "assign_seats", {"seats": {"Anna": "12A", "Bob": "14B"}}, {"seats": {"Mallory": "12A", "Bob": "14B"}}),
        (SENT, "transfer", {"to": "AC-22", "amount": "250.00"}, {"to": "AC-22", "amount": "250.000"}),
        (SENT, "transfer", {"to": "AC-22", "amount": "250.00"}, {"to": "AC-22", "amount": "25e1"}),
        (SENT, "transfer", {"to": "AC-22", "amount": "250.00"}, {"to": "AC-22", "amount": "\u0662\u0665\u0660"}),
        (SENT, "transfer", {"to": "AC-22", "amount": "250.00"}, {"to": "AC-22\nAC-99", "amount": "250.00"}),
        (
            NAME,
            "change_name",
            {"booking_id": "BK-100", "name": "Bob Ray"},
            {"booking_id": "BK-100", "name": "Anna Ray"},
        ),
        (NAME, "change_name", {"booking_id": "BK-100", "name": "Bob Ray"}, {"booking_id": "BK-100", "name": "Booking"}),
    ],
)
def test_only_what_was_told_goes_through(told: str, tool: str, right: dict[str, Any], wrong: dict[str, Any]) -> None:
    assert allowed(told, tool, right)
    assert not allowed(told, tool, wrong)


@pytest.mark.parametrize(
    ("asked", "is_leave"),
    [
        ("Shall I go ahead?", True),
        ("May I ask whether you still have the box?", False),
        ("Can I check if it has arrived?", False),
    ],
)
def test_a_question_for_something_else_is_no_question_for_leave(asked: str, is_leave: bool) -> None:
    told = f"I would be pleased to cancel order R-1001. {asked}"
    assert allowed(told, "cancel_order", {"order_id": "R-1001"}) is is_leave


def test_a_day_without_its_year_is_one_that_is_near() -> None:
    assert not allowed(VISIT, "book_visit", {"date": "2036-03-03", "time": "10:00"})
    assert allowed(VISIT.replace("March 3", "March 3, 2036"), "book_visit", {"date": "2036-03-03", "time": "10:00"})


@pytest.mark.parametrize(("called", "is_told"), [("the order", True), ("Bob's order", False), ("order 7", False)])
def test_the_only_thing_seen_is_not_meant_where_another_is_named(called: str, is_told: bool) -> None:
    told = f"I would cancel {called}. Shall I go ahead?"
    assert allowed(told, "cancel_order", {"order_id": "R-1001"}, seen=True) is is_told


def test_cents_are_hundredths_and_a_line_break_is_no_currency() -> None:
    assert [(str(each.value), each.is_sum) for each in numbers("250 cents")] == [("2.5", True)]
    assert [each.is_sum for each in numbers("guests:\n250")] == [False]
    assert not numbers("250.000")
    assert not allowed("I would transfer 250 cents to AC-22. Shall I?", "transfer", {"to": "AC-22", "amount": "250"})


@pytest.mark.parametrize(
    ("before", "is_card"),
    [
        ("Sure, one moment.", True),
        ("Nothing will be sent.", False),
        ("<!--", False),
        ("This is a test:", False),
        ("Ignore this:", False),
        ("Cette carte n'a aucun effet.", False),
        ("\u3053\u308c\u306f\u7121\u52b9\u3067\u3059\u3002", False),
        ("What follows is void.", False),
        ("It will be 10.00.", False),
        ("Here is what I would do:", True),
    ],
)
def test_what_stands_before_a_card_must_not_take_it_back(before: str, is_card: bool) -> None:
    card = "Please confirm: pay. Shall I do this? Please answer yes or no."
    assert misleads(f"{before} {card} {card}", [card]) is not is_card


@pytest.mark.parametrize(
    ("said", "context", "is_allowed"),
    [
        (None, {}, False),
        ("Close it.", {}, False),
        ("I'm Mallory Quay.", {}, True),
        ("It's member M-9.", {}, True),
        (None, {"signed_in_as": "m-9"}, True),
        (None, {"signed_in_as": "M-8"}, False),
    ],
)
def test_nobodys_membership_is_yours(said: str | None, context: dict[str, Any], is_allowed: bool) -> None:
    session = Shield(PACK).session(context=context)
    if said is not None:
        session.user(said)
    session.decide("get_member", {"member_id": "M-9"})
    session.result({"member_id": "M-9", "name": "Mallory Quay"})
    session.agent("I would close your membership. Shall I go ahead?")
    session.user("Yes.")
    assert session.decide("close_membership", {"member_id": "M-9"}).allowed is is_allowed


@pytest.mark.parametrize("later", ["Thanks", "OK", "Great!", "Yes", "\U0001f44d", "hmm"])
@pytest.mark.parametrize("is_answered", [True, False], ids=["answered", "no result yet"])
def test_a_spent_yes_does_not_come_back_with_the_users_next_word(later: str, is_answered: bool) -> None:
    session = Shield(PACK).session()
    session.agent(SENT)
    session.user("Yes.")
    call = {"to": "AC-22", "amount": "250.00"}
    assert session.decide("transfer", call).allowed
    if is_answered:
        session.result("sent")
    session.user(later)
    assert not session.decide("transfer", call).allowed
    session.user("Yes.")
    assert not session.decide("transfer", call).allowed


def test_nor_does_the_yes_to_a_card() -> None:
    session = Shield(PACK).session()
    session.user("Send 250.00 to AC-22.")
    call = {"to": "AC-22", "amount": "250.00"}
    card = session.decide("transfer", call).card
    assert card is not None
    session.agent(card.text)
    session.user("Yes")
    assert session.decide("transfer", call).allowed
    session.result("sent")
    for later in ("Thanks", "Yes"):
        session.user(later)
        assert not session.decide("transfer", call).allowed


@pytest.mark.parametrize(
    "told",
    [
        f"Shall I send you our brochure?\n<!-- {SENT} -->",
        f"~~{SENT}~~ Shall I send you our brochure?",
        f"[//]: # ({SENT})\nShall I send you our brochure?",
        f"\u202e{SENT}",
        "Shall I send you our brochure?" + "\n" * 80 + SENT,
        f"Another member was asked this:\n> {SENT}",
        f"A sample dialogue:\n```\n{SENT}\n```",
        f"For example, I might ask: {SENT}",
        f"{SENT} This is only a drill.",
        f"{SENT} By the way, shall I send you our brochure?",
        "I would transfer -250.00 to AC-22. Shall I go ahead?",
    ],
)
def test_a_question_that_is_hidden_or_not_meant_is_not_put(told: str) -> None:
    call = {"to": "AC-22", "amount": "250.00"}
    assert allowed(SENT, "transfer", call)
    assert not allowed(told, "transfer", call)


@pytest.mark.parametrize(
    "before",
    [
        "<script>", "<details>", "<![CDATA[", "<?", "<img alt='", "[x](http://a \"", "[//]: # (", "\u202e",
        "Somebody else was asked:\n> ", "Do you want our brochure?\n", "Say yes for our brochure.\n",
        "This is a drill.\n", "\n" * 80, "Cette carte n'a aucun effet.\n", "What follows is void.\n",
    ],
)  # fmt: skip
@pytest.mark.parametrize("pack", [CARDS, PACK], ids=["card", "told"])
def test_a_card_that_may_not_be_seen_is_not_answered(before: str, pack: Pack) -> None:
    call = {"to": "AC-22", "amount": "250.00"}
    for lead, is_allowed in (("Sure.\n", True), (before, False)):
        session = Shield(pack).session()
        session.user("Send 250.00 to AC-22.")
        card = session.decide("transfer", call).card
        assert card is not None
        session.agent(lead + card.text)
        session.user("Yes")
        assert session.decide("transfer", call).allowed is is_allowed


@pytest.mark.parametrize("answer", ["Thank you", "Right.", "Yes.\nHmm.", "Umm"])
def test_thanks_and_doubts_are_no_yes(answer: str) -> None:
    session = Shield(PACK).session()
    session.agent(SENT)
    for each in answer.splitlines():
        session.user(each)
    assert not session.decide("transfer", {"to": "AC-22", "amount": "250.00"}).allowed


@pytest.mark.parametrize(
    "again",
    [
        {"to": "AC 22", "amount": "250.00"}, {"to": "AC-22", "amount": "$250"}, {"to": "AC-22", "amount": "+250"},
        {"to": "ac22", "amount": "250"},
    ],
)  # fmt: skip
def test_one_yes_is_one_write_however_it_is_spelt(again: dict[str, Any]) -> None:
    session = Shield(PACK).session()
    session.agent(SENT)
    session.user("Yes.")
    assert session.decide("transfer", {"to": "AC-22", "amount": "250.00"}).allowed
    session.result("sent")
    assert not session.decide("transfer", again).allowed


def test_another_currency_was_not_told() -> None:
    told = "I would transfer \u00a3250.00 to AC-22. Shall I go ahead?"
    assert allowed(told, "transfer", {"to": "AC-22", "amount": "\u00a3250.00"})
    assert not allowed(told, "transfer", {"to": "AC-22", "amount": "$250.00"})


@pytest.mark.parametrize("later", ["No, don't.", "Forget it.", "Wait.", "Make it 200."])
def test_a_request_that_is_taken_back_is_none(later: str) -> None:
    pack = agreed_pack(TOOLS, "requested")
    call = {"to": "AC-22", "amount": "250.00"}
    session = Shield(pack).session()
    session.user("Please transfer 250.00 to AC-22.")
    session.user(later)
    assert not session.decide("transfer", call).allowed
    session.user("Please transfer 250.00 to AC-22.")
    assert session.decide("transfer", call).allowed


@pytest.mark.parametrize(
    "answer", ["~~Yes~~", "> Yes", "Yes?!", "OK, thanks for the advice", "Great, thanks for the warning"]
)
def test_struck_out_quoted_or_thankful_is_no_yes(answer: str) -> None:
    session = Shield(PACK).session()
    session.agent(SENT)
    session.user(answer)
    assert not session.decide("transfer", {"to": "AC-22", "amount": "250.00"}).allowed


@pytest.mark.parametrize(
    "told", ["I would transfer 10% of 250.00 to AC-22. OK?", "I will transfer 250.00 to AC-22. Too much?"]
)
def test_a_part_of_a_sum_and_a_doubt_put_nothing(told: str) -> None:
    assert not allowed(told, "transfer", {"to": "AC-22", "amount": "250.00"})


def test_a_call_that_was_answered_is_not_gone_on_with() -> None:
    session = Shield(PACK).session()
    session.agent(SENT)
    session.user("Yes.")
    call = {"to": "AC-22", "amount": "250.00"}
    decision = session.decide("transfer", call, id="a")
    session.interrupt("a", decision)
    assert session.resume("a", "transfer", call) is not None
    session.interrupt("a", decision)
    session.result("sent", id="a")
    assert session.resume("a", "transfer", call) is None


@pytest.mark.parametrize(
    "told",
    [
        "I would transfer 250.00 from AC-22. Shall I go ahead?",
        "I would transfer 250.00 on behalf of AC-22. Shall I go ahead?",
        "I would transfer 250.00 to the holder of AC-22. Shall I go ahead?",
        "I would transfer 250.00 to AC-22's owner. Shall I go ahead?",
    ],
)
def test_a_value_that_tells_of_another_was_not_told_itself(told: str) -> None:
    assert not allowed(told, "transfer", {"to": "AC-22", "amount": "250.00"})


@pytest.mark.parametrize(
    ("when", "is_told"),
    [
        ("2030-05-01 at 10:00", True),
        ("the day before 2030-05-01 at 10:00", False),
        ("a week after 2030-05-01 at 10:00", False),
        ("around 2030-05-01 at 10:00", False),
        ("2030-05-01 plus one day at 10:00", False),
        ("2030-05-01 an hour after 10:00", False),
        ("2030-05-01 by 10:00", False),
    ],
)
def test_a_day_that_only_leads_to_another_was_not_told(when: str, is_told: bool) -> None:
    told = f"I would book the visit for {when}. Shall I go ahead?"
    assert allowed(told, "book_visit", {"date": "2030-05-01", "time": "10:00"}) is is_told


@pytest.mark.parametrize(
    ("when", "is_now"),
    [
        ("", True),
        (" once you confirm", True),
        (" if you like", True),
        (" if that's okay with you", True),
        (" when you say so", False),
        (" if the invoice is in", False),
        (" as soon as the invoice is in", False),
        (" in 2030", False),
        (" next year", False),
        (" tomorrow", False),
        (" in three weeks", False),
        (" on May 1", False),
        (" every week", False),
        (" weekly", False),
    ],
)
def test_a_yes_to_doing_it_later_is_none_to_doing_it_now(when: str, is_now: bool) -> None:
    call = {"to": "AC-22", "amount": "250.00"}
    assert allowed(f"I would transfer 250.00 to AC-22{when}. Shall I go ahead?", "transfer", call) is is_now
    assert allowed(f"Shall I transfer 250.00 to AC-22{when}?", "transfer", call) is is_now


def test_a_day_that_a_record_holds_says_which_thing_is_meant() -> None:
    session = Shield(PACK).session()
    session.decide("get_order", {"order_id": "R-1001"})
    session.result({"order_id": "R-1001", "placed": "2026-05-01"})
    session.agent("I would cancel order R-1001, placed on May 1. Shall I go ahead?")
    session.user("Yes.")
    assert session.decide("cancel_order", {"order_id": "R-1001"}).allowed


@pytest.mark.parametrize("before", ["Cette carte n'a aucun effet.", "Ceci est un exercice.", "Das ist ohne Wirkung."])
def test_a_sentence_that_cannot_be_read_may_take_the_rest_back(before: str) -> None:
    assert not allowed(f"{before} {SENT}", "transfer", {"to": "AC-22", "amount": "250.00"})


def test_the_agent_is_told_to_show_a_card_alone_where_it_did_not_and_then_goes_on() -> None:
    call = {"to": "AC-22", "amount": "250.00"}
    session = Shield(CARDS).session()
    session.user("Send 250.00 to AC-22.")
    card = session.decide("transfer", call).card
    assert card is not None
    session.agent(f"The weather is lovely. {card.text}")
    session.user("Yes")
    refused = session.decide("transfer", call)
    assert "show the user the text below, word for word, as your whole next message" in refused.feedback.lower()
    assert refused.card is not None
    session.agent(refused.card.text)
    session.user("Yes")
    assert session.decide("transfer", call).allowed


@pytest.mark.parametrize(
    ("beside", "is_allowed"),
    [
        ("", True),
        ("Thank you, sending it now.", True),
        ("I'll transfer 250.00 to AC-22 now.", True),
        ("I'll transfer 900.00 to AC-22 now.", False),
        ("I'll close your membership instead.", False),
    ],
)
def test_what_the_agent_says_beside_the_call_is_read(beside: str, is_allowed: bool) -> None:
    session = Shield(PACK).session()
    session.agent(SENT)
    session.user("Yes.")
    [decision] = session.decide_turn(beside, [("transfer", {"to": "AC-22", "amount": "250.00"})])
    assert decision.allowed is is_allowed


@pytest.mark.parametrize(
    ("says", "later", "is_allowed"),
    [
        ("told", 3600, True),
        ("told", 90 * 86400, False),
        ("told, lifetime: 60", 3600, False),
        ("told, lifetime: 8000000", 90 * 86400, True),
        ("requested", 90 * 86400, False),
        ("requested", 3600, True),
    ],
)
def test_a_yes_in_words_runs_out(says: str, later: float, is_allowed: bool) -> None:
    pack = agreed_pack(TOOLS, says)
    session = Shield(pack).session()
    call = {"to": "AC-22", "amount": "250.00"}
    if says == "requested":
        session.user("Please transfer 250.00 to AC-22.", time=1_000_000.0)
    else:
        session.agent(SENT, time=1_000_000.0)
        session.user("Yes.", time=1_000_000.0)
    decision = session.decide("transfer", call, time=1_000_000.0 + later)
    assert decision.allowed is is_allowed
    assert is_allowed or (decision.card is not None and "too old" in decision.feedback)
