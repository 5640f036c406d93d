"""Amounts of money as systems write them, and what becomes of their currency."""

import pickle
from decimal import Decimal

import pytest

from bylaw.facts.entity import Field, OneOf
from bylaw.facts.observation import NOTHING
from bylaw.facts.schema import moved
from bylaw.facts.value import coerce, currency_of, one_of

PRICE = Field("price", "money")


@pytest.mark.parametrize(
    ("text", "figures", "currency"),
    [
        ("£96.00", "96", "GBP"),
        ("€96.00", "96", "EUR"),
        ("96.00 €", "96", "EUR"),
        ("96,00\u00a0€", "96", "EUR"),
        ("GBP 96.00", "96", "GBP"),
        ("96.00 GBP", "96", "GBP"),
        ("USD 96", "96", "USD"),
        ("US$96", "96", "USD"),
        ("CHF 12.50", "12.5", "CHF"),
        ("CHF 1'234.50", "1234.5", "CHF"),
        ("R500.00", "500", "ZAR"),
        ("R$ 10,00", "10", "BRL"),
        ("kr 40", "40", "kr"),
        ("40 kr.", "40", "kr"),
        ("1.234,56 €", "1234.56", "EUR"),
        ("1 234,56 €", "1234.56", "EUR"),
        ("€1,234.56", "1234.56", "EUR"),
        ("£1,234", "1234", "GBP"),
        ("1.234.567 €", "1234567", "EUR"),
        ("₹1,00,000.00", "100000", "INR"),
        ("-£5", "-5", "GBP"),
        ("£-5", "-5", "GBP"),
        ("$0.125", "0.125", "$"),
        ("96.00", "96", None),
        ("250.000", "250", None),
        ("1,234", "1234", None),
    ],
)
def test_an_amount_is_read_with_its_currency(text: str, figures: str, currency: str | None) -> None:
    amount = coerce(PRICE, text)
    assert (amount, currency_of(amount)) == (Decimal(figures), currency)
    kept = pickle.loads(pickle.dumps(amount))
    assert (kept, currency_of(kept)) == (amount, currency)


@pytest.mark.parametrize(
    "text",
    [
        *("€250.000", "$250.000", "1,234 TND", "96,5 €", "€1,2345", "20,00", "1.234,50"),
        *("ABC 5", "£", "£5p", "5£5", "$$5", "-£-5", "£5 €", "€1e5", "£5 and more", "usd 5", "£５"),
    ],
)
def test_what_could_be_read_in_two_ways_is_no_amount(text: str) -> None:
    with pytest.raises(ValueError, match="is not an amount"):
        coerce(PRICE, text)


def test_two_tools_that_name_two_currencies_do_not_tell_the_same() -> None:
    assert one_of(PRICE, ["£96.00", "€96.00"]) == OneOf((coerce(PRICE, "£96.00"), coerce(PRICE, "€96.00")))
    assert one_of(PRICE, ["£96.00", "96 GBP", 96]) == coerce(PRICE, "£96.00")


def test_an_effect_keeps_the_currency_and_never_mixes_two() -> None:
    left = moved(PRICE, "£96.00", "minus", 16)
    assert (left, currency_of(left)) == (Decimal(80), "GBP")
    assert moved(PRICE, "£96.00", "plus", "€4") is NOTHING
