"""Numbers and sums as they stand in a text: 1,200.50, $250, 250 euros, two hundred and fifty."""

import math
import re
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import NamedTuple

ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
TENS = ("", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SIZES = {"hundred": 100, "thousand": 1_000}
_WORDS = {word: number for number, word in enumerate(ONES)} | {word: 10 * at for at, word in enumerate(TENS) if at > 1}
_WORD = "|".join(sorted(_WORDS, key=len, reverse=True))
_SPOKEN = re.compile(rf"\b(?=[efnostz])(?:{_WORD})(?:(?:[\s-]|\sand\s)(?:{_WORD}|hundred|thousand))*\b")
_SIGN = r"[$\u20ac\u00a3\u00a5\u20b9]"
_NAMED = r"(?:us\$|usd|eur|euros?|gbp|pounds?|dollars?|chf|francs?|cents?|quid|bucks|\u20ac|\u00a3|\$|p\b)"
_HUNDREDTHS = frozenset(("cent", "cents", "p"))
_UNCLEAR = re.compile(r"\d{1,3}\.\d{3}")
"""A quarter of a thousand to one reader, and a thousand times as much to another: `250.000`."""
_DIGITS = re.compile(r"\d+")
_LEAD = 8
"""Letters at most of what may stand before the figures of a sum."""
_BEFORE = re.compile(rf"(?<![\w.,/:-])-?\s?(?:{_SIGN}|(?:us\$|usd|eur|gbp|chf|rs\.?|[ar]\$)\s?|(r)(?=\Z))?\s?-?\Z")
_FIGURES = re.compile(r"[$\u20ac\u00a3 ]*[+-]?[0-9][0-9,.'\u2019]*(?:[eE][+-]?[0-9]{1,3})?|[+-]?\.[0-9]+")
_RANDS = re.compile(r"\d+[.,]\d\d\b")
_NUMBER = re.compile(
    r"(\d{1,3}(?:[,'\u2019]\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?)"
    rf"(\s?%|\s?{_NAMED}(?![a-z]))?(?!\w|[:.,/-]\d)"
)


class Number(NamedTuple):
    """A number in a text, and where it stands."""

    value: Decimal
    start: int
    end: int
    is_sum: bool
    """Whether it has a currency, or two places behind its point."""


@lru_cache(maxsize=4096)
def numbers(words: str) -> tuple[Number, ...]:
    """The numbers that a text in lower case tells, in figures or in words, in their order."""
    found: list[Number] = []
    done = 0
    for digits in _DIGITS.finditer(words):
        start = digits.start()
        before = _BEFORE.search(words, max(done, start - _LEAD), start) if start >= done else None
        match = _NUMBER.match(words, start) if before is not None else None
        if before is None or match is None or (before[1] and not _RANDS.match(words, start)):
            continue
        done = match.end()
        figures, after = match[1], (match[2] or "").strip()
        value = figure(figures)
        if value is not None and after != "%" and not _UNCLEAR.fullmatch(figures):
            named = bool(before[0].strip().strip("-").strip()) or bool(after)
            value = value / 100 if after in _HUNDREDTHS else value
            is_sum = named or (len(figures.replace(",", ".").rpartition(".")[2]) == 2 and not figures.isdigit())
            found.append(Number(value, start, match.end(1), is_sum))
    for match in _SPOKEN.finditer(words):
        after = re.match(rf"\s{_NAMED}(?![a-z])", words[match.end() : match.end() + 12])
        found.append(Number(Decimal(_spoken(match[0])), match.start(), match.end(), after is not None))
    return tuple(sorted(found, key=lambda each: each.start))


def figure(text: str) -> Decimal | None:
    """The number that figures are: `1,200.50`, `250,00`; None for what is none."""
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


def _spoken(words: str) -> int:
    total = part = 0
    for word in re.split(r"[\s-]+", words):
        if word in _SIZES:
            part = max(part, 1) * _SIZES[word]
            if word == "thousand":
                total, part = total + part, 0
        elif word != "and":
            part += _WORDS[word]
    return total + part


def canonical(number: float) -> str:
    """A number as it is written where it is not grouped: a whole one without a fraction."""
    whole = math.isfinite(number) and abs(number) < 1e15 and number == int(number)
    return str(int(number)) if whole else str(number)
