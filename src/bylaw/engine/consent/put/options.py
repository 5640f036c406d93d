"""Which of several numbered options an answer takes: "the second one, please"."""

import re

from bylaw.engine.consent.said.utterance import Utterance

_NUMBER = re.compile(r"(?:(?<=[\s:;,*(])|^)\(?(?:option |choice )?(\d)[.):](?=[\s*])", re.IGNORECASE | re.MULTILINE)
_TAIL = re.compile(r"\n\s*\n|\n(?=[^\s*•-])")
"""Ends the last option: a blank line, or one that begins as no part of a list does."""
_ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "fifth": 5}
_COUNTED = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
_TAKEN = re.compile(
    rf"\b(?:the|on|just|only|with|to|for) ({'|'.join(_ORDINALS)}|last)(?: (?:one|option|choice|plan))?"
    r"(?=\W*(?:$|[.,;!\n]|please\b|thanks\b|thank\b|for now\b|then\b|now\b|only\b|and\b|but\b|works\b|sounds\b|is\b))"
    rf"|\b(?:option|choice|number|no\.|#) ?(\d|{'|'.join(_COUNTED)})\b"
    r"|^\W*(\d)\W*(?:please|thanks|thank you)?\W*$"
)


def taken(proposal: tuple[Utterance, ...], answer: tuple[Utterance, ...]) -> tuple[Utterance, ...] | None:
    """The proposal without the numbered options that the answer does not take; None where it takes none by number."""
    if not proposal or not (places := {place for each in answer for place in _places(each.folded)}):
        return None
    last = proposal[-1]
    if len(places) > 1 or (kept := _kept(last.text, places.pop())) is None:
        return None
    return (*proposal[:-1], Utterance(last.step, last.by, kept))


def _places(text: str) -> set[int]:
    found: set[int] = set()
    for match in _TAKEN.finditer(text):
        ordinal, counted, alone = match.groups()
        if ordinal:
            found.add(_ORDINALS.get(ordinal, -1))
        else:
            word = counted or alone
            found.add(_COUNTED.get(word) or int(word))
    return found


def _kept(text: str, place: int) -> str | None:
    """A text without its other options; None where they are not numbered from one on, or there are not so many."""
    found = list(_NUMBER.finditer(text))
    if len(found) < 2 or [int(match[1]) for match in found] != list(range(1, len(found) + 1)) or place > len(found):
        return None
    chosen = len(found) if place < 0 else place
    starts = [match.start() for match in found]
    tail = _TAIL.search(text, starts[-1])
    end = tail.start() if tail is not None else len(text)
    ends = [*starts[1:], end]
    return f"{text[: starts[0]]}{text[starts[chosen - 1] : ends[chosen - 1]]}\n{text[end:]}"
