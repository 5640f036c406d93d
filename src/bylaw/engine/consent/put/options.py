"""Which of several things that were put an answer takes: "the second one, please", "do the first, forget the other"."""

import re
from itertools import pairwise
from typing import NamedTuple

from bylaw.engine.consent.call.deed import any_deed
from bylaw.engine.consent.said.utterance import Utterance
from bylaw.facts.sentence import sentences
from bylaw.policy.verb import VERBS

_NUMBER = re.compile(r"(?:(?<=[\s:;,*(])|^)\(?(?:option |choice )?(\d)[.):](?=[\s*])", re.IGNORECASE | re.MULTILINE)
_LETTER = re.compile(r"^\W*(?:option |choice )?\(?([a-f])[.):](?=[\s*])", re.IGNORECASE | re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*[-*•–][ \t]+(?=\S)", re.MULTILINE)
_AND = re.compile(r",? (?:and|plus) (?:to )?(?=([a-z]+) )|; (?=([a-z]+) )|,? (?:and|plus) (?:also|then) (?=[a-z])")
"""Between two things that would be done, told in one sentence: before a word for a deed, or after `and also`."""
_TAIL = re.compile(r"\n\s*\n|\n(?=[^\s*•-])")
"""Ends the last option: a blank line, or one that begins as no part of a list does."""
_ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "fifth": 5}
_COUNTED = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
_PLACES = ("option", "choice", "number", "no.", "#", "last", *_ORDINALS)
_TAKEN = re.compile(
    rf"\b(?:the|on|just|only|with|to|for) ({'|'.join(_ORDINALS)}|last)(?: (?:one|option|choice|plan))?"
    r"(?=\W*(?:$|[.,;!\n]|please\b|thanks\b|thank\b|for now\b|then\b|now\b|only\b|and\b|but\b|works\b|sounds\b|is\b))"
    rf"|\b(?:option|choice|number|no\.|#) ?(\d|{'|'.join(_COUNTED)})\b"
    r"|^\W*(\d|[a-f])\W*(?:please|thanks|thank you)?\W*$|\b(?:option|choice) ([a-f])\b"
)
_PLACED = re.compile(
    rf"\b(?:the|just|only|to|on|for|with) (?:very )?({'|'.join(_ORDINALS)}|last|former|latter|other|others|rest)\b"
    r"(?! (?!(?:one|ones|thing|item|part|change|bit|please|yes|yeah|no|not|only|but|and|thanks|thank|for|now|then|is|"
    r"are|works?|sounds?|can|should|must|has|will|stays?|waits?|though|instead|first|looks?|ok|okay|fine|alone|out)\b)\w)"
    rf"|\b({'|'.join(_ORDINALS)}|last|other) (?:one|ones|thing|item|part|change|bit)\b"
)
"""Names one of several things by its place."""
_CLAUSE = re.compile(r"[,;:]| - |\b(?:but|and|while|whereas)\b")
_LEAVES = re.compile(
    r"\b(?:no|not|nope|don'?t|do not|never ?mind|forget|skip|leave|hold(?: off)?|drop|scrap|wait|without|except|spare|"
    r"omit|ignore|postpone|later)\b|n't\b"
)
"""Says of what it names that it is not to be done."""
_SHORT = 16
"""Words of an answer that says no more than which; of a longer one, "the rest" may be of anything."""
_ALONE = 30
"""Letters of an answer that may be no more than a number and a thank-you."""
_FEW = 4
"""Things that people tell apart by their places."""


class Taken(NamedTuple):
    """What is left of an exchange where an answer took some of what was put, and what it says to that."""

    proposal: tuple[Utterance, ...]
    answer: tuple[Utterance, ...]
    left: Utterance
    """What was put, and is not taken."""


def taken(proposal: tuple[Utterance, ...], answer: tuple[Utterance, ...]) -> Taken | None:
    """An exchange without what the answer does not take; None where it takes nothing by its place."""
    if not proposal or not answer:
        return None
    last = proposal[-1]
    places = {place for each in answer for place in _places(each.folded)}
    if len(places) == 1 and not any(_LEAVES.search(each.folded) for each in answer):
        items = _numbered(last.text) or _lettered(last.text)
        if items and max(places) <= len(items):
            return _taken(proposal, answer, items, places)
    return _chosen(proposal, answer)


def _chosen(proposal: tuple[Utterance, ...], answer: tuple[Utterance, ...]) -> Taken | None:
    """The same where some are taken and others left: "do the first, forget the second"."""
    spoken = [part for each in answer for part in sentences(each.text)]
    if sum(len(part.split()) for part in spoken) > _SHORT or not any(map(_PLACED.search, spoken)):
        return None
    last = proposal[-1]
    items = _numbered(last.text) or _bulleted(last.text) or _joined(last.text)
    if not 1 < len(items) <= _FEW:
        return None
    said = _Choice(spoken, len(items))
    if not said.accepted or not said.accepted.isdisjoint(said.left):
        return None
    text = ". ".join(("Yes", *said.rest))
    return _taken(proposal, (Utterance(answer[-1].step, answer[-1].by, f"{text}."),), items, said.accepted)


class _Choice:
    """What some sentences take and leave, by place."""

    def __init__(self, spoken: list[str], count: int) -> None:
        self.accepted: set[int] = set()
        self.left: set[int] = set()
        self.rest: list[str] = []
        """What they say beside it."""
        every = set(range(1, count + 1))
        for sentence in spoken:
            for clause in _CLAUSE.split(sentence):
                found = {place for match in _PLACED.finditer(clause) for place in self._places(match, every)}
                if found:
                    (self.left if _LEAVES.search(clause) else self.accepted).update(found)
                elif clause.strip(" .!?"):
                    self.rest.append(clause.strip(" .!"))
        if self.left and not self.accepted:
            self.accepted = every - self.left

    def _places(self, match: re.Match[str], every: set[int]) -> set[int]:
        word = match[1] or match[2]
        if word in ("other", "others", "rest"):
            named = self.accepted | self.left
            return every - named if named else set()
        if word in ("former", "latter", "last"):
            return {min(every) if word == "former" else max(every)}
        return {_ORDINALS[word]} & every


def _places(text: str) -> set[int]:
    found: set[int] = set()
    if len(text) > _ALONE and not any(word in text for word in _PLACES):
        return found
    for match in _TAKEN.finditer(text):
        ordinal, counted, alone, letter = match.groups()
        word = counted or alone or letter
        if ordinal:
            found.add(_ORDINALS.get(ordinal, -1))
        elif word.isdigit():
            found.add(int(word))
        else:
            found.add(_COUNTED.get(word) or ord(word) - ord("a") + 1)
    return found


Item = tuple[int, int]
"""Where one of several things begins and ends in a text."""


def _numbered(text: str) -> list[Item]:
    """The things that a text numbers from one on."""
    found = list(_NUMBER.finditer(text))
    if [int(match[1]) for match in found] != list(range(1, len(found) + 1)):
        return []
    return _listed(text, [match.start() for match in found])


def _lettered(text: str) -> list[Item]:
    """The things that a text gives letters from `a` on, each in a line of its own."""
    found = list(_LETTER.finditer(text))
    if "".join(match[1].lower() for match in found) != "abcdef"[: len(found)]:
        return []
    return _listed(text, [match.start() for match in found])


def _bulleted(text: str) -> list[Item]:
    return _listed(text, [match.start() for match in _BULLET.finditer(text)])


def _listed(text: str, starts: list[int]) -> list[Item]:
    if len(starts) < 2:
        return []
    tail = _TAIL.search(text, starts[-1])
    end = tail.start() if tail is not None else len(text)
    return list(zip(starts, [*starts[1:], end], strict=True))


def _joined(text: str) -> list[Item]:
    """The things that would be done which a sentence joins by `and`."""
    lower = text.lower()
    if len(lower) != len(text):
        return []
    found = [match for match in _AND.finditer(lower) if _is_deed(match[1] or match[2] or "")]
    if not found:
        return []
    start = max(lower.rfind(mark, 0, found[0].start()) for mark in (". ", "! ", "\n")) + 1
    end = min((at for mark in (". ", "? ", "! ", "\n") if (at := lower.find(mark, found[-1].end())) >= 0), default=-1)
    cuts = [max(0, start), *(match.start() for match in found), end + 1 if end >= 0 else len(text)]
    return list(pairwise(cuts))


def _is_deed(word: str) -> bool:
    return word in ("", "also", "then") or VERBS.get(word) == "write" or any_deed().stands_in(word)


def _taken(
    proposal: tuple[Utterance, ...], answer: tuple[Utterance, ...], items: list[Item], places: set[int]
) -> Taken:
    """What is left of a proposal whose last message has some items, where only those at some places are taken."""
    last = proposal[-1]
    text = last.text
    chosen = {len(items) if place < 0 else place for place in places}
    mine = "\n".join(text[start:end] for place, (start, end) in enumerate(items, 1) if place in chosen)
    left = "\n".join(text[start:end] for place, (start, end) in enumerate(items, 1) if place not in chosen)
    kept = f"{text[: items[0][0]]}{mine}\n{text[items[-1][1] :]}"
    return Taken((*proposal[:-1], Utterance(last.step, last.by, kept)), answer, Utterance(last.step, last.by, left))
