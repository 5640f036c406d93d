"""The values in a call's arguments, and the dates and words in a text, in a form in which they can be compared."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, cast

from bylaw.engine.request.allowance import Span
from bylaw.engine.request.bearing import folded, telling_stems
from bylaw.facts.provenance import Provenance, Traced, plain_link
from bylaw.facts.result_places import ResultPlaces, with_keys
from bylaw.policy.tool import Tool
from bylaw.text.day import days, times
from bylaw.text.folding import fold, occurs
from bylaw.text.identifier import identifiers
from bylaw.text.number import ONES
from bylaw.text.spelling import spell
from bylaw.trace.event import decode_text

DAY = re.compile(r"\d{4}-\d\d-\d\d")
CLOCK = re.compile(r"(\d\d):(\d\d)")
NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?![\w])")
_RANGE = re.compile(
    r"(\d{1,2})(?:st|nd|rd|th)? ?(?:-|\u2013|to|until|till|and) ?(?:the )?"
    r"(\d{1,2})(?:st|nd|rd|th)? (?:of )?([a-z]{3,9})"
)
_CODE = 8
_CODE_FIGURES = 4
_FIGURES = re.compile(r"\d+(?:\.\d+)?")
_A_DAY = re.compile(
    r"\d{4}-\d\d-\d\d|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d|\d(?:st|nd|rd|th)?(?: of)? "
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)|\b\d{1,2}[/.]\d{1,2}\b",
    re.IGNORECASE,
)


def parts_of(given: Any, tool: Tool | None = None) -> list[str | float]:
    """Return the single values of an argument: list items, values of a record, or the addresses in running text."""
    if given.__class__ is not str and isinstance(given, (int, float)):
        return [given]
    if isinstance(given, str) and given.lstrip()[:1] == "[":
        decoded = decode_text(given)
        given = decoded if isinstance(decoded, list) else given  # pyright: ignore[reportUnknownVariableType]
    if isinstance(given, (list, dict)):
        return [*leaves_of(with_keys(given, tool.names) if tool is not None else given)]
    if isinstance(given, str) and given.count("@") > 1 and (found := identifiers(given)):
        return [*found]
    return [given] if isinstance(given, (str, int, float)) else []


def number_of(value: str | float) -> float | None:
    try:
        return float(value)
    except (ValueError, TypeError):
        return None


def telling(words: str) -> frozenset[str]:
    return frozenset(each for each in telling_stems(words) if len(each) > 2 and not each.isdigit())


def ends_of(words: str) -> Iterator[str]:
    """Yield the first and the last date of a range such as "5-8 Aug"."""
    for first, last, month in _RANGE.findall(words):
        yield from (f"{first} {month}", f"{last} {month}")


def says(words: str, text: str) -> bool:
    """Whether the text contains the words. Dates, times and numbers match in any notation. For other words, one match
    is enough.
    """
    if occurs(words, text) >= 0:
        return True
    if said := days(words):
        told = {(each.month, each.day) for each in days(text)}
        return all((each.month, each.day) in told for each in said)
    if clock := _by_half_days(words):
        return bool(clock & _by_half_days(text))
    if words in ONES:
        words = str(ONES.index(words))
    numbers = [spelling for each in _FIGURES.findall(words) if (spelling := spell(float(each))) is not None]
    if numbers:
        return all(spelling.said_in(text) for spelling in numbers)
    return not (told := telling(words)) or bool(told & telling(text))


def _by_half_days(text: str) -> set[tuple[int, int]]:
    """Return the times in the text on a 12-hour clock, because people seldom say morning or afternoon."""
    return {(hour % 12, minute) for hour, minute in times(text)}


def says_a_day(text: str) -> bool:
    return _A_DAY.search(text) is not None


def leaves_of(value: Any) -> Iterator[str | float]:
    """Yield the values inside the arguments."""
    if isinstance(value, Mapping):
        for part in cast("Mapping[str, Any]", value).values():
            yield from leaves_of(part)
    elif isinstance(value, list):
        for part in cast("list[Any]", value):
            yield from leaves_of(part)
    elif isinstance(value, (str, int, float)) and not isinstance(value, bool) and value != "":
        yield value


def has_flags(value: Any) -> bool:
    """Whether a list or record contains booleans, to which quoted words can never be equal."""
    if isinstance(value, Mapping):
        return any(map(has_flags, cast("Mapping[str, Any]", value).values()))
    return isinstance(value, bool) or (isinstance(value, list) and any(map(has_flags, cast("list[Any]", value))))


def given_words(arguments: Any) -> list[str]:
    """Return the values in the arguments as normalised words, links without their scheme."""
    return [fold(str(plain_link(each))) for each in leaves_of(arguments)]


def is_code(name: str) -> bool:
    """Whether a name is a long code, such as an account number or passport number."""
    return len(name) >= _CODE and sum(each.isdigit() for each in name) >= _CODE_FIGURES and name.isalnum()


class View:
    """The texts with which the values of a call are compared, as they were before the call."""

    def __init__(self, provenance: Provenance, tools: Mapping[str, Tool], request: str, before: int) -> None:
        """`request` contains the user's words, followed by any text that the user told the agent to follow."""
        self.tools, self.request = tools, request
        self.text, self.places, self.own_fields = provenance.text, provenance.places, provenance.own_fields
        self.sights = partial(provenance.sights, before=before)
        self.trace = partial(provenance.trace, before=before)
        self.results = partial(provenance.results, before=before)
        self.mentions = partial(provenance.mentions, before=before)
        self.numbers = partial(provenance.numbers, before=before)
        self.is_said = partial(provenance.is_said, before=before)

    def words(self, spans: Iterable[Span]) -> tuple[str, ...]:
        return folded(self.request, tuple(spans))

    def around(self, sight: Traced) -> ResultPlaces:
        return self.places(step_of(sight))

    def records(self, step: int) -> list[Mapping[str, str]]:
        """Return the normalised records in a result, each as a mapping from field names to values."""
        places = self.places(step)
        return [places.fields(number) for number in range(len(places.records))]


def step_of(sight: Traced) -> int:
    assert sight.step is not None
    return sight.step
