"""Whether values were told in each other's place: from A1 to B2, book K100 for member M12."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations

from bylaw.engine.consent.detail import Detail
from bylaw.engine.consent.hearing import Hearing
from bylaw.engine.consent.lack import Lack
from bylaw.facts.provenance import fold_name
from bylaw.policy.verb import words_of

_SOURCE = frozenset(("from", "source", "sender", "origin", "payer", "old"))
_GOAL = frozenset(
    ("to", "into", "target", "destination", "recipient", "receiver", "beneficiary", "payee", "dest", "new")
)
_PAYEE = frozenset(("to", "recipient", "receiver", "beneficiary", "payee"))
_TO_SOMEBODY = re.compile(r"\bto [A-Z][^\W\d_]+")
_VALUES = 12
"""So many values of a call are compared with each other."""


def swapped(hearing: Hearing, matters: Sequence[Detail]) -> list[Lack]:
    """Arguments whose value was told as another one's, where nothing tells it as their own."""
    named = [each for each in matters if each.kind in ("id", "name") and each.name == each.top][:_VALUES]
    texts = [each.folded for each in hearing.now]
    found: list[Lack] = []
    for one, other in permutations(named, 2):
        if one.value == other.value or one.name == other.name:
            continue
        if _is_reversed(texts, one, other) or _is_called_otherwise(texts, one, other):
            found.append(Lack(one.name, "unclear", "another_told"))
    return found


def told_now(hearing: Hearing, detail: Detail) -> bool:
    """Whether a value stands in what was put to the user, or in the answer."""
    return any(each.says(detail.value) for each in hearing.now)


def told_in_place(hearing: Hearing, detail: Detail) -> bool:
    """Whether an id was told where an argument's own would stand: member M12, to B2; or a name, to Bob."""
    if detail.kind == "name":
        is_payee = bool(_PAYEE & {*words_of(detail.name)})
        return is_payee and any(_TO_SOMEBODY.search(each.text) for each in hearing.proposal)
    words = {word for word in words_of(detail.name) if len(word) > 2 and word not in _SOURCE | _GOAL}
    ways = ["to"] if _GOAL & {*words_of(detail.name)} else []
    return any(_some_id(word).search(each.folded) for word in (*sorted(words), *ways) for each in hearing.now)


def _is_reversed(texts: Sequence[str], source: Detail, goal: Detail) -> bool:
    """Whether it was only told to go the other way: from the goal to the source."""
    of_source, of_goal = {*words_of(source.name)}, {*words_of(goal.name)}
    is_way = (of_source & _SOURCE or of_goal & _GOAL) and not (of_source & _GOAL or of_goal & _SOURCE)
    if not is_way:
        return False
    here, there = fold_name(str(source.value)), fold_name(str(goal.value))
    return _said(texts, _way(there, here)) and not _said(texts, _way(here, there))


def _is_called_otherwise(texts: Sequence[str], one: Detail, other: Detail) -> bool:
    """Whether the other value, and never its own, was told by the word for an argument: book K100, not book M12."""
    words = {word for word in words_of(one.name) if len(word) > 2} - {*words_of(other.name)}
    own, others = fold_name(str(one.value)), fold_name(str(other.value))
    return any(_said(texts, _called(word, others)) and not _said(texts, _called(word, own)) for word in words)


def _said(texts: Sequence[str], pattern: re.Pattern[str]) -> bool:
    return any(pattern.search(text) for text in texts)


@lru_cache(maxsize=1024)
def _way(source: str, goal: str) -> re.Pattern[str]:
    """Matches `from A1 to B2`, `A1 to B2`, `to B2 from A1`, and A1 debited and B2 credited."""
    here, there = rf"(?<!\w){re.escape(source)}(?!\w)", rf"(?<!\w){re.escape(goal)}(?!\w)"
    aside = r"[^.!?]{0,40}?"
    return re.compile(
        rf"\bfrom\b[^.!?]{{0,20}}?{here}{aside}\b(?:in)?to\b[^.!?]{{0,20}}?{there}"
        rf"|{here}\W{{1,3}}(?:(?:in)?to\b|[-=]*>|→)[^.!?]{{0,20}}?{there}"
        rf"|\bdebit\w*\b[^.!?]{{0,20}}?{here}{aside}\bcredit\w*\b[^.!?]{{0,20}}?{there}"
        rf"|\b(?:in)?to\b[^.!?]{{0,20}}?{there}{aside}\bfrom\b[^.!?]{{0,20}}?{here}"
    )


@lru_cache(maxsize=1024)
def _some_id(word: str) -> re.Pattern[str]:
    """Matches the word for an argument and a token with letters and digits, or with many digits."""
    token = r"(?=[\w-]*\d)(?:[a-z]+[-_]?\d[\w-]*|\d{6,}|\d+[a-z][\w-]*)(?!\w)"
    between = r"(?: (?:account|user|id|number|no\.?|code))*:? [#\"'*`]*"
    return re.compile(rf"\b{re.escape(word)}{between}{token}")


@lru_cache(maxsize=1024)
def _called(word: str, value: str) -> re.Pattern[str]:
    return re.compile(rf"\b{re.escape(word)}(?: (?:id|number|no\.?|code))?:? [#\"'*`]*{re.escape(value)}(?!\w)")
