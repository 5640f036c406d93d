"""Matches the user's words against records and longer text.

Dates and numbers match in any notation. Other words match by their stem, so `payment`, `payments` and `paying` match
each other.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from functools import lru_cache

from bylaw.engine.request.allowance import Span
from bylaw.text.day import MONTHS
from bylaw.text.folding import fold, occurs
from bylaw.text.identifier import is_prose
from bylaw.text.spelling import spell

WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
_ENDINGS = ("ings", "ing", "ies", "ied", "ions", "ion", "ys", "es", "ed", "s", "e", "y", "d")
_PLAIN = frozenset(
    WORD.findall(
        "a an and are as at be by for from has have he her him his i in is it its me my not of on one or our she so "
        "that the their them they this to was we were will with you your"
    )
)
"""Words that can occur in any sentence and therefore identify nothing."""


def stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


@lru_cache(maxsize=1024)
def telling_stems(text: str) -> frozenset[str]:
    """Return the stems of the words that can identify something."""
    return frozenset(stem(word) for word in WORD.findall(text.lower()) if word not in _PLAIN)


SHORT = 2
"""The extra score for a match in a short field."""
WHOLLY = 2
_TRIM = ".,;:!?'\"()[]*_`"
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_ORDINAL = re.compile(r"(?:the )?(\d{1,2})(?:st|nd|rd|th)")
_MONTH = re.compile(r"(?:in )?[a-z]{3,9}(?: \d{4})?")
_FIGURE = re.compile(r"[^\w]*(\d[\d,]*(?:\.\d+)?)[^\w]*")


@lru_cache(maxsize=1024)
def folded(request: str, spans: tuple[Span, ...]) -> tuple[str, ...]:
    """Return the user's words in these ranges, normalised and joined."""
    return tuple(fold(request[span.start : span.end]).strip(_TRIM) for span in spans)


def closeness(
    words: Sequence[str],
    fields: Mapping[str, str],
    given: Sequence[str],
    *,
    but: str = "",
    exactly: bool = False,
    apart: Collection[str] = (),
    own: Mapping[str, str] | None = None,
) -> int:
    """Return a score for how well the user's words match a record. 0 if any word does not match.

    Each word scores 4 for a match with a short field, or 5 with `exactly` if it is the whole field; 3 for a match with
    part of a short field; 2 for any other field; and 1 for the look-up's arguments.

    `but` is the field from which a value was taken, and is treated as a long field. If `apart` is given, its names must
    match a field in `own`.
    """
    found = 0
    short = [value for name, value in fields.items() if not is_prose(value) and not (but and name == but)]
    for word in words:
        if own is not None and word in apart and not any(names(word, value) for value in own.values()):
            return 0
        if best := max((names(word, value) for value in short), default=0):
            found += SHORT + (best if exactly else min(best, WHOLLY))
        elif any(names(word, value) for value in fields.values()):
            found += 2
        elif any(names(word, value) >= WHOLLY for value in given):
            found += 1
        else:
            return 0
    return found


@lru_cache(maxsize=1024)
def is_name(words: str) -> bool:
    """Whether the words look like a name or a number and not like a description."""
    return any(each.isupper() or each.isdigit() or each in "@._/-" for each in words)


def names(words: str, value: str) -> int:
    """Return a score from 0 to 3 for how well the user's words name a value. Both must be normalised.

    3: the words are the whole value. 2: they are the whole value in another form of the words, dates or numbers. 1:
    they match part of the value, or are joined without spaces as in an address. 0: no match.

    For example, the name `activities` fully matches a file called `activities`, but only partly matches one called
    `tips for activities`.
    """
    if not words or not value:
        return 0
    return _named(words, value) if len(value) <= _KEPT else _named.__wrapped__(words, value)


@lru_cache(maxsize=4096)
def _named(words: str, value: str) -> int:
    plain, said = value.replace("-", " "), words.replace("-", " ").removesuffix("'s")
    if said == plain:
        return 3
    if occurs(said, plain) >= 0 or (len(plain) > 2 and occurs(plain, said) >= 0):
        return 2
    if day := _DAY.match(value):
        spelling = spell(day[0])
        is_said = spelling is not None and spelling.said_in(words)
        is_day = is_said or _is_of_month(day[0], words) or _is_day(day[0], words) or is_weekday(day[0], words)
        return 2 if is_day else 0
    if (figure := _FIGURE.fullmatch(words)) and (spelling := spell(float(figure[1].replace(",", "")))) is not None:
        return 2 if spelling.said_in(value) else 0
    mine, other = telling_stems(said), telling_stems(plain)
    if any(each[-1].isdigit() for each in other):
        # Ignore the number at the end, so that `draft` matches `draft2`.
        other |= {stem(each.rstrip("0123456789")) for each in other if not each.isdigit()}
    if mine and mine <= other:
        return 2
    is_part = len(mine) > 2 and len(mine & other) >= 2 and all(each in other for each in mine if each.isdigit())
    return 1 if is_part or _is_run_together(said, value) else 0


_KEPT = 100
"""The maximum length of a value whose comparisons are cached. Longer values are running text."""
_JOINED = 5
"""The minimum length of a name that may match as words joined without spaces."""


def _is_run_together(words: str, value: str) -> bool:
    """Whether an address or link contains the words without spaces, as in `smithandsons-shop.com`."""
    if " " in value or "." not in value or " " not in words:
        return False
    mine, other = ("".join(filter(str.isalnum, each.replace("&", "and"))) for each in (words, value))
    return len(mine) >= _JOINED and mine in other


def _is_of_month(day: str, words: str) -> bool:
    """Whether the words name the month of this date, but no day."""
    month = int(day[5:7])
    if not 1 <= month <= len(MONTHS) or not _MONTH.fullmatch(words):
        return False
    name, _, year = words.removeprefix("in ").partition(" ")
    return name in (MONTHS[month - 1], MONTHS[month - 1][:3]) and year in ("", day[:4])


def _is_day(day: str, words: str) -> bool:
    """Whether the words name the day of the month, but no month, as in "the 1st"."""
    said = _ORDINAL.fullmatch(words)
    return said is not None and int(said[1]) == int(day[8:10])


def is_weekday(day: str, words: str) -> bool:
    """Whether normalised words name the weekday of this date."""
    try:
        named = date.fromisoformat(day).strftime("%A").lower()
    except ValueError:
        return False
    return occurs(named, words.removesuffix("'s")) >= 0
