"""Words of a text as rough stems, and the amounts, dates, times and counts that stand in it."""

import re
from calendar import month_name
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from bylaw.policy.yaml import LOADER
from bylaw.text.stem import stem as text_stem

WORDS: dict[str, Any] = yaml.load((Path(__file__).parent / "words.yaml").read_text(encoding="utf-8"), LOADER)
"""English as far as it is needed here."""

_NUMBERS = {name: number for number, said in enumerate(WORDS["numbers"]) for name in said.split()}
_TENS = {
    name: 10 * number
    for number, name in enumerate(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], 2)
}
_MONTHS = [name.lower() for name in month_name if name]
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" if len(name) > 3 else name for name in _MONTHS)
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


_ODD: dict[str, str] = WORDS["odd"]
STOP = frozenset(WORDS["stop"].split())


class Value(Struct, frozen=True):
    """A value that stands in a text."""

    kind: str
    """`amount`, `date`, `time`, or a unit such as `hour`; `count` where no unit is said."""
    value: Decimal | date | str
    start: int
    end: int

    @property
    def key(self) -> tuple[str, str]:
        """Kind and value, the same for all ways to write a number."""
        value = self.value
        return self.kind, f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A word without its ending, alike for the forms of a verb or noun."""
    word = word.lower().removesuffix("'s").replace("'", "").replace("’", "")
    return text_stem(_ODD.get(word, word))


def stems(text: str) -> list[str]:
    """The stems of the words that say something, in order."""
    joined = re.sub(r"(?<=[A-Za-z])-(?=[A-Za-z])", "", text)  # in-person
    return [stem(word) for word in re.findall(r"[A-Za-z][A-Za-z'’]*", joined) if word.lower() not in STOP]


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
        place = next(i for i, each in enumerate(_MONTHS, 1) if each.startswith(name.lower()[:3]))
        if said is None:
            return f"{place:02}-{int(number):02}"
        parts = int(said), place, int(number)
    try:
        return date(*parts)
    except ValueError:
        return None
