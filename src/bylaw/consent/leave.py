"""Whether the agent asked for leave to do just what it told.

As a yes says nothing that was not put, the question that it answers names nothing that neither was told nor belongs to
the call: "Shall I cancel the reminder for order R-1001?" and "Do you want a callback about cancelling it?" ask for
something else.
"""

import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import lru_cache

from bylaw.consent.answer import is_neutral, stems
from bylaw.consent.put import Line, after_head, is_english
from bylaw.policy.verb import VERBS
from bylaw.text.day import days
from bylaw.text.number import numbers
from bylaw.text.stem import stem

_WORD = re.compile(r"[^\W\d_]{3,}")
_NUMBERED = re.compile(
    r"(?:\b(?:mon|tues|wednes|thurs|fri|satur|sun)day,? )?(?:the )?\S*\d\S*"
    r"(?: (?:usd|eur|euros?|gbp|pounds?|dollars?|chf|francs?)\b)?"
)
_TAG = re.compile(
    r"^(?:so,? )?(?:just )?to confirm:|, (?:ok|okay|right|correct|all right|alright|good|deal|yes|fine)\?$"
)
"""A sentence that tells what would be done, and asks no more than whether."""
_ELSE = re.compile(r",? (?:or|otherwise,?) (?:please |just )?(?:let me|provide|tell|adjust|suggest|share|give)\b.*")
"""What the user may say instead of a yes."""
_ASKS = """
shall should may can could might would will does did are you your our like want wish prefer agree approve accept consent
authorize authorise confirm confirmation explicit explicitly yes okay alright all right fine happy good ready safe sure
correct deal going ahead proceed continue reply respond say word type answer let know please kindly just now then and
with for the from whether once when before that this these those them everything above here there have has get set put
through done sound look work great perfect both each not also too off over into under via how about which one still any
first next was were been being what who where why make made take give request change following details option summary
information thank absolutely wonderful hello sir madam need sense understand step complete finalize finalise process
submit perform action clear soon match exact policy january february march april june july august september october
november december account order move forward because due using him her them save terms accordingly total effect
away agreed today eligible acceptable specify provide accurate basis retry full lock add apply save register moment
thing
"""
"""Words of asking, of going ahead, and of pointing at what was told."""
_ASKING = frozenset(map(stem, _ASKS.split()))
_DONE = re.compile(
    r"\b(?:i|we)(?:'ve| have)(?: just| now| already)? \w+ed\b|"
    r"\byou (?:received|made|sent|placed|booked|paid|ordered)\b|"
    r"\b(?:was|were|has been|have been) \w+ed\b"
)
_HANGS = re.compile(
    r"^\W*(?:if|once|when|as soon as|unless)\b(?! (?:i|we) |(?: (?:you|that's|that|this|it's|it) (?:\w+ )?"
    r"(?:confirm|agree|approve|say|like|want|wish|happy|ok|okay|fine|good|right|correct|works|sounds|looks|all right|"
    r"yes)))|"
    r"\bevery (?:day|week|month|year)\b|\binstal+ments?\b|\b(?:refuse|decline)\b"
)
"""A condition, a plan of several times, a refusal: what is put is not the call as it is made now."""
_AT_YOUR_WORD = (
    r"(?! you(?:'d|'re|'ve|'ll)?(?: \w+){0,2} (?:confirm|agree|approve|authori[sz]e|like|want|wish|prefer|happy|ok|"
    r"okay|fine|good|ready|yes|(?:say|said|give|given)(?! so))\b)"
)
_IF_RIGHT = (
    r"(?! so\b)(?! (?:that|this|it|everything|all)(?:'s| is| looks| sounds)(?: all)? (?:ok|okay|alright|all right|fine|"
    r"good|right|correct)\b)(?! (?:that|this|it) (?:works|suits)(?: for)? you\b)"
)
_WAITS = re.compile(
    rf"\bif\b(?! (?:i|we) ){_AT_YOUR_WORD}{_IF_RIGHT}|"
    rf"\b(?:once|when|whenever|as soon as|unless|provided|assuming|in case|subject to|depending on)\b{_AT_YOUR_WORD}"
)
"""What is done when something else has happened, and not at the user's yes."""
_LATER = re.compile(
    r"\b(?:tomorrow|tonight|later|afterwards|next (?:week|month|year|mon|tues|wednes|thurs|fri|satur|sun)\w*|"
    r"in (?:19|20)\d\d|in (?:the (?:next|coming)|a few|\w+) (?:minute|hour|day|week|fortnight|month|year)s?|"
    r"(?:once|twice) an? \w+|(?:dai|week|month|year)ly|annually|(?:every|each) (?:day|week|month|year|other)\b)"
)
"""When something is done that is not done now; "24.00 monthly" is a price."""
_PRICE = re.compile(r"(?<![\w-])[$\u20ac\u00a3]?(\d+)[\d.,]* $")
_ON_A_DAY = re.compile(r"\b(?:on|from|starting|effective|as of|as from)(?: the| \w+day,?){0,2} $")
_REPORTED = re.compile(
    r"(?<!you )(?<!\bi )(?<!we )\b(?:asks|asked|says|said|wants|wanted|wrote|writes|tells|instructs|demands|claims)\b"
)
"""What somebody else would have done: "An email asks us to transfer 250.00"."""
_UNREAL = re.compile(
    r"\b(?:for (?:example|instance)|e\.g\.|suppose|imagine|pretend|hypothetical\w*|drill|rehears\w*|only a test|"
    r"to test you|nothing (?:will|would) happen|(?:has|have) no effect|somebody else|another \w+ was asked)\b"
)
"""What is not meant: an example, a drill, somebody else's question."""
_OR_ANOTHER = re.compile(r"\bor (?:\w+ ){0,2}\S*\d")
_UNDOING = re.compile(r"\b(?:stop|undo|reverse|halt|withdraw|cancel) (?:the|your|this|that) cancell?ation\b")
_RETRACTED = re.compile(
    r"^\W*(?:actually|wait|hold|sorry|oh|unfortunately|but|however|correction|scratch)\b|"
    r"\b(?:can't|cannot|not possible|no longer|unable to|any more|anymore)\b"
)
_VAGUE_BEFORE = re.compile(
    r"\b(?:about|around|roughly|approximately|approx|nearly|almost|at least|at most|(?:more|less) than|up to|under|"
    r"over|below|above|within|"
    r"(?:maximum|minimum) of|half(?: of)?|twice|double|\d+ ?(?:%|percent)(?: of(?: the)?)?)\W*$"
)
_VAGUE_AFTER = re.compile(r"\s*(?:thousand|million|billion|minus|less|or (?:more|less|so)|and up)\b")
_NEAR = 20
_FEW = 3
"""Fewer words name a thing and say nothing: "Economy, window"."""
_OTHER_LETTERS = re.compile(r"[^\W\d_\u0000-\u024f]{2}")
_SMALL = frozenset(("no", "or", "so", "if", "as", "by", "an", "have", "had", "yet", "but", "since", "only"))
_SPOKEN = re.compile(r"[^\W\d_]{2,}")
_LISTED = re.compile(r"[\d:|=\u2192]")


def asks_for_more(lines: tuple[Line, ...], asked: tuple[Line, ...], is_of_call: Callable[[str], bool]) -> bool:
    """Whether the last question for leave, which a yes answers, has a word that is neither of asking nor told nor of
    the call."""
    put = _added(lines, asked)
    return bool(put) and (put[-1] is None or not all(map(is_of_call, put[-1])))


@lru_cache(maxsize=1024)
def _added(lines: tuple[Line, ...], asked: tuple[Line, ...]) -> list[list[str] | None]:
    """By question for leave, its words that are neither of asking nor told; None for one that would undo something."""
    telling = (line.sentence.words for line in lines if line not in asked or _TAG.search(line.sentence.words))
    told = frozenset[str]().union(*map(stems, telling))
    put = [line.sentence.words for line in asked if line.asks == "leave"]
    return [None if _UNDOING.search(each) else _unknown(each, told) for each in put]


def _unknown(question: str, told: frozenset[str]) -> list[str]:
    return new_words(_NUMBERED.sub(" ", _ELSE.sub("", question)), told)


def new_words(words: str, told: frozenset[str]) -> list[str]:
    """The words of a text in lower case that are neither of asking nor told, whose stems are given."""
    return [
        each
        for each in _WORD.findall(words)
        if not ((form := stem(each)) in _ASKING or form in told or is_neutral(each))
    ]


@lru_cache(maxsize=1024)
def is_no_proposal(lines: tuple[Line, ...]) -> bool:
    """Whether what was told is reported as done, hangs on something, is one of two, or is taken back afterwards."""
    last = max((at for at, line in enumerate(lines) if line.asks), default=-1)
    before = lines[last - 1].sentence.words if last > 0 else ""
    after = (line.sentence.words for line in lines[last + 1 :])
    is_unreal = any(_UNREAL.search(line.sentence.words) for line in lines)
    return is_unreal or _is_no_offer(before) or any(map(_RETRACTED.search, after))


def is_for_later(proposed: Iterable[str], is_of_call: Callable[[str], bool]) -> bool:
    """Whether sentences in lower case would do something when something else has happened, or at a time of which the
    call says nothing: a yes to that is none to doing it now."""
    for words in map(after_head, proposed):
        if _WAITS.search(words):
            return True
        for found in _LATER.finditer(words):
            price = _PRICE.search(words, max(0, found.start() - 20), found.start())
            is_rate = price is not None and not is_of_call(price[1])
            if not is_rate and (found[0][-1].isdigit() or not all(map(is_of_call, _WORD.findall(found[0])))):
                return True
    return False


def is_later(words: str) -> bool:
    """Whether words in lower case tell when something is done that is not done now."""
    return _WAITS.search(words) is not None or _LATER.search(words) is not None


def is_unreadable(words: str, is_of_call: Callable[[str], bool]) -> bool:
    """Whether a sentence in lower case has hardly a word that is known here: in another language it may take back what
    the others say. What has figures or columns is a list."""
    if _is_readable(words):
        return False
    told = _SPOKEN.findall(words)
    if _OTHER_LETTERS.search(words):
        return not all(map(is_of_call, told))
    return sum(_is_known(each) or is_of_call(each) for each in told) * 5 <= len(told)


@lru_cache(maxsize=4096)
def _is_readable(words: str) -> bool:
    """Whether a sentence is readable whatever the words of the call are."""
    told = _SPOKEN.findall(words)
    if _OTHER_LETTERS.search(words):
        return False
    return len(told) < _FEW or bool(_LISTED.search(words)) or sum(map(_is_known, told)) * 5 > len(told)


def _is_known(word: str) -> bool:
    return word in _SMALL or stem(word) in _ASKING or is_neutral(word) or word in VERBS or is_english(word)


def days_of_deed(words: str) -> set[tuple[int, int]]:
    """Months and days on which something would be done, or from which on: "I would send it on December 6"."""
    words = after_head(words)
    return {
        (each.month, each.day) for each in days(words) if _ON_A_DAY.search(words, max(0, each.start - 30), each.start)
    }


def _is_no_offer(words: str) -> bool:
    return any(each.search(words) for each in (_DONE, _HANGS, _OR_ANOTHER, _REPORTED))


def is_vague(words: str, values: Iterable[Decimal]) -> bool:
    """Whether a text in lower case tells one of these numbers only roughly, as a bound or as a part: "about 250"."""
    wanted = set(values)
    return bool(wanted) and any(
        _VAGUE_BEFORE.search(words, max(0, each.start - _NEAR), each.start) or _VAGUE_AFTER.match(words, each.end)
        for each in numbers(words)
        if each.value in wanted
    )
