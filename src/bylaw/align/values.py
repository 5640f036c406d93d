"""The amounts, dates, times and counts in a text, in figures or in words."""

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

from msgspec import Struct

from bylaw.text.day import MONTHS, month_number
from bylaw.text.number import ONES, TENS

_NUMBERS = {name: number for number, name in enumerate(ONES[:13])} | {"once": 1, "twice": 2}
_TENS = {name: 10 * number for number, name in enumerate(TENS) if number > 1}
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" if len(name) > 3 else name for name in MONTHS)
_DATES = re.compile(
    rf"\b(\d{{4}})-(\d{{2}})-(\d{{2}})\b"
    rf"|\b(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?({_MONTH})\.?(?:,?\s+(\d{{4}}))?\b"
    rf"|\b({_MONTH})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(\d{{4}}))?\b",
    re.IGNORECASE,
)
_TIMES = re.compile(r"\b(\d{1,2}):(\d{2})\b\s*([ap]\.?m\b)?", re.IGNORECASE)
_AMOUNTS = re.compile(
    r"(?:\$|usd\s?|eur\s?|€|£)\s?(\d[\d,]*(?:\.\d+)?)|\b(\d[\d,]*(?:\.\d+)?)\s?(?:dollars?|bucks|euros?|usd|eur)\b|\b(\d[\d,]*\.\d{2})\b",
    re.IGNORECASE,
)
_COUNTS = re.compile(r"(?<![\w.$-])(\d{1,6})(?![\w:-]|\.\d)")
_UNIT = re.compile(r"[\s-]*(minute|hour|day|week|month|year|time|visit|refill|move|percent|%)s?", re.IGNORECASE)


class Value(Struct, frozen=True):
    """A value in a text, and where it is."""

    kind: str
    """`amount`, `date`, `time`, or a unit such as `hour`; `count` without a unit."""
    value: Decimal | date | str
    start: int
    end: int

    @property
    def key(self) -> tuple[str, str]:
        """Kind and value, the same for all ways to write a number."""
        value = self.value
        return self.kind, f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)


def values_in(text: str) -> list[Value]:
    """Amounts, dates, times and counts, in order; numbers in words count too."""
    found: list[Value] = []
    plain = text

    def take(value: Value) -> None:
        nonlocal plain
        found.append(value)
        plain = plain[: value.start] + " " * (value.end - value.start) + plain[value.end :]

    for match in _DATES.finditer(text):
        if (day := _date(match)) is not None:
            take(Value("date", day, match.start(), match.end()))
    for match in _AMOUNTS.finditer(plain):
        number = next(group for group in match.groups() if group)
        take(Value("amount", Decimal(number.replace(",", "")).quantize(Decimal("0.01")), match.start(), match.end()))
    for match in _TIMES.finditer(plain):
        hour = int(match[1]) % 12 + 12 * (match[3].lower().startswith("p")) if match[3] else int(match[1])
        take(Value("time", f"{hour:02}:{match[2]}", match.start(), match.end()))
    for start, end, number in _counts(plain):
        unit = _UNIT.match(text, end)
        kind = unit[1].lower() if unit else "count"
        take(Value(kind, Decimal(number), start, end))
    return sorted(found, key=lambda value: value.start)


def _counts(text: str) -> Iterator[tuple[int, int, int]]:
    for match in _COUNTS.finditer(text):
        yield match.start(), match.end(), int(match[1])
    for match in re.finditer(r"[A-Za-z]+(?:-[A-Za-z]+)?", text):
        word = match[0].lower()
        first, _, second = word.partition("-")
        if word in _NUMBERS and (word != "one" or _UNIT.match(text, match.end())):
            yield match.start(), match.end(), _NUMBERS[word]
        elif first in _TENS and (not second or second in _NUMBERS):
            yield match.start(), match.end(), _TENS[first] + _NUMBERS.get(second, 0)


def _date(match: re.Match[str]) -> date | str | None:
    year, month, day, day_first, month_first, year_first, month_last, day_last, year_last = match.groups()
    if year:
        parts = int(year), int(month), int(day)
    else:
        name, number, said = month_first or month_last, day_first or day_last, year_first or year_last
        place = month_number(name)
        if said is None:
            return f"{place:02}-{int(number):02}"
        parts = int(said), place, int(number)
    try:
        return date(*parts)
    except ValueError:
        return None
