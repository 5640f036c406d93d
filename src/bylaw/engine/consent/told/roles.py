"""Whether values were told in each other's place: from A1 to B2, book K100 for member M12."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations

from bylaw.engine.consent.call.detail import Detail
from bylaw.engine.consent.told.hearing import Hearing
from bylaw.engine.consent.told.lack import Lack
from bylaw.facts.folded_text import fold_name
from bylaw.policy.verb import words_of

_SOURCE = frozenset(("from", "source", "sender", "origin", "payer", "old"))
_GOAL = frozenset(
    ("to", "into", "target", "destination", "recipient", "receiver", "beneficiary", "payee", "dest", "new")
)
_PAYEE = frozenset(("to", "recipient", "receiver", "beneficiary", "payee"))
_TO_SOMEBODY = re.compile(r"\bto [A-Z][^\W\d_]+")
_VALUES = 12
"""So many values of a call are compared with each other."""
_PLACES = 64
"""At so many places a value is looked for."""
_MARKS = "#\"'*`"
_OF_AN_ID = frozenset(("id", "number", "no", "code"))
_LEAD, _ASIDE = r"[^.!?]{0,20}", r"[^.!?]{0,40}"
_FROM_BEFORE = re.compile(rf"\bfrom\b{_LEAD}$")
_TO_BEFORE = re.compile(rf"\b(?:in)?to\b{_LEAD}$")
_DEBIT_BEFORE = re.compile(rf"\bdebit\w*\b{_LEAD}$")
_THEN_TO = re.compile(rf"{_ASIDE}?\b(?:in)?to\b{_LEAD}")
_THEN_FROM = re.compile(rf"{_ASIDE}?\bfrom\b{_LEAD}")
_THEN_CREDIT = re.compile(rf"{_ASIDE}?\bcredit\w*\b{_LEAD}")
_RIGHT_TO = re.compile(rf"\W{{1,3}}(?:(?:in)?to\b|[-=]*>|→){_LEAD}")
_NEAR = 64
"""Letters before a value that may say what it is."""


def swapped(hearing: Hearing) -> list[Lack]:
    """Arguments whose value was told as another one's, where nothing tells it as their own."""
    named = [each for each in hearing.matters if each.kind in ("id", "name") and each.name == each.top][:_VALUES]
    if len(named) < 2:
        return []
    texts = [each.folded for each in hearing.now]
    told = [_Told(detail, texts) for detail in named]
    return [
        Lack(one.name, "unclear", "another_told")
        for one, other in permutations(told, 2)
        if other.places
        and one.value != other.value
        and one.name != other.name
        and (_is_called_otherwise(one, other) or _is_reversed(one, other))
    ]


class _Told:
    """One value of a call: where it stands in some texts, and the words that stand before it there."""

    def __init__(self, detail: Detail, texts: Sequence[str]) -> None:
        self.name = detail.name
        self.value = detail.value
        self.words = _words(detail.name)
        self.length = len(own := fold_name(str(detail.value)))
        self.places: list[tuple[str, int]] = []
        """The texts and the places in them at which it stands, and no word goes on after it."""
        self.called: set[str] = set()
        """The words that stand before it there."""
        for text in texts:
            here = text.find(own) if own else -1
            while here >= 0 and len(self.places) < _PLACES:
                after = text[here + self.length : here + self.length + 1]
                if not (after.isalnum() or after == "_"):
                    self.places.append((text, here))
                    self.called.update(_called(text, here))
                here = text.find(own, here + 1)


def _called(text: str, here: int) -> tuple[str, ...]:
    """The words by which what stands at a place of a text is called: `member` and `id` of `member id M12`."""
    end = here
    while end and text[end - 1] in _MARKS:
        end -= 1
    if text[end - 1 : end] != " ":
        return ()
    end -= 1
    if text[end - 1 : end] == ":":
        end -= 1
    last = text[_begin(text, end) : end]
    if text.endswith(" no.", max(0, end - 4), end):
        return (text[_begin(text, end - 4) : end - 4],)
    start = end - len(last)
    if last in _OF_AN_ID and text[start - 1 : start] == " ":
        return last, text[_begin(text, start - 1) : start - 1]
    return (last,)


def _begin(text: str, end: int) -> int:
    """Where the word begins that ends at a place."""
    while end and (text[end - 1].isalnum() or text[end - 1] == "_"):
        end -= 1
    return end


def _is_called_otherwise(one: _Told, other: _Told) -> bool:
    """Whether the other value, and never its own, was told by the word for an argument: book K100, not book M12."""
    return any(len(word) > 2 and word not in other.words for word in (one.words & other.called) - one.called)


def _is_reversed(source: _Told, goal: _Told) -> bool:
    """Whether it was only told to go the other way: from the goal to the source."""
    if not source.places or source.words & _GOAL or goal.words & _SOURCE:
        return False
    is_way = not source.words.isdisjoint(_SOURCE) or not goal.words.isdisjoint(_GOAL)
    return is_way and _goes(goal, source) and not _goes(source, goal)


def _goes(source: _Told, goal: _Told) -> bool:
    """Whether it was told to go from one to the other: `from A1 to B2`, `A1 to B2`, `to B2 from A1`, A1 debited and
    B2 credited."""
    return any(
        _is_way(text, here, here + source.length, there, there + goal.length)
        for text, here in source.places
        if not _is_within(text, here)
        for other, there in goal.places
        if other is text and not _is_within(text, there)
    )


def _is_way(text: str, here: int, here_end: int, there: int, there_end: int) -> bool:
    if here_end <= there:
        if _THEN_TO.fullmatch(text, here_end, there) and _FROM_BEFORE.search(text, max(0, here - _NEAR), here):
            return True
        if _RIGHT_TO.fullmatch(text, here_end, there):
            return True
        is_credited = _THEN_CREDIT.fullmatch(text, here_end, there)
        return is_credited is not None and _DEBIT_BEFORE.search(text, max(0, here - _NEAR), here) is not None
    is_from = there_end <= here and _THEN_FROM.fullmatch(text, there_end, here)
    return bool(is_from) and _TO_BEFORE.search(text, max(0, there - _NEAR), there) is not None


def _is_within(text: str, here: int) -> bool:
    return here > 0 and (text[here - 1].isalnum() or text[here - 1] == "_")


def told_in_place(hearing: Hearing, detail: Detail) -> bool:
    """Whether an id was told where an argument's own would stand: member M12, to B2; or a name, to Bob."""
    words = _words(detail.name)
    if detail.kind == "name":
        return bool(_PAYEE & words) and any(_TO_SOMEBODY.search(each.text) for each in hearing.proposal)
    return any(
        word in each.folded and _some_id(word).search(each.folded) for word in _own_words(words) for each in hearing.now
    )


@lru_cache(maxsize=1024)
def _words(name: str) -> frozenset[str]:
    return frozenset(words_of(name))


@lru_cache(maxsize=1024)
def _own_words(words: frozenset[str]) -> tuple[str, ...]:
    """Of an argument's name, the words that may stand before its value."""
    own = sorted(word for word in words if len(word) > 2 and word not in _SOURCE | _GOAL)
    return (*own, "to") if words & _GOAL else tuple(own)


@lru_cache(maxsize=1024)
def _some_id(word: str) -> re.Pattern[str]:
    """Matches the word for an argument and a token with letters and digits, or with many digits."""
    token = r"(?=[\w-]*\d)(?:[a-z]+[-_]?\d[\w-]*|\d{6,}|\d+[a-z][\w-]*)(?!\w)"
    between = r"(?: (?:account|user|id|number|no\.?|code))*:? [#\"'*`]*"
    return re.compile(rf"\b{re.escape(word)}{between}{token}")
