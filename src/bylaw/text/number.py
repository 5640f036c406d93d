"""Numbers and amounts in text: 1,200.50, $250, 250 euros, two hundred and fifty."""

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
    """A number with its noun: `1 call`, `3 calls`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def figure(text: str) -> Decimal | None:
    """The number written as `1,200.50` or `250,00`; None if the text is not a number."""
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
    """A number without digit grouping; a whole number has no decimal places."""
    whole = math.isfinite(number) and abs(number) < 1e15 and number == int(number)
    return str(int(number)) if whole else str(number)
