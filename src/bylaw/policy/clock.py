"""Finds the current time in a document, such as "Today is March 14, 2026" or "The current time is 2024-05-15 15:00"."""

import re
from datetime import datetime

from msgspec import Struct

from bylaw.policy.document import Document
from bylaw.text.day import month_number

_IS = r"(?:\s+is(?: now| currently)?|\s*[:=])"
_MOMENT = r"(?:date and time|date|time|day)"
_SAYS_NOW = re.compile(
    rf"(?:\btoday(?:['\u2019]s date)?(?:{_IS}|,)|\bcurrent {_MOMENT}{_IS}|\bit is (?:now|currently)|\bnow is"
    rf"|\bas of today,?|^\W*(?:it(?: is|['\u2019]s)|(?:the )?{_MOMENT}(?: now| today)?{_IS}))"
    r"[\s*_]*(?:\w+day,?\s+)?(?:the\s+)?(?P<when>.{6,60})",
    re.IGNORECASE,
)
_ONLY_AS_OF = re.compile(r"^\W*as of\s+(?:\w+day,?\s+)?(?P<when>\d{4}-\d\d-\d\d|[\w ,.]{4,24}\d{4})\W*$", re.IGNORECASE)
"""A sentence that continues after the date states an effective date."""
_ISO = re.compile(r"(\d{4})([-/.])(\d\d)\2(\d\d)")
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_MONTH_FIRST = re.compile(r"([a-z]+)\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})", re.IGNORECASE)
_DAY_FIRST = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?\.?\s+(?:of\s+)?([a-z]+)\.?,?\s+(\d{4})", re.IGNORECASE)
_HOUR = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?\s*(am|pm|a\.m\.|p\.m\.)?", re.IGNORECASE)


class Clock(Struct, frozen=True):
    """A document's current time, with the sentence that states it."""

    now: str
    sentence: str

    @property
    def by_day(self) -> str:
        """The time. If the document names only a day, a working hour of that day."""
        return self.now.replace("T00:00:00", "T10:00:00")


def stated_clock(document: Document) -> Clock | None:
    """Return the current time in a document, or the start of the day if it names only a day."""
    for sentence in document.sentences:
        said = _SAYS_NOW.search(sentence.text) or _ONLY_AS_OF.search(sentence.text)
        time = _time_in(said["when"]) if said else None
        if time is not None:
            return Clock(time.isoformat(), sentence.text)
    return None


def _time_in(text: str) -> datetime | None:
    """Return the time at the beginning of a text."""
    numbers: tuple[int, int, int] | None = None
    end = 0
    if match := _ISO.match(text):
        numbers, end = (int(match[1]), int(match[3]), int(match[4])), match.end()
    elif match := _DOTTED.match(text):
        numbers, end = (int(match[3]), int(match[2]), int(match[1])), match.end()
    elif (match := _MONTH_FIRST.match(text)) and (month := month_number(match[1])):
        numbers, end = (int(match[3]), month, int(match[2])), match.end()
    elif (match := _DAY_FIRST.match(text)) and (month := month_number(match[2])):
        numbers, end = (int(match[3]), month, int(match[1])), match.end()
    if numbers is None:
        return None
    clock = _HOUR.search(text[end : end + 20])
    hour, minute, second = (int(part or 0) for part in clock.group(1, 2, 3)) if clock else (0, 0, 0)
    if clock and clock[4]:
        hour = hour % 12 + (12 if clock[4].lower().startswith("p") else 0)
    try:
        return datetime(*numbers, hour, minute, second)
    except ValueError:
        return None
