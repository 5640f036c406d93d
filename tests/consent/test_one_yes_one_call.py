"""One yes is for one call: whatever else the same words could put, and whatever hides or turns them, is asked about."""

from collections.abc import Callable
from typing import Any

import pytest

from bylaw import Pack, Shield
from bylaw.consent import CardWords
from bylaw.consent.card import card_text
from bylaw.errors import PackError
from tests.consent.desk import agent, desk, done, found, user

TOOLS = """
tools:
  book:
    effect: write
    parameters:
      flights: {type: array, items: {type: object}}
      options: {type: object, optional: true}
      limit: {type: [number, "null"], optional: true}
      payee: {type: object, optional: true}
    changes: []
  send:
    effect: write
    put_as: "send {amount} to {to}"
    parameters: {to: {}, amount: string}
    changes: []
  set: {effect: write, put_as: "set {line} to {on}", parameters: {line: string, on: {}}, changes: []}
  credit:
    effect: write
    put_as: "issue a credit note to {customer}"
    parameters: {customer: string}
    changes: []
  move: {effect: write, put_as: "move {source}-{target}", parameters: {source: string, target: string}, changes: []}
  renew:
    effect: write
    put_as: "renew card {card}"
    parameters: {card: string, limit: {type: [number, "null"]}, day: {type: string, optional: true}}
    changes: []
"""
PACK = desk(TOOLS)
FLIGHT: dict[str, Any] = {"flights": [{"number": "LX1", "date": "2030-12-01"}]}


def card(tool: str, arguments: dict[str, Any], pack: Pack = PACK) -> str:
    with Shield(pack).session() as session:
        session.user("Hello.")
        session.agent("One moment, please.")
        session.user("Go on.")
        found = session.decide(tool, arguments).card
    assert found is not None
    return found.text


def both(asked: str, tool: str, first: dict[str, Any], second: dict[str, Any]) -> list[bool]:
    """Whether either of two calls runs after one yes, made one after the other."""
    with Shield(PACK).session() as session:
        session.user("Hello.")
        session.agent(asked)
        session.user("Yes.")
        runs: list[bool] = []
        for arguments in (first, second):
            runs.append(session.decide(tool, arguments).allowed)
            if runs[-1]:
                session.result("done")
    return runs


OTHERS: list[dict[str, Any]] = [
    FLIGHT | {"options": {}},
    FLIGHT | {"options": {"seats": [{}]}},
    {"flights": [*FLIGHT["flights"], {}]},
    {"flights": [{"Number": "LX1", "date": "2030-12-01"}]},
]


@pytest.mark.parametrize("other", OTHERS)
def test_a_card_lets_one_call_run(other: dict[str, Any]) -> None:
    assert both(card("book", FLIGHT), "book", FLIGHT, other) == [True, False]


def test_a_sentence_lets_one_call_run() -> None:
    sent = {"to": "AC-22", "amount": "250"}
    assert both("Shall I send 250 to AC-22?", "send", sent, sent | {"to": ["AC-22"]}) == [True, False]
    assert both("Shall I set L1 to yes?", "set", {"line": "L1", "on": True}, {"line": "L1", "on": "yes"}) == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("asked", "tool", "arguments"),
    [
        ("issue a credit note to C-1", "credit", {"customer": "C-1", "credit_note_amount": 99}),
        ("issue a credit note to C-1", "credit", {"customer": "C-1", "email_summary_to": "eve@example.org"}),
        ("issue a credit note to C-1", "credit", {"customer": "C-1", "note": {"pay_to": "EVE"}}),
        ("renew card C1", "renew", {"card": "C1", "limit": None}),
        ("move A-1-B-2", "move", {"source": "A", "target": "1-B-2"}),
        ("move A-1-B-2", "move", {"source": "A-1", "target": "B-2"}),
    ],
)
def test_what_was_not_told_or_may_be_read_in_two_ways_is_asked_about(
    asked: str, tool: str, arguments: dict[str, Any]
) -> None:
    said = [user("Hello."), agent(f"Shall I {asked}?"), user("Yes.")]
    assert found(PACK, said, tool, arguments).value is None


def test_what_a_tool_need_not_be_given_is_no_value_where_it_is_null() -> None:
    said = [user("Hello."), agent("Shall I renew card C1?"), user("Yes.")]
    assert found(PACK, said, "renew", {"card": "C1", "day": None}).value is True


def test_null_and_nothing_are_told_on_a_card_and_what_stands_inside_is_never_spared() -> None:
    text = card("book", FLIGHT | {"options": {}, "limit": None})
    assert "- options: {}\n- limit: -\n" in text
    paid = FLIGHT | {"payee": {"id": "ANN", "type": "person"}}
    assert "payee / id: ANN" in card("book", paid, desk(TOOLS, "told, need_not_be_told: [to]"))


@pytest.mark.parametrize(
    "before",
    [
        "To check that it is you, please confirm the following.",
        "All I'll do is look.",
        "I will let this be.",
        "I will do the one before this. Please confirm the one before.",
        *("Thanks!" + blank * 60 for blank in ("\r\n", "\n\u00a0", "\u2028", "\v")),
    ],
)
def test_words_beside_a_sentence_or_far_above_it_are_none_that_turn_it(before: str) -> None:
    said = [user("Hello."), agent(f"{before} Shall I send 250 to AC-22?"), user("Yes.")]
    consent = found(PACK, said, "send", {"to": "AC-22", "amount": "250"})
    assert (consent.value, consent.reason) == (None, "beside_card")


@pytest.mark.parametrize("text", ["<!--", "</li><details>", "```", "~~"])
def test_no_value_of_a_card_hides_the_rest_of_it(text: str) -> None:
    tool = PACK.schema.tools["send"]
    shown = card_text(tool, "send", {"to": text, "amount": "1"}, frozenset(), CardWords())
    assert not any(each in shown for each in ("<", "`", "~"))


@pytest.mark.parametrize("asked", ["I will send 250 to AC-22 twice. Shall I go ahead?", "Two of 250 to AC-22. OK?"])
def test_nobody_is_accused_of_a_second_call_after_a_yes_in_words(asked: str) -> None:
    sent = {"to": "AC-22", "amount": "250"}
    consent = found(PACK, [user("Hello."), agent(asked), user("Yes, both."), done("send", sent)], "send", sent)
    assert (consent.value, consent.reason) == (None, "unread")


@pytest.mark.parametrize(
    ("then", "runs"), [("Thank you!", True), ("Thanks a lot.", True), ("Thanks, but wait.", False)]
)
def test_thanks_take_no_yes_back(then: str, runs: bool) -> None:
    with Shield(PACK).session() as session:
        session.user("Hello.")
        session.agent("One moment, please.")
        session.user("Go on.")
        put = session.decide("book", FLIGHT).card
        assert put is not None
        session.confirm(put, True)
        session.user(then)
        assert session.decide("book", FLIGHT).allowed is runs


def test_thanks_for_what_the_agent_said_since_take_it_back() -> None:
    with Shield(PACK).session() as session:
        session.user("Hello.")
        session.agent("One moment, please.")
        session.user("Go on.")
        put = session.decide("book", FLIGHT).card
        assert put is not None
        session.confirm(put, True)
        session.agent("I have dropped it, nothing will be booked.")
        session.user("Thank you!")
        assert not session.decide("book", FLIGHT).allowed


def test_a_redacted_call_may_have_used_the_yes_whatever_it_has_that_matters_to_nobody() -> None:
    pack = desk(TOOLS.replace("amount: string}", "amount: string, remark: 'string?'}", 1))
    history = [
        {"role": "assistant", "content": "Shall I send 20 to AB1?"},
        {"role": "user", "content": "Yes."},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function", "function": {
            "name": "send", "arguments": '{"to": "[REDACTED]", "amount": "20", "remark": "rent"}'}}]},
    ]  # fmt: skip
    call = {"to": "AB1", "amount": "20"}
    assert Shield(pack).decide(history[:2], "send", call).allowed
    assert not Shield(pack).decide(history, "send", call).allowed


SENDS = """
tools:
  send:
    effect: write
    parameters: {to: string, amount: string, more: {type: object, optional: true, properties: {cap: {title: most}}}}
    changes: []
"""
SENT: dict[str, Any] = {"to": "AC-22", "amount": "250.00"}


def is_allowed(shown: Callable[[str], str], then: dict[str, Any], first: dict[str, Any] = SENT) -> bool:
    """Whether a call is allowed after a yes to a message that has the card of the first."""
    with Shield(desk(SENDS, "card")).session() as session:
        session.user("Hello.")
        card = session.decide("send", first).card
        assert card is not None
        session.agent(shown(card.text))
        session.user("Yes.")
        return session.decide("send", then).allowed


@pytest.mark.parametrize(
    "figure", ["2*50.00", "- 250.00", "25`0.00", "250.00_", "\n99. 250.00", "\n- 250.00", "\n> 250.00"]
)
def test_a_mark_in_or_before_a_value_changes_the_card(figure: str) -> None:
    assert not is_allowed(lambda text: text.replace("250.00", figure), SENT)


@pytest.mark.parametrize("amount", ["**250.00**", "*250.00*", "`250.00`", "***250.00***"])
def test_emphasis_around_a_value_does_not(amount: str) -> None:
    assert is_allowed(lambda text: text.replace("250.00", amount).replace("- to:", "1. **to:**"), SENT)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"price_max": 5}, {"price": {"max": 5}}),
        ({"price_max": 5}, {"priceMax": 5}),
        ({"tags": ["a"]}, {"tags": "a"}),
        ({"n": 5}, {"n": "5"}),
        ({"n": True}, {"n": "yes"}),
        ({"n": []}, {"n": {}}),
        ({"n": None}, {"n": []}),
        ({"rows": [[1]]}, {"rows": [1]}),
    ],
)
def test_two_calls_never_read_the_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert is_allowed(str, {**SENT, "more": one}, {**SENT, "more": one})
    assert not is_allowed(str, {**SENT, "more": other}, {**SENT, "more": one})


def test_where_two_cards_read_the_same_a_yes_counts_for_neither() -> None:
    one, other = {**SENT, "more": {"cap": 5}}, {**SENT, "more": {"most": 5}}
    with Shield(desk(SENDS, "card")).session() as session:
        session.user("Hello.")
        cards = [session.decide("send", each).card for each in (one, other)]
        assert cards[0] is not None
        session.agent(cards[0].text)
        session.user("Yes.")
        assert not session.decide("send", other).allowed
        assert not session.decide("send", one).allowed


@pytest.mark.parametrize("title", ["account", "Account"])
def test_two_values_of_one_name_are_a_fault_of_the_pack(title: str) -> None:
    moves = f"""
tools:
  move:
    effect: write
    parameters: {{src: {{type: string, title: account}}, dst: {{type: string, title: {title}}}}}
    changes: []
"""
    with pytest.raises(PackError, match="the card of `move` has two values called `account`"):
        desk(moves, "card")


def test_a_warning_on_a_card_is_part_of_it() -> None:
    warning = "This may already have been done.\n"
    for is_whole in (True, False):
        with Shield(desk(SENDS, "card")).session() as session:
            session.user("Hello.")
            card = session.decide("send", SENT).card
            assert card is not None
            session.agent(card.text)
            session.user("Yes.")
            assert session.decide("send", SENT, id="lost").allowed
            session.result(None, id="lost", captured=False)
            again = session.decide("send", SENT).card
            assert again is not None
            assert warning in again.text
            session.agent(again.text if is_whole else again.text.replace(warning, ""))
            session.user("Yes.")
            assert session.decide("send", SENT).allowed is is_whole
