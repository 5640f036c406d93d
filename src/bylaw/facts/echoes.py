"""Recognises echoes: values in results that only repeat an argument of the same call or of an earlier write. An echoed
value is not evidence.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct

from bylaw.facts.result_places import EventTexts
from bylaw.text.folding import fold, runs_of
from bylaw.text.identifier import is_word
from bylaw.text.spelling import Spelling


class RunIndex:
    """For each run of letters or digits, the steps whose normalised text contains it."""

    __slots__ = ("_steps",)

    def __init__(self) -> None:
        self._steps: dict[str, list[int]] = {}

    def add(self, step: int, folded: str) -> None:
        """Index the text at a step. Steps must be added in order."""
        steps = self._steps
        for run in set(runs_of(folded)):
            known = steps.get(run)
            if known is None:
                steps[run] = [step]
            else:
                known.append(step)

    def candidates(self, spelling: Spelling, before: int) -> list[int]:
        """Return the steps before `before` that may contain the value, in order. They contain the rarest run of one of
        its spellings.
        """
        runs = spelling.runs
        if len(runs) == 1:
            return self._rarest(runs[0], before) or []
        ways = [found for way in runs if (found := self._rarest(way, before)) is not None]
        return ways[0] if len(ways) == 1 else sorted({step for way in ways for step in way})

    def _rarest(self, runs: tuple[str, ...], before: int) -> list[int] | None:
        """Return the steps of the run that occurs least often. None if any of the runs does not occur at all."""
        found: list[int] | None = None
        least = 0
        for run in runs:
            steps = self._steps.get(run)
            count = 0 if steps is None else len(steps) if steps[-1] < before else bisect_left(steps, before)
            if steps is None or not count:
                return None
            if found is None or count < least:
                found, least = steps, count
        return None if found is None else found if least == len(found) else found[:least]


_BETWEEN = re.compile(r"[\W_]+")
_TELLING = 6
_TELLING_WORD = 8
"""The minimum number of characters, without spaces, for a value without digits to be unlikely to match by chance."""
_PIECE = 3
"""The minimum length of a piece with a digit that is used to assemble a value."""


def letters_of(text: str) -> str:
    """Return text without differences in case and width, and without spaces, punctuation and invisible characters."""
    return _BETWEEN.sub("", unicodedata.normalize("NFKC", text).casefold())


@lru_cache(maxsize=1024)
def grouped(letters: str) -> re.Pattern[str]:
    """Return a pattern for these characters, even in groups such as `GB29 NWBK 6016` or `4111-1111-1111-1111`."""
    return re.compile(r"(?<!\w)" + r"[ \u00a0-]?".join(map(re.escape, letters)) + r"(?!\w)")


class WrittenLetters:
    """The letters and digits in several texts, such as the arguments of writes. More texts can be added."""

    __slots__ = ("_alone", "_ends", "_late", "_steps", "_text")

    def __init__(self) -> None:
        self._steps: list[int] = []
        self._ends: list[int] = []
        """The position in the text at which each write's part ends."""
        self._text = ""
        self._late: list[str] = []
        """Values that are not in the text yet."""
        self._alone: dict[str, int] = {}
        """For each complete value, the first write that has it as an argument."""

    def add(self, step: int, values: Iterable[str]) -> None:
        """Add a write's arguments. Writes must be added in order."""
        texts = [*values]
        leaves = [letters_of(text) for text in texts]
        written = "\n".join(leaves) + "\n"
        self._steps.append(step)
        self._ends.append((self._ends[-1] if self._ends else 0) + len(written))
        self._late.append(written)
        for alone in (*leaves, *(letters_of(word) for text in texts for word in text.split())):
            self._alone.setdefault(alone, step)

    def first(self, letters: str) -> int | None:
        """Return the first write whose arguments contain this value, in any spelling. None if there is none."""
        alone = self._alone.get(letters)
        place = self._whole().find(letters) if is_telling(letters) else -1
        within = self._steps[bisect_right(self._ends, place)] if place >= 0 else None
        found = [step for step in (alone, within) if step is not None]
        return min(found, default=None)

    def make_up(self, letters: str, before: int) -> bool:
        """Whether a value can be assembled from arguments of the writes before a step."""
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
    """Whether these letters and digits, without spaces, are unlikely to match by chance."""
    return len(letters) >= (_TELLING if _has_digit(letters) else _TELLING_WORD)


def _is_piece(piece: str) -> bool:
    return len(piece) >= (_PIECE if _has_digit(piece) else _TELLING)


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


CANDIDATES = 32
"""The maximum number of events to examine per value. If more contain the value's rarest part, the first ones are
examined.
"""


class Handed(Struct, frozen=True, gc=False):
    """The first write that had a value as an argument, and the first call whose argument a record may be repeating."""

    anyhow: int | None
    telling: int | None


class Echoes:
    """The values in call arguments and user messages, in any spelling."""

    def __init__(self, texts: EventTexts, shown: RunIndex) -> None:
        """`shown` is the search index of the texts of results."""
        self._texts, self._shown = texts, shown
        self._given = RunIndex()
        self._written, self._asked = WrittenLetters(), WrittenLetters()
        self._said = WrittenLetters()
        self._said_at: list[int] = []
        self._shown_letters: dict[int, str] = {}
        self._given_letters: dict[int, WrittenLetters] = {}

    def add_said(self, step: int) -> None:
        self._said.add(step, (self._texts.said(step),))
        self._said_at.append(step)

    def add_call(self, step: int) -> None:
        self._given.add(step, self._texts.given(step))
        letters = self._written if self._texts.writes(step) else self._asked
        letters.add(step, self._texts.leaves(step))

    def candidates(self, spelling: Spelling, before: int) -> list[int]:
        """Return the steps before `before` of calls that may have the value in their arguments."""
        return self._given.candidates(spelling, before)[:CANDIDATES]

    def given(self, spelling: Spelling, before: int) -> list[int]:
        """Return the steps before `before` of calls that have the value in their arguments."""
        return [step for step in self.candidates(spelling, before) if spelling.held_in(self._texts.given(step))]

    def is_given(self, spelling: Spelling, letters: str, step: int) -> bool:
        """Whether the call at `step` had the value in its arguments, in any spelling."""
        if spelling.held_in(self._texts.given(step)):
            return True
        if not letters:
            return False
        given = self._given_letters.get(step)
        if given is None:
            given = self._given_letters[step] = WrittenLetters()
            given.add(0, self._texts.leaves(step))
        return given.first(letters) is not None

    def is_told(self, spelling: Spelling, before: int) -> bool:
        """Whether any result before a step contains the value, in any field and any spelling."""
        steps = self._shown.candidates(spelling, before)[:CANDIDATES]
        if any(spelling.stands_in(self._texts.text(step)) for step in steps):
            return True
        letters = letters_of(spelling.folded)
        return is_telling(letters) and self._stood(letters, before)

    def handed(self, spelling: Spelling, letters: str, before: int) -> Handed:
        """Return the first calls that had a value in their arguments, in any spelling.

        If the user wrote the value in groups of digits, it remains the user's value, however the agent spells it. A
        plain word may occur by chance, so a call with a plain word discredits a record only if a result had shown the
        word before the call. A look-up discredits only values that results had shown before it, because systems store
        and display search terms.
        """
        loose = [each.first(letters) for each in (self._written, self._asked)] if letters else []
        sure = {step for step in loose if step is not None and step < before}
        sure -= {step for step in sure if self._texts.writes(step) and self._is_said_in_groups(letters, step)}
        is_mere = not spelling.is_number and is_word(spelling.written[0])
        anyhow: int | None = None
        telling: int | None = None
        # Hundreds of calls may contain the value, but usually the first one is enough.
        for step in sorted({*self.candidates(spelling, before), *sure}):
            if step not in sure and not spelling.held_in(self._texts.given(step)):
                continue
            is_write = self._texts.writes(step)
            anyhow = step if is_write and anyhow is None else anyhow
            if telling is None and is_write:
                telling = step if not is_mere or self._is_alone(spelling, letters, step) else None
            elif telling is None:
                telling = step if self.is_told(spelling, step) else None
            if anyhow is not None and telling is not None:
                break
        return Handed(anyhow, telling)

    def is_written(self, letters: str, written: int | None, before: int) -> bool:
        """Whether a value shown at a step may only repeat what the agent wrote.

        This is the case if an earlier write had the value as an argument, or if several writes had its parts as
        arguments after a result had shown the value.
        """
        if written is not None and written < before:
            return True
        is_made_up = self._written.make_up(letters, before) and self._stood(letters, before)
        return is_made_up and not self._is_said_in_groups(letters, before)

    def _is_alone(self, spelling: Spelling, letters: str, step: int) -> bool:
        leaves = self._texts.leaves(step)
        return any(fold(leaf) == spelling.folded for leaf in leaves) or self._stood(letters, step)

    def _stood(self, letters: str, before: int) -> bool:
        return any(letters in self._letters_shown(step) for step, _, _ in self._texts.results(before=before))

    def _letters_shown(self, step: int) -> str:
        found = self._shown_letters.get(step)
        if found is None:
            found = self._shown_letters[step] = letters_of(self._texts.text(step))
        return found

    def _is_said_in_groups(self, letters: str, before: int) -> bool:
        first = self._said.first(letters) if is_telling(letters) else 0
        if first is None or first >= before:
            return False
        said = grouped(letters)
        steps = self._said_at[bisect_left(self._said_at, first) : bisect_left(self._said_at, before)]
        return any(said.search(self._texts.said(step)) for step in steps)
