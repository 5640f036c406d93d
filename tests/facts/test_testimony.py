"""What a user's words say of a fact that only the user can tell."""

from typing import Any

import pytest

from bylaw.facts.call_record import record_of
from bylaw.facts.entity import UNSEEN, Field, Saying
from bylaw.facts.ledger import Ledger
from bylaw.facts.schema_reader import SchemaReader
from bylaw.facts.seen import Testimony as Words
from bylaw.policy.tool import Tool
from bylaw.text.condition import is_meant
from bylaw.trace.event import Call, Message

SCHEMA = SchemaReader(None, {"refund": Tool("refund", "write")}, None).read()
IN_STATE = Field("in_state", "boolean", origin="user", sayings=(Saying(says=r"\bin[- ]state\b", value=True),))
REASON = Field(
    "reason",
    "enum",
    ("faulty", "changed_mind"),
    "user",
    sayings=(
        Saying(says="broken|faulty", value="faulty", about="order_id"),
        Saying(says="changed my mind", value="changed_mind", about="order_id"),
    ),
)


def read(field: Field, *said: str, **arguments: Any) -> Any:
    ledger = Ledger(SCHEMA)
    ledger.observe_all(0, [Message("user", text, number) for number, text in enumerate(said)])
    call = Call("refund", arguments, turn=len(said))
    return Words(ledger, record_of(call, len(said), len(said), SCHEMA.tools["refund"]), {}).read(field)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("I will be in state that day.", True),
        ("A telehealth visit please. I will not be in state that day.", UNSEEN),
        ("I won't be in state.", UNSEEN),
        ("I’m never in state on Mondays.", UNSEEN),
        ("If I am in state that day, book it.", UNSEEN),
        ("Book it as long as I am in state.", UNSEEN),
        ("I do not mind the hour, and I am in state.", True),
        ("I am not sure about the hour. I am in state.", True),
        ("I am in state, let me know if you need anything else.", True),
        ("I will not be in state on Monday, but on Tuesday I am in state.", True),
    ],
)
def test_what_is_negated_or_depends_is_not_stated(text: str, value: Any) -> None:
    assert read(IN_STATE, text) == value


def test_a_reason_belongs_to_the_thing_it_was_given_for() -> None:
    text = "Two orders, please. A1001 came broken.\nI want the money back. For B2002 I changed my mind."
    assert read(REASON, text, order_id="A1001") == "faulty"
    assert read(REASON, text, order_id="B2002") == "changed_mind"
    assert read(REASON, text, order_id="C3003") == UNSEEN
    assert read(REASON, text) == UNSEEN


def test_a_later_message_about_another_thing_changes_nothing() -> None:
    said = ("A1001 came broken.", "As for B2002, I changed my mind.")
    assert read(REASON, *said, order_id="A1001") == "faulty"


def test_the_place_of_a_phrase_is_found_in_any_language() -> None:
    text = "İİİİ. I will not be in state."
    start = text.index("in state")
    assert not is_meant(text, start, start + 8)


def test_what_the_user_said_last_counts() -> None:
    said = ("A1001 came broken.", "Well, A1001: I changed my mind.")
    assert read(REASON, *said, order_id="A1001") == "changed_mind"
    assert read(REASON, *reversed(said), order_id="A1001") == "faulty"


@pytest.mark.parametrize(
    ("later", "value"),
    [
        ("No, A1001 is not broken.", UNSEEN),
        ("A1001: only if it is faulty.", UNSEEN),
        ("About A1001, I never changed my mind.", "faulty"),
        ("B2002 is not broken.", "faulty"),
        ("A1001 is not broken. Sorry, A1001 is faulty.", "faulty"),
    ],
)
def test_what_was_said_and_is_denied_later_is_not_known(later: str, value: Any) -> None:
    assert read(REASON, "A1001 came broken.", later, order_id="A1001") == value
