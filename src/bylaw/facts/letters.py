"""Values by their letters and digits alone, however they are spaced, joined or split: what writes were given comes back
without the blanks, the dashes or the label that it was handed over with."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import lru_cache

_BETWEEN = re.compile(r"[\W_]+")
_TELLING = 6
_TELLING_WORD = 8
"""So many letters and digits, or letters alone, do not come together by chance where blanks are left out."""
_PIECE = 3
"""The shortest piece, with a digit in it, that a value is put together from."""


def letters_of(text: str) -> str:
    """A text without its case, its width, its blanks and its signs, also those that nobody sees."""
    return _BETWEEN.sub("", unicodedata.normalize("NFKC", text).casefold())


@lru_cache(maxsize=1024)
def grouped(letters: str) -> re.Pattern[str]:
    """Finds these letters and digits as people group them: `GB29 NWBK 6016`, `4111-1111-1111-1111`."""
    return re.compile(r"(?<!\w)" + r"[ \u00a0-]?".join(map(re.escape, letters)) + r"(?!\w)")


class WrittenLetters:
    """What writes were given, by letters and digits. It grows with the conversation."""

    __slots__ = ("_alone", "_ends", "_late", "_steps", "_text")

    def __init__(self) -> None:
        self._steps: list[int] = []
        self._ends: list[int] = []
        """By write, where its part of the text ends."""
        self._text = ""
        """All that writes were given, one value on a line."""
        self._late: list[str] = []
        """What has yet to be put to the text."""
        self._alone: dict[str, int] = {}
        """By what may stand for a value whole, the first write that was given it."""

    def add(self, step: int, values: Iterable[str]) -> None:
        """Take in what a later write than all before was given."""
        texts = [*values]
        leaves = [letters_of(text) for text in texts]
        written = "\n".join(leaves) + "\n"
        self._steps.append(step)
        self._ends.append((self._ends[-1] if self._ends else 0) + len(written))
        self._late.append(written)
        for alone in (*leaves, *(letters_of(word) for text in texts for word in text.split())):
            self._alone.setdefault(alone, step)

    def first(self, letters: str) -> int | None:
        """The first write that was given a value, in any spelling, perhaps within a text."""
        alone = self._alone.get(letters)
        place = self._whole().find(letters) if is_telling(letters) else -1
        within = self._steps[bisect_right(self._ends, place)] if place >= 0 else None
        found = [step for step in (alone, within) if step is not None]
        return min(found, default=None)

    def make_up(self, letters: str, before: int) -> bool:
        """Whether a value can be put together from what writes before a step were given."""
        count = bisect_left(self._steps, before)
        if not count or not is_telling(letters):
            return False
        text, length = self._whole(), self._ends[count - 1]
        reached, pending = {0}, [0]
        while pending:
            start = pending.pop()
            end = start + 1
            while end <= len(letters) and text.find(letters[start:end], 0, length) >= 0:
                piece = letters[start:end]
                if end not in reached and (_is_piece(piece) or self._is_alone(piece, before)):
                    reached.add(end)
                    pending.append(end)
                end += 1
        return len(letters) in reached

    def _is_alone(self, piece: str, before: int) -> bool:
        step = self._alone.get(piece)
        return len(piece) > 1 and step is not None and step < before

    def _whole(self) -> str:
        if self._late:
            self._text = "".join((self._text, *self._late))
            self._late = []
        return self._text


def is_telling(letters: str) -> bool:
    """Whether letters and digits would hardly come together by chance where blanks are left out."""
    return len(letters) >= (_TELLING if _has_digit(letters) else _TELLING_WORD)


def _is_piece(piece: str) -> bool:
    return len(piece) >= (_PIECE if _has_digit(piece) else _TELLING)


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))
