"""When a user message states a value: normalised equality, and for booleans only the phrases of the pack."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.facts.entity import ABSENT, UNSEEN, Field
from bylaw.facts.ledger import Ledger
from bylaw.facts.schema_reader import SchemaReader
from tests.examples import examples

PLAN = Field("plan", "boolean", claims=(("true", ("on a payment plan",)), ("false", ("no payment plan",))))
TIER = Field("tier", "enum", ("gold", "silver"), claims=(("gold", ("highest level",)),))

SCHEMA = SchemaReader(None, {}, None).read()


def claim(field: Field, value: Any, said: Sequence[tuple[int, str]], before: int) -> tuple[int, str] | None:
    ledger = Ledger(SCHEMA)
    ledger.said += said
    return ledger.claim(field, value, before)


def claims(field: Field, value: Any, text: str) -> bool:
    return claim(field, value, [(0, text)], 1) is not None


@pytest.mark.parametrize(
    ("field", "value", "text", "wanted"),
    [
        (Field("id"), "P001", "I am p001.", True),
        (Field("id"), "P001", "I am P0012", False),
        (Field("id"), "P001", "XP001", False),
        (Field("id"), "basic economy", "it is Basic-Economy, sorry", True),
        (Field("id"), "basic_economy", "it is basic   economy", True),
        (Field("id"), "a", "a word of one letter is no claim", False),
        (TIER, "gold", "I'm a Gold member", True),
        (TIER, "gold", "I have golden hair", False),
        (TIER, "gold", "I am on the highest level", True),
        (TIER, "silver", "I am on the highest level", False),
        (TIER, UNSEEN, "I'm silver", True),
        (TIER, UNSEEN, "I'm bronze", False),
        (PLAN, True, "I'm on a payment plan already", True),
        (PLAN, True, "true", False),
        (PLAN, False, "there is no payment plan", True),
        (PLAN, True, "there is no payment plan", False),
        (PLAN, UNSEEN, "there is no payment plan", True),
        (Field("flag", "boolean"), True, "true true true", False),
        (Field("sum", "money"), Decimal("45.00"), "it was $45", True),
        (Field("sum", "money"), Decimal("45.00"), "it was 45.00 dollars", True),
        (Field("sum", "money"), Decimal("45.00"), "it was 45.50", False),
        (Field("sum", "money"), Decimal("45.00"), "it was 145", False),
        (Field("sum", "money"), Decimal("45.00"), "it was 45,000", False),
        (Field("sum", "money"), Decimal("45.50"), "it was 45.5", False),
        (Field("sum", "money"), Decimal("1250.75"), "it was 1,250.75.", True),
        (Field("sum", "number"), 3.5, "3.50 exactly", True),
        (Field("day", "date"), date(2025, 3, 4), "on 2025-03-04", True),
        (Field("day", "date"), date(2025, 3, 4), "on March 4th", True),
        (Field("day", "date"), date(2025, 3, 4), "on the 4th of March", True),
        (Field("day", "date"), date(2025, 3, 4), "on 3/4/2025", True),
        (Field("day", "date"), date(2025, 3, 4), "on 03/04/25", True),
        (Field("day", "date"), date(2025, 3, 4), "on March 14", False),
        (Field("day", "date"), date(2025, 3, 4), "on 4 May", False),
        (Field("day", "date"), date(2025, 5, 4), "on 4 May", True),
        (Field("at", "datetime"), datetime(2025, 3, 4, 9), "on March 4", False),
        (Field("count", "integer"), 3, "I have 3", False),
        (Field("list", "list"), ["visits"], "visits", False),
        (Field("id"), None, "None", False),
        (Field("id"), ABSENT, "absent", False),
        (Field("id"), UNSEEN, "anything", False),
        (Field("id"), "a.b(c", "it is a.b(c", True),
        (Field("id"), "a.b(c", "it is axb(c", False),
    ],
)
def test_what_states_a_value(field: Field, value: Any, text: str, wanted: bool) -> None:
    assert claims(field, value, text) is wanted


WORDS = ("C07", "gold", "basic_economy", "silver-2", "a1", "x")
PIECES = (
    *WORDS, "GOLD", "golden", " ", "_", "-", ".", "c07", "C070", "$", "2024-05-21", "May", "may", "21", "5/21", "045",
    "45.50", ",", "\n", "on a payment plan", "No payment plan", "highest level", "silver",
)  # fmt: skip
CARD = Field("card", "enum", ("gold", "silver"), claims=(("gold", ("silver", "golden card")), ("silver", ("gold",))))
"""Words of one value stand within those of another."""


@examples(200)
@given(
    st.sampled_from(
        [
            *((Field("id"), word) for word in WORDS),
            (TIER, UNSEEN),
            (TIER, "gold"),
            (PLAN, UNSEEN),
            (CARD, UNSEEN),
            (CARD, "gold"),
            (Field("day", "date"), date(2024, 5, 21)),
            (Field("sum", "money"), Decimal("45.50")),
            (Field("sum", "money"), Decimal("45")),
        ]
    ),
    st.lists(st.sampled_from(PIECES), max_size=8).map("".join),
)
def test_plain_letters_are_searched_as_all_others_are(stated: tuple[Field, Any], text: str) -> None:
    """In a text with another letter in it nothing is told from words alone: the patterns have the say."""
    assert claim(*stated, [(0, text)], 1) == claim(*stated, [(0, f"{text} \u00e9")], 1)


def test_the_last_message_before_the_call_is_named() -> None:
    said = [(0, "gold"), (3, "I am gold"), (5, "gold!"), (9, "gold again")]
    assert claim(TIER, "gold", said, 9) == (5, "gold")
    assert claim(TIER, "gold", said, 5) == (3, "gold")
    assert claim(TIER, "gold", said, 0) is None


@given(
    st.lists(
        st.sampled_from(["gold", "it is gold", "the highest level, silver", "", "g old", "\u00e9 gold"]), max_size=6
    )
)
@examples(100)
def test_messages_that_came_later_are_looked_through_as_each_by_itself(texts: list[str]) -> None:
    ledger = Ledger(SCHEMA)
    last: tuple[int, str] | None = None
    for step, text in enumerate(texts):
        ledger.said.append((step, text))
        own = claim(TIER, "gold", [(step, text)], step + 1)
        last = own or last
        assert ledger.claim(TIER, "gold", step + 1) == last
