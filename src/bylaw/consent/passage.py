"""A stretch of what was said, and the values in it that a call could have been given.

Its marks, and those of a value, are what one can be told by in the other, whatever way it is written.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Any

from msgspec import Struct

from bylaw.policy.verb import words_of
from bylaw.text.day import Day, days, times, without_days
from bylaw.text.number import Number, numbers
from bylaw.text.once import once
from bylaw.text.sentence import lowered

_TOKEN = re.compile(r"[a-z0-9]+(?:[-_/.@+][a-z0-9]+)*")
_MEASURE = re.compile(
    r"\d+(?:[.,]\d+)?(?:st|nd|rd|th|am|pm|h|g|kg|l|ml|min|mins|x|km|m|p|k|gb|mb|pm|hr|hrs|s)|\d+x\d+|(?:q|v|s|m|x)\d"
)
_UNIT = re.compile(
    r"\s?(?:[ap]\.?m\b|[mck]?[gml]\b|hours?|hrs?|minutes?|mins?|days?|weeks?|months?|years?|x\d|-\s?\d)|"
    r"(?:st|nd|rd|th)\b|:\d"
)
"""What makes a number a measure, a time or a place in an order."""
_ENDING = re.compile(r"\b(?:ending|ends)(?: in| with)? $|\d\s?-\s?$|\b(?:visa|mastercard|amex|card) $|\bat $|x $")
_LAST = re.compile(r"\bend(?:ing|s)(?: in| with)? (\d{3,})\b")
_APART = frozenset(("", " ", "\n", ".", ",", "?", ":"))
"""At these no word or id goes on."""
_BLANK, _BREAK, _MARKS = frozenset(("", " ", "\n")), frozenset(("", "\n")), frozenset(".,?")
RUN = re.compile(r"[^\W_]+")
_DIGIT = re.compile(r"\d")
_PREFIXED = re.compile(r"[a-z]+([-_ /]?)\d+")
_LONGER = re.compile(r"\w|[-/@.:#+&=](?=\w)|['\u2019](?!s\b)(?=\w)")
_LED = re.compile(r"\w\Z|(?:\w|\A)[-/@.#+&=]\Z")
_GROUP = re.compile(r" (?:\d+|[b-hj-z])(?![\w.,:/%$\u20ac\u00a3-]*\w)")
_GROUP_BEFORE = re.compile(r"(?<![\w.,:/-])[a-z]{0,3}\+?\d+ \Z")
"""What makes a longer one of a word, a number, an address or an id: signs without a blank, groups of figures."""
_UNJOINED = str.maketrans("-_/", "   ")
_LIST = re.compile(r"(?:\s|,|;|&|/|#|\band\b|\bboth\b|\bas well as\b|\balso\b|\bthe\b|\byour\b)*")

_LETTERS = re.compile(r"[^\W_]{3,}")
_COMMON = frozenset(
    (
        *("the", "and", "for", "you", "your", "with", "this", "that", "will", "would", "have", "has", "are", "was"),
        *("not", "can", "but", "all", "any", "from", "our", "their", "there", "here", "confirmed", "active", "open"),
        *("available", "status", "type", "name", "none", "true", "false", "yes", "per", "day", "month", "year", "date"),
        *("time", "order", "booking", "reservation", "account", "customer", "user", "credit", "card", "payment"),
        *("total", "price", "amount", "number", "one", "two", "new", "standard", "regular"),
        *("please", "thanks", "thank", "sure", "okay", "correct", "right", "good", "great", "fine", "perfect", "ahead"),
        *("shall", "should", "like", "want", "proceed", "confirm", "sounds", "that's"),
    )
)
"""Words that tell no thing from another."""
_PHONE = re.compile(r"\+?\d[\d ()-]{6,16}\d")
_NINE = 9
_SMALL = 10
"""Smaller whole numbers stand everywhere."""


class Passage:
    """Some sentences, in lower case, without what they deny."""

    def __init__(self, sentences: Iterable[str]) -> None:
        self.words = "\n".join(sentences)

    @once
    def marks(self) -> frozenset[str]:
        return marks(self.words)

    @once
    def numbers(self) -> tuple[Number, ...]:
        return numbers(self._undated)

    @once
    def days(self) -> tuple[Day, ...]:
        return days(self.words)

    @once
    def times(self) -> frozenset[tuple[int, int]]:
        return times(self.words)

    @once
    def sums(self) -> frozenset[Decimal]:
        return frozenset(each.value for each in self.numbers if each.is_sum)

    @once
    def counts(self) -> frozenset[Decimal]:
        """The numbers that may count things: no sums, times of day, measures or last figures of a card."""
        words = self._undated
        plain = [each for each in self.numbers if not each.is_sum and not _UNIT.match(words, each.end)]
        return frozenset(each.value for each in plain if not _ENDING.search(words, max(0, each.start - 20), each.start))

    @once
    def endings(self) -> tuple[str, ...]:
        """The last figures by which a card or a line is told: `ending in 7334`."""
        return tuple(_LAST.findall(self.words))

    @once
    def lines(self) -> list[str]:
        return self.words.split("\n")

    @once
    def ids(self) -> dict[str, int]:
        """What looks like an id, with its place."""
        words = self._undated if _DIGIT.search(self.words) else ""
        return {each[0]: each.start() for each in _TOKEN.finditer(words) if is_code(each[0])}

    @once
    def runs(self) -> frozenset[str]:
        """Its letters and figures that nothing else stands between; and none, which every text has."""
        return frozenset(("", *RUN.findall(self.words)))

    @once
    def _undated(self) -> str:
        """The same with blanks for days."""
        return without_days(self.words)

    @once
    def unjoined(self) -> str:
        """The words with blanks for what joins them."""
        return self.words.translate(_UNJOINED)

    def read(self) -> None:
        """Read it for what it holds before anybody asks."""
        _ = self.ids, self.sums, self.days, self.times, self.marks, self.endings, self.unjoined, self.runs

    def place_of(self, key: str) -> int:
        """Where an id or a phrase stands, with no word, number or id going on at its ends; -1 for nowhere."""
        return self._place_of(key, is_whole) if key in self.words or "-" in key or "_" in key else -1

    def may_tell(self, key: str) -> int:
        """The same where it may also be the end or the beginning of something longer."""
        return self._place_of(key, _is_apart) if key in self.words or "-" in key or "_" in key else -1

    def _place_of(self, key: str, is_right: Callable[[str, int, int], bool]) -> int:
        here = _find(self.words, key, is_right) if key in self.words else -1
        if here < 0 and _is_joined(key):
            here = _find(self.unjoined, key.replace("_", " ").replace("-", " "), is_right)
        return here

    def line_at(self, place: int) -> str:
        """The sentence at a place."""
        end = self.words.find("\n", place)
        return self.words[self.words.rfind("\n", 0, place) + 1 : end if end >= 0 else len(self.words)]

    def joins(self, places: Iterable[tuple[int, int]], name: str) -> bool:
        """Whether what stands at these places is one plain list, `A1, A2 and A3`, with no words between but those of
        the name that they have in a call."""
        named = re.compile(rf"\b(?:{'|'.join(map(re.escape, words_of(name)))})s?\b")
        ordered = sorted(places)
        between = [self.words[one[1] : two[0]] for one, two in pairwise(ordered)]
        return all("\n" not in each and len(each) < 40 and _LIST.fullmatch(named.sub("", each)) for each in between)


class Heard(Struct, frozen=True):
    """What was said in one exchange, as it is searched for values."""

    answer: Passage
    asked: Passage
    """The questions."""
    put: Passage
    """All that the agent put, without what it denies and what stands in brackets."""
    bracketed: Passage
    """The same with what stands in brackets."""
    raw: str
    """The same with what is denied in it."""
    questions: frozenset[str] = frozenset()
    """The sentences that ask, with what stands in brackets."""


@lru_cache(maxsize=4096)
def passage_of(lines: tuple[str, ...]) -> Passage:
    """The passage of some sentences, read once for all the calls that they may be about."""
    return Passage(lines)


@lru_cache(maxsize=4096)
def codes(words: str) -> tuple[str, ...]:
    """What looks like an id in words in lower case."""
    return tuple(Passage([words]).ids)


def _is_joined(key: str) -> bool:
    """Whether an id may be told with blanks between its parts."""
    return "_" in key or ("-" in key and not _DIGIT.search(key))


def _find(words: str, phrase: str, is_right: Callable[[str, int, int], bool]) -> int:
    here = words.find(phrase) if phrase else -1
    while here >= 0:
        if is_right(words, here, here + len(phrase)):
            return here
        here = words.find(phrase, here + 1)
    return -1


def _is_apart(words: str, start: int, end: int) -> bool:
    """Whether no word goes on at the ends of a place, nor an id: `AC-22` does not stand in `AC-22-7`."""
    return (words[start - 1 : start] in _APART or not _goes_on(words, start - 1, -1)) and (
        words[end : end + 1] in _APART or not _goes_on(words, end, 1)
    )


def _goes_on(words: str, place: int, way: int) -> bool:
    if not 0 <= place < len(words):
        return False
    letter = words[place]
    if letter.isalnum() or letter == "_":
        return True
    beyond = words[place + way] if 0 <= place + way < len(words) else " "
    return letter in "-/@" and beyond.isalnum() and (way > 0 or letter != "/")


def is_whole(words: str, start: int, end: int) -> bool:
    """Whether what stands at a place is no part of a longer word, number, address or id: `AC-22` is not told by
    `AC-22-7`, `AC-22.7`, `A/AC-22` or `AC-22 7`, nor `DE44` by `DE44 5001 0517`."""
    before, after, beyond = words[start - 1 : start], words[end : end + 1], words[end + 1 : end + 2]
    if before in _BLANK and not words[start].isdigit() and (after in _BREAK or (after in _MARKS and beyond in _BLANK)):
        # So most of them stand.
        return True
    if not _is_apart(words, start, end) or _LONGER.match(words, end) or _LED.search(words, max(0, start - 2), start):
        return False
    if _GROUP.match(words, end) and words[end - 1].isalnum() and any(map(str.isdigit, words[start:end])):
        return False
    return not (words[start].isdigit() and _GROUP_BEFORE.search(words, max(0, start - 20), start))


@lru_cache(maxsize=8192)
def is_code(token: str) -> bool:
    """Whether a word in lower case looks like the name of one thing."""
    if token.isdigit():
        return len(token) >= 5
    has_digit = any(each.isdigit() for each in token)
    return has_digit and any(each.isalpha() for each in token) and not _MEASURE.fullmatch(token)


@lru_cache(maxsize=8192)
def shape(key: str) -> str:
    """The same for ids that look alike, of which one may be taken for another."""
    if found := _PREFIXED.fullmatch(key):
        return f"a{found[1]}9"
    if key.isdigit():
        return "9"
    return "".join(each if not each.isalnum() else "" for each in key) + str(len(key))


@lru_cache(maxsize=4096)
def marks(words: str) -> frozenset[str]:
    """The marks of a text in lower case."""
    return frozenset(_marks(words))


def _marks(words: str) -> Iterator[str]:
    for word in _LETTERS.findall(words):
        if word not in _COMMON and not word.isdigit():
            yield word
    for day in days(words):
        yield f"d:{day.month}-{day.day}"
    for hour, minute in times(words):
        yield f"t:{hour}:{minute:02}"
    for line in _PHONE.findall(words):
        # A telephone number, however it is grouped and whatever it begins with.
        digits = "".join(filter(str.isdigit, line))
        if len(digits) >= _NINE:
            yield f"p:{digits[1 - _NINE :]}"
    for number in numbers(words):
        if number.value >= _SMALL or number.value != number.value.to_integral_value():
            yield number_mark(number.value)


def number_mark(value: Decimal) -> str:
    """The mark of a number, the same however many noughts it is written with."""
    return f"n:{value.normalize():f}"


def value_marks(value: Any) -> tuple[frozenset[str], tuple[str, ...]]:
    """The marks of a value in a record, and those among them that are no words."""
    return _value_marks(str(value))


@lru_cache(maxsize=16_384)
def _value_marks(value: str) -> tuple[frozenset[str], tuple[str, ...]]:
    found = frozenset(_marks(lowered(value.replace("_", " ")[:200])))
    return found, tuple(mark for mark in found if mark[1] == ":")
