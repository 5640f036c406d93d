"""Values as hostile as tools and logs may give them: of the field's type, or refused, and soon."""

import time
from decimal import Decimal

import pytest
from msgspec.structs import replace

from bylaw.facts.entity import UNSEEN, Field, FieldType
from bylaw.facts.value import coerce, is_same, loose

MONEY, NUMBER, WHOLE = Field("fee", "money"), Field("size", "number"), Field("count", "integer")


@pytest.mark.parametrize(
    "raw", ["1e-999999999", "1e999999999", "0e-999999999", "9" * 10_000, "NaN", "Infinity", "sNaN"]
)
def test_an_amount_that_exact_arithmetic_would_choke_on_is_none(raw):
    begun = time.process_time()
    with pytest.raises(ValueError, match="not an amount"):
        coerce(MONEY, raw)
    assert time.process_time() - begun < 0.2


def test_amounts_people_write_are_read():
    assert [coerce(MONEY, raw) for raw in ("$1,250.50", 15, 15.1, "0.00", " 7 ")] == [
        Decimal("1250.50"),
        Decimal(15),
        Decimal("15.1"),
        Decimal("0.00"),
        Decimal(7),
    ]


@pytest.mark.parametrize("raw", ["nan", "inf", "-Infinity", float("nan"), float("inf"), "9" * 5000])
def test_what_is_not_finite_is_no_number(raw):
    with pytest.raises(ValueError, match="not a number"):
        coerce(NUMBER, raw)


@pytest.mark.parametrize("raw", [float("inf"), float("nan"), Decimal("1e999999999"), 1.5])
def test_what_is_not_whole_is_no_whole_number(raw):
    with pytest.raises(ValueError, match="not a whole number"):
        coerce(WHOLE, raw)


FIELDS = (
    Field("ended", "date"),
    Field("note"),
    MONEY,
    Field("word", "enum"),
    Field("tier", "enum", ("gold",)),
    Field("controlled", "boolean"),
)


@pytest.mark.parametrize("field", FIELDS)
def test_null_is_not_known_unless_the_pack_says_that_there_may_be_none(field):
    assert coerce(field, None) is UNSEEN
    assert coerce(replace(field, nullable=True), None) is None


@pytest.mark.parametrize(
    "text", ["20,00", "1,23", "4_0", "４０", "٤٠", "1.234,50", "0x10", "1 000", "--4", "$", "", "1,2345"]
)
@pytest.mark.parametrize("kind", ["money", "integer", "number"])
def test_a_number_that_can_be_read_in_two_ways_is_not_read(text: str, kind: FieldType) -> None:
    with pytest.raises(ValueError):
        coerce(Field("amount", kind), text)


@pytest.mark.parametrize(
    ("text", "amount"),
    [("1,234.50", "1234.50"), ("$20", "20"), ("-3", "-3"), (".5", "0.5"), ("12,345,678", "12345678")],
)
def test_an_amount_that_everybody_reads_alike_is_read(text: str, amount: str) -> None:
    assert coerce(Field("amount", "money"), text) == Decimal(amount)


@pytest.mark.parametrize(
    "odd", ["A05\u200b20", "A0520\x00", "\u2060A0520", "A\u00ad0520", "A0520\ufe0f", "A\u3164 0520"]
)
def test_an_id_with_characters_nobody_sees_may_be_the_plain_one(odd: str) -> None:
    assert loose(odd) == loose("A0520")
    assert is_same(odd, "A0520") is None
