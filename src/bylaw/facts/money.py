"""Amounts of money as systems write them: `£96.00`, `96,00 €`, `USD 1,234.56`, `kr 40`.

An amount keeps the currency it was written with; one written without goes with any.
"""

import re
import unicodedata
from decimal import Decimal
from functools import lru_cache
from typing import Any

_ISO = """
AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY
COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR
IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR
MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD
SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XOF
XPF YER ZAR ZMW ZWG
"""
CURRENCIES = frozenset(_ISO.split())
"""ISO codes of currencies."""
_SIGNS = {
    "£": "GBP",
    "€": "EUR",
    "₹": "INR",
    "₩": "KRW",
    "₽": "RUB",
    "₺": "TRY",
    "₴": "UAH",
    "₦": "NGN",
    "₫": "VND",
    "₱": "PHP",
    "₪": "ILS",
    "฿": "THB",
    "₸": "KZT",
    "₾": "GEL",
    "₼": "AZN",
    "₲": "PYG",
    "₵": "GHS",
    "₡": "CRC",
    "US$": "USD",
    "A$": "AUD",
    "C$": "CAD",
    "CA$": "CAD",
    "NZ$": "NZD",
    "HK$": "HKD",
    "S$": "SGD",
    "R$": "BRL",
    "MX$": "MXN",
    "NT$": "TWD",
    "R": "ZAR",
    "SFr": "CHF",
    "SFr.": "CHF",
    "zł": "PLN",
    "Kč": "CZK",
    "Ft": "HUF",
    # Several currencies are written with each of these: it stands for itself, and goes with no code.
    **{sign: sign.rstrip(".") for sign in ("$", "¥", "kr", "kr.", "Rs", "Rs.", "Fr", "Fr.")},
}
_THOUSANDTHS = frozenset(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"))
"""Currencies with three places: `1,234` of them may be a thousand, or one and a bit."""
_BLANK = " \u00a0\u202f"
_INNER = rf"\d.,'\u2019{_BLANK}"
_SIGN = "|".join(map(re.escape, sorted({*_SIGNS, *CURRENCIES}, key=len, reverse=True)))
_FRONT = re.compile(rf"([+-]?)({_SIGN})[{_BLANK}]?([+-]?)([\d.][{_INNER}]*)", re.ASCII)
_BACK = re.compile(rf"([+-]?)([\d.][{_INNER}]*?)[{_BLANK}]?({_SIGN})", re.ASCII)
_GROUPS = rf"\d{{1,3}}(?:[{_BLANK}'\u2019]\d{{3}})+"
_WITH_POINT = re.compile(
    rf"(?:\d+|\d{{1,3}}(?:,\d{{3}})+|\d{{1,2}}(?:,\d\d)+,\d{{3}}|{_GROUPS})(?:\.\d*)?|\.\d+", re.ASCII
)
_WITH_COMMA = re.compile(rf"(?:\d+|\d{{1,3}}(?:\.\d{{3}})+|{_GROUPS}),\d\d|\d{{1,3}}(?:\.\d{{3}}){{2,}}", re.ASCII)
_UNCLEAR = re.compile(r"[1-9]\d{0,2}([.,])\d{3}", re.ASCII)
_CENTS = re.compile(r"\d[.,]\d\d(?!\d)", re.ASCII)
_LONGEST = 40
_GAPS = dict.fromkeys(map(ord, f"'\u2019{_BLANK}"))
_PLAIN = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?", re.ASCII)


class Amount(Decimal):
    """An amount whose currency was named."""

    __slots__ = ("currency",)
    currency: str

    def __eq__(self, other: object) -> bool:
        apart = other.__class__ is Amount and currency_of(other) != self.currency
        return not apart and Decimal.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = Decimal.__hash__

    def __repr__(self) -> str:
        return f"Amount('{self}', '{self.currency}')"

    def __reduce__(self) -> tuple[Any, ...]:
        return amount_in, (Decimal(self), self.currency)


def amount_in(figures: Decimal, currency: str | None) -> Decimal:
    """An amount in a currency, or in none that was named."""
    if currency is None:
        return figures
    amount = Amount(figures)
    amount.currency = currency
    return amount


def currency_of(value: Any) -> str | None:
    """The currency that an amount was written with."""
    return value.currency if value.__class__ is Amount else None


def shared_currency(one: Any, other: Any) -> str | None:
    """The currency of two amounts that are held against each other; ValueError where they are in two."""
    mine, theirs = currency_of(one), currency_of(other)
    if mine is not None and theirs is not None and mine != theirs:
        raise ValueError(f"amounts in {mine} and {theirs} do not go together; convert one of them first")
    return mine if theirs is None else theirs


@lru_cache(maxsize=4096)
def read_amount(text: str) -> Decimal:
    """An amount of money that can be read in one way only; ValueError for any other text."""
    text = text.strip()
    if front := _FRONT.fullmatch(text):
        minus, sign, inner, figures = front.groups()
    elif back := _BACK.fullmatch(text):
        minus, figures, sign = back.groups()
        inner = ""
    else:
        return Decimal(written_number(text, "an amount"))
    currency = _SIGNS.get(sign, sign)
    plain = _plain(figures, currency)
    if plain is None or (minus and inner):
        raise ValueError(f"`{text[:40]}` is not an amount that can be read in one way only")
    return amount_in(Decimal(minus + inner + plain), currency)


@lru_cache(maxsize=4096)
def amount_of(text: str) -> Amount | None:
    """The amount that a text of no known type surely is: letters stand before figures in ids too (`R2`, `TOP 5`)."""
    if len(text) > _LONGEST or text[:1].isdigit() == text[-1:].isdigit():
        return None
    try:
        amount = read_amount(text)
    except (ValueError, ArithmeticError):
        return None
    is_sure = _CENTS.search(text) is not None or any(unicodedata.category(each) == "Sc" for each in text)
    return amount if is_sure and isinstance(amount, Amount) else None


def _plain(figures: str, currency: str) -> str | None:
    """Figures that stand with a currency, without what parts their thousands."""
    unclear = _UNCLEAR.fullmatch(figures)
    if unclear and (unclear[1] == "." or currency in _THOUSANDTHS):
        return None
    if _WITH_COMMA.fullmatch(figures):
        return figures.translate({**_GAPS, ord("."): None, ord(","): "."})
    return figures.translate({**_GAPS, ord(","): None}) if _WITH_POINT.fullmatch(figures) else None


def written_number(text: str, what: str = "a number") -> str:
    """A number as everybody reads it, without commas between thousands; ValueError for any other text.

    `20,00` is twenty to some and two thousand to others; `4_0` and full-width digits are numbers to Python alone.
    """
    text = text.strip()
    if _PLAIN.fullmatch(text):
        return text
    if _GROUPED.fullmatch(text):
        return text.replace(",", "")
    raise ValueError(f"`{text[:40]}` is not {what} that can be read in one way only")
