"""Numbers and amounts in text, such as 1,200.50, $250, 250 euros, and two hundred and fifty."""

import math
import re
from decimal import Decimal, InvalidOperation

ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
TENS = ("", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_FIGURES = re.compile(r"[$\u20ac\u00a3 ]*[+-]?[0-9][0-9,.'\u2019]*(?:[eE][+-]?[0-9]{1,3})?|[+-]?\.[0-9]+")


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with a noun in the right form, for example `1 call` or `3 calls`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def figure(text: str) -> Decimal | None:
    """Return a number that is written like `1,200.50` or `250,00`. None for any other text."""
    if not _FIGURES.fullmatch(text.strip()):
        return None
    plain = text.strip().lstrip("$\u20ac\u00a3 ").replace("'", "").replace("\u2019", "")
    whole, _, part = plain.rpartition(",")
    if whole and "." not in plain and len(part) != 3:
        plain = f"{whole.replace(',', '')}.{part}"
    try:
        value = Decimal(plain.replace(",", ""))
    except InvalidOperation:
        return None
    return value.normalize() if value.is_finite() else None


def canonical(number: float) -> str:
    """Return a number as text without digit grouping. A whole number has no decimal places."""
    whole = math.isfinite(number) and abs(number) < 1e15 and number == int(number)
    return str(int(number)) if whole else str(number)


_SIGNS = {"USD": "$", "EUR": "€", "GBP": "£", "INR": "₹", "$": "$", "¥": "¥"}
_WHOLE = frozenset(("CLP", "ISK", "JPY", "KRW", "VND"))
"""Currencies that have no minor units, such as cents."""


def figures(number: Decimal, decimal: str = ".", *, places: int = 0, grouped: bool = True) -> str:
    """Return an exact number as text with at least `places` decimal places. `decimal` is the decimal mark."""
    whole, _, part = format(abs(number), "f").partition(".")
    part = part.rstrip("0").ljust(places, "0")
    if grouped:
        whole = f"{int(whole):,}".replace(",", "." if decimal == "," else ",")
    return f"{'-' if number < 0 else ''}{whole}{decimal if part else ''}{part}"


def amount_spellings(number: Decimal, currency: str, decimal: str = ".") -> list[str]:
    """Return the unambiguous spellings of an amount, the most common first."""
    sign, minus, size = _SIGNS.get(currency, ""), "-" if number < 0 else "", abs(number)
    places = 0 if currency in _WHOLE else 2
    written = [figures(size, decimal, places=least, grouped=is_grouped)
               for least in (places, 0) for is_grouped in (True, False)]  # fmt: skip
    found: list[str] = []
    for each in dict.fromkeys(written):
        before, after = f"{minus}{sign}{each}", f"{minus}{each} {sign}"
        signed = (before, after, f"{minus}{each}{sign}") if decimal == "." else (after, before, f"{minus}{each}{sign}")
        coded = (f"{minus}{each} {currency}", f"{minus}{currency} {each}")
        found += [*signed, *coded] if sign else coded
    return list(dict.fromkeys(found))


def quantity_spellings(number: Decimal, unit: str, decimal: str = ".") -> list[str]:
    """Return the unambiguous spellings of a number with its unit, the most common first."""
    written = [figures(number, decimal), figures(number, decimal, grouped=False)]
    return list(dict.fromkeys(f"{each} {unit}" for each in written))
