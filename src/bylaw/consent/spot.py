"""Where a value of a call stands in a passage, whatever way it is written."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from bylaw.consent.argument import Argument
from bylaw.consent.passage import Passage, is_whole, shape
from bylaw.policy.verb import words_of
from bylaw.text.day import times
from bylaw.text.number import Number
from bylaw.text.sentence import sentences
from bylaw.text.stem import stem

_WORD = re.compile(r"[a-z]+")
_CLOCK = re.compile(r"\d{1,2}(?:[:.]\d\d)?(?:\s?[ap]\.?m\b)?")
PLAIN = re.compile(r"[^\W_]+")
NO_LABELS = frozenset(("id", "ids", "number", "new", "total", "method", "methods", "type", "list", "code", "the"))
_FORM = 4
_SIGNS = frozenset("$\u20ac\u00a3\u00a5\u20b9")
_CURRENCIES = {
    **dict.fromkeys(("$", "us$", "usd", "dollar", "dollars", "bucks"), "usd"),
    **dict.fromkeys(("\u20ac", "eur", "euro", "euros"), "eur"),
    **dict.fromkeys(("\u00a3", "gbp", "pound", "pounds", "quid"), "gbp"),
    **dict.fromkeys(("chf", "franc", "francs"), "chf"),
}
_CURRENCY_BEFORE = re.compile(r"([a-z]{0,3}[$\u20ac\u00a3\u00a5\u20b9]|\b(?:usd|eur|gbp|chf))\s?-?$")
_CURRENCY_AFTER = re.compile(
    r"\s?([$\u20ac\u00a3\u00a5\u20b9]|(?:usd|eur|euros?|gbp|pounds?|dollars?|chf|francs?|quid|bucks|kr)\b)"
)
_FIGURES = re.compile(r"[\d.,']+")
_UNIT = re.compile(
    r" (?!(?:usd|eur|euros?|gbp|pounds?|dollars?|chf|francs?|cents?|quid|bucks|kr|pcm|to|from|for|on|in|into|and|by|"
    r"as|with|at|is|per|an?|will|would|back|off|each|out|of|it|that|this|plus|which|so|than|or|via|using|your|the|"
    r"today|now|monthly|due|extra|more|total|credit|refund|charge|fee|deposit|instead|against|but|if|be|through|"
    r"paid)\b)[a-z]"
)
"""A word after the figures of a sum that may be its unit: "250 points"."""
_POINTS = (
    r" (?:(?:the|your|this|that|my|our|an?|account|order|booking|number|no\.?|date|day|time|\w+day,?|"
    r"[$\u20ac\u00a3]) ?){0,3}"
)
_GIVEN = frozenset(("to", "into", "target", "destination", "recipient", "receiver", "payee", "beneficiary"))
_BESIDE = (
    r"\b(?:before|after|past|since|until|by|but|prior to|following|preceding|beyond|behind|next to|like|unlike|around|"
    r"near|about|close to|on behalf of|than|eve of|weeks? of|(?:hour|day|week)s? from"
)
_AWAY = _BESIDE + ")"
_LEFT = _BESIDE + "|from|off|out of|against|over|under|above|below|within|between|during|towards?|ahead of)"
_MOVED_ON = re.compile(r"\s*(?:plus|minus|or (?:later|earlier|sooner|before|after|thereabouts))\b")
_BOUNDS = frozenset(
    (
        *("before", "after", "since", "until", "by", "following", "end", "ends", "due", "deadline", "latest", "from"),
        *("source", "origin", "sender", "old", "current", "previous"),
    )
)
"""Words in the name of an argument that such a preposition tells itself."""
_BOUND_BY = (
    (
        frozenset(("until", "end", "ends", "due", "deadline", "latest")),
        re.compile(r"(?:\b(?:until|till|to|through|by|due|end(?:s|ing)?|deadline)\b|[:=\u2192|-])" + _POINTS + "$"),
    ),
    (
        frozenset(("source", "origin", "sender")),
        re.compile(r"(?:\b(?:from|out of|off|source|sender|origin|using)\b|[:=\u2192|-])" + _POINTS + "$"),
    ),
)
"""By words in the name of an argument, what must lead up to its value."""
_AWAY_FROM = re.compile(_AWAY + _POINTS + "$")
_LEFT_BEHIND = re.compile(_LEFT + _POINTS + "$")
_AWAY_TIME = re.compile(_LEFT + _POINTS + r"\d{1,2}(?:[:.]\d\d)?(?: ?[ap]\.?m)?\b")
"""Prepositions by which a value only says where another lies: "the day before 2030-05-01"."""
_INTO = re.compile(r"\b(?:to|into)" + _POINTS + "$")
_HAD_BY = re.compile(r"\b([a-z]+) of" + _POINTS + "$")
_HAS = re.compile(r"'s ([a-z]+)")
_LED_UP = re.compile(
    r"(?:^|[\s(\[{\"':;,!?|=\u2192\u2022-])\+?(?:[$\u20ac\u00a3\u20b9]|[a-z]{1,3}[$.]?|[a-z]{1,2}\$)?\s?-?\Z"
)
_ENDS_THERE = re.compile(r"\s?(?:[$\u20ac\u00a3\u20b9]|[a-z]{1,7}\b)?(?:$|[\s)\]}\"'.,;:!?|-]|/[a-z])", re.MULTILINE)
_GOES_ON = re.compile(
    r"(?!/[a-z])\s?[^\w\s)\]}\"'.,;:!?|$\u20ac\u00a3\u20b9(\[{\u2192\u2190\u2022=-]|"
    r"\s[^\W\d_a-z\u00df-\u024f]|\s\(\W?\d[\d.,]*\)| +\d"
)
_RANGE = re.compile(
    r"(?<![\w.,:/-])[$\u20ac\u00a3]?\d(?:[\d.,]*\d)? ?(?:[$\u20ac\u00a3] ?)?"
    r"(?:(?:\bto|\bor|\bthrough|-) ?)?[$\u20ac\u00a3]?\Z"
)
_FROM_TO = re.compile(r"\bfrom [$\u20ac\u00a3]?[\d.,]+\S* to [$\u20ac\u00a3]?\Z")
"""What stands before and after a number that is told as it is."""
_LESS = re.compile(r"(?<!\w)[-\u2212][$\u20ac\u00a3]?$")
"""What makes a number right after it less than nought; behind the dash of a list there is a blank."""


def is_told_of_another(
    each: Argument, passage: Passage, spans: Iterable[tuple[int, int]], is_known: Callable[[str], bool]
) -> bool:
    """Whether a value stands at these places of a passage only to say where another lies ("the day before
    2030-05-01"), which way something else goes ("from AC-22" is no account to send to), or whose something is ("a copy
    of R-1001"), where that is no word of the call."""
    words, names = passage.words, word_set(each.name, each.top)
    is_taken = not names.isdisjoint(_BOUNDS)
    if each.at and not is_taken and all(at in passage.times for at in each.at):
        left = times(_AWAY_TIME.sub(" ", words))
        if not all(at in left for at in each.at):
            return True
    is_thing = each.kind == "id"
    way = _AWAY_FROM if is_thing and names.isdisjoint(_GIVEN) else _LEFT_BEHIND
    if is_taken:
        way = _INTO if is_thing else None
    bound = next((way for words_, way in _BOUND_BY if not names.isdisjoint(words_)), None)
    for start, end in spans:
        lead = max(0, start - 60)
        if bound is not None and not bound.search(words, lead, start):
            return True
        if (not is_taken and _MOVED_ON.match(words, end)) or (way is not None and way.search(words, lead, start)):
            return True
        if is_thing:
            had, has = _HAD_BY.search(words, lead, start), _HAS.match(words, end)
            if (had is not None and not is_known(had[1])) or (has is not None and not is_known(has[1])):
                return True
    return False


@lru_cache(maxsize=1024)
def word_set(*names: str) -> frozenset[str]:
    """The words of some names."""
    return frozenset(word for name in names for word in words_of(name))


@lru_cache(maxsize=1024)
def stem_set(name: str) -> frozenset[str]:
    """The words of a name without their endings."""
    return frozenset(map(stem, words_of(name)))


def has_kind(each: Argument, line: Passage) -> bool:
    """Whether a sentence has values of the kind at all."""
    if each.kind == "id":
        return any(shape(key) == shape(each.key) for key in line.ids)
    return bool(line.days if each.kind == "day" else line.sums if each.kind == "sum" else line.numbers)


def spot_of(each: Argument, passage: Passage) -> int:
    """Where a value stands in a passage."""
    if each.kind == "id":
        return passage.place_of(each.key)
    if each.kind == "day":
        return next((day.start for day in passage.days if each.day is not None and day.may_be(each.day)), -1)
    words = passage.words
    for number in passage.numbers:
        if number.value == each.number and _is_told(each, number, words) and _is_read_whole(number, words):
            return number.start
    return -1


def _is_told(each: Argument, number: Number, words: str) -> bool:
    """Whether a number is a value of a call that is as large: in its currency, and not less than nought."""
    if each.kind == "sum":
        told = _currency(words[max(0, number.start - 4) : number.start], words[number.end :])
        own = _currency(*_FIGURES.split(each.value.lower(), maxsplit=1)) or _named_currency(each.name) if told else ""
        if _has_unit(number, words) or (own and told != own):
            return False
    is_more = each.number is not None and each.number > 0
    return not (is_more and _LESS.search(words, max(0, number.start - 3), number.start))


def _is_read_whole(number: Number, words: str) -> bool:
    """Whether nothing beside a number may make another of it: "0\u20ac50", "1 050.00", "<50", "10 to 50"."""
    if number.value == 0 or words[number.start].isalpha():
        return True
    lead = words[max(0, number.start - 24) : number.start]
    if not _LED_UP.search(lead) or (_RANGE.search(lead) and not _FROM_TO.search(lead)):
        return False
    return _ENDS_THERE.match(words, number.end) is not None and _GOES_ON.match(words, number.end) is None


def _currency(before: str, after: str = "") -> str:
    """The currency right before or after the figures of a sum, the same for every spelling that is known."""
    found = _CURRENCY_BEFORE.search(before) or _CURRENCY_AFTER.match(after)
    return _CURRENCIES.get(found[1], found[1]) if found else ""


@lru_cache(maxsize=1024)
def _named_currency(name: str) -> str:
    """The currency in the name of an argument: `amount_usd`."""
    return next((_CURRENCIES[word] for word in words_of(name) if word in _CURRENCIES), "")


def _has_unit(number: Number, words: str) -> bool:
    """Whether a number counts something else than money."""
    lead = words[max(0, number.start - 2) : number.start].strip()
    return lead not in _SIGNS and _UNIT.match(words, number.end) is not None


def spans_of(each: Argument, passage: Passage) -> list[tuple[int, int]]:
    """Where a value of any kind but a flag stands."""
    words = passage.words
    if each.kind == "id":
        return _spans(each.key, words, "-") if each.key in words else []
    if each.kind == "day":
        return [day[3:] for day in passage.days if each.day is not None and day.may_be(each.day)]
    if each.kind == "time":
        clocks = (found.span() for found in _CLOCK.finditer(words))
        return [(start, end) for start, end in clocks if each.at[0] in times(words[start:end])]
    if each.number is not None:
        return [number[1:3] for number in passage.numbers if number.value == each.number]
    return [] if each.kind == "flag" else _spans(spoken(each.value), passage.unjoined)


@lru_cache(maxsize=4096)
def spoken(value: str) -> str:
    """A value as one says it."""
    return " ".join(value.lower().replace("_", " ").replace("-", " ").split())


@lru_cache(maxsize=4096)
def is_about(line: str, name: str) -> bool:
    """Whether a line has a word of a name, or one that is cut from it: `bags` of `baggages`."""
    words = _WORD.findall(line)
    root = name[:-1] if len(name) > 4 and name.endswith(("s", "e", "y")) else name
    return any(word.startswith(root) or (len(word) > 3 and root.startswith(word.rstrip("s"))) for word in words)


def is_told_whole(phrase: str, passage: Passage) -> bool:
    """Whether a phrase stands in a passage, and is no part of an address, an id or a longer number."""
    found = re.finditer(rf"(?<!\w){re.escape(phrase)}(?!\w)", passage.unjoined)
    return bool(phrase) and any(is_whole(passage.words, *each.span()) for each in found)


def tells_text(raw: str, text: str) -> bool:
    """Whether a text stands in what was said as it is, sentence by sentence and from end to end; white space and case
    apart. Without its last condition, or with another sign in it, it says something else."""
    own = [_bare(each.words) for each in sentences(text)]
    if not any(own):
        return False
    told = [_bare(line) for line in raw.split("\n")]
    if any(told[at : at + len(own)] == own for at in range(len(told) - len(own) + 1)):
        return True
    quoted = rf"[\"'\u201c\u2018:]\s*{re.escape(own[0])}[.!]*(?:[\"'\u201d\u2019]|$)" if len(own) == 1 else r"(?!)"
    return re.search(quoted, "\n".join(told), re.MULTILINE) is not None


def _bare(sentence: str) -> str:
    return " ".join(sentence.split()).strip(" .!\"'")


def spans_of_word(word: str, passage: Passage) -> list[tuple[int, int]]:
    """Where a word stands."""
    return _spans(word, passage.words)


def _spans(word: str, words: str, joints: str = "") -> list[tuple[int, int]]:
    """Where a word or some stand in words, with no letter or digit before and after, and not behind these joints."""
    found: list[tuple[int, int]] = []
    here = words.find(word)
    while here >= 0:
        before, end = words[here - 1 : here], here + len(word)
        is_whole = not _is_letter(before) and not _is_letter(words[end : end + 1])
        if is_whole and (not before or before not in joints):
            found.append((here, end))
            here = words.find(word, max(end, here + 1))
        else:
            here = words.find(word, here + 1)
    return found


def _is_letter(letter: str) -> bool:
    return letter == "_" or letter.isalnum()


def may_stand_in(word: str, passage: Passage) -> bool:
    """Whether a word of a list stands in a passage in any way."""
    return word[:-1] in passage.unjoined


def stands_in(word: str, others: Iterable[str], passage: Passage) -> bool:
    """Whether a word of a list stands in a passage, and not within a longer one of the list."""
    words = passage.unjoined
    if word[:-1] not in words:
        return False
    for longer in (other for other in others if word in other and word != other):
        words = words.replace(longer, " " * len(longer))
    if _spans(word, words):
        return True
    # A status is told by its verb: `withdrawn` by "withdraw".
    return (
        word.isalpha()
        and len(word) > _FORM + 2
        and re.search(rf"(?<!\w){re.escape(word[:-1])}[a-z]{{0,3}}(?!\w)", words) is not None
    )
