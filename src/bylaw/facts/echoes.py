"""What results only say again: what their own call was given, or what a write before was. An echo founds nothing."""

from bisect import bisect_left

from msgspec import Struct

from bylaw.facts.event_texts import EventTexts
from bylaw.facts.letters import WrittenLetters, grouped, is_telling, letters_of
from bylaw.facts.run_index import RunIndex
from bylaw.text.bare import is_word
from bylaw.text.folding import fold
from bylaw.text.spelling import Spelling

CANDIDATES = 32
"""Events that are looked at for one value: the first that hold its rarest part."""


class Handed(Struct, frozen=True, gc=False):
    """The first write that was given a value, and the first call that may be where a record has it from."""

    anyhow: int | None
    telling: int | None


class Echoes:
    """Knows what calls were given and users said, in any spelling, as events come."""

    def __init__(self, texts: EventTexts, shown: RunIndex) -> None:
        """`shown` is what results showed, by its runs."""
        self._texts, self._shown = texts, shown
        self._given = RunIndex()
        """By their runs, what calls were given."""
        self._written, self._asked = WrittenLetters(), WrittenLetters()
        """What writes were given, and what other calls were, by letters and digits."""
        self._said = WrittenLetters()
        """What the user has said, by letters and digits."""
        self._said_at: list[int] = []
        self._shown_letters: dict[int, str] = {}
        self._given_letters: dict[int, WrittenLetters] = {}

    def add_said(self, step: int) -> None:
        """Take in a message of the user."""
        self._said.add(step, (self._texts.said(step),))
        self._said_at.append(step)

    def add_call(self, step: int) -> None:
        """Take in a call."""
        self._given.add(step, self._texts.given(step))
        letters = self._written if self._texts.writes(step) else self._asked
        letters.add(step, self._texts.leaves(step))

    def candidates(self, spelling: Spelling, before: int) -> list[int]:
        """The steps of calls before a step that may have been given a value."""
        return self._given.candidates(spelling, before)[:CANDIDATES]

    def given(self, spelling: Spelling, before: int) -> list[int]:
        """The steps of the calls before a step that were given a value, perhaps within a text."""
        return [step for step in self.candidates(spelling, before) if spelling.held_in(self._texts.given(step))]

    def is_given(self, spelling: Spelling, letters: str, step: int) -> bool:
        """Whether the call at `step` was given a value, in any spelling."""
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
        """Whether a result before a step shows a value, in any place and any spelling."""
        steps = self._shown.candidates(spelling, before)[:CANDIDATES]
        if any(spelling.stands_in(self._texts.text(step)) for step in steps):
            return True
        letters = letters_of(spelling.folded)
        return is_telling(letters) and self._stood(letters, before)

    def handed(self, spelling: Spelling, letters: str, before: int) -> Handed:
        """The first calls that were given a value, perhaps within a text, in whatever spelling.

        What the user said in groups of figures is the user's, however the agent spells it. A mere word may stand in a
        text by chance: such a text spoils no record, unless a result had shown the word before. A look-up spoils one
        only of what a result had told by then: systems keep what was searched for, and show it.
        """
        loose = [each.first(letters) for each in (self._written, self._asked)] if letters else []
        sure = {step for step in loose if step is not None and step < before}
        sure -= {step for step in sure if self._texts.writes(step) and self._is_said_in_groups(letters, step)}
        is_mere = not spelling.is_number and is_word(spelling.written[0])
        anyhow: int | None = None
        telling: int | None = None
        # Hundreds of calls may have been given it: mostly the first tells.
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
        """Whether what shows a value at a step may only say again what the agent wrote: one write before was given it,
        or several were given its parts after a result had shown it."""
        if written is not None and written < before:
            return True
        is_made_up = self._written.make_up(letters, before) and self._stood(letters, before)
        return is_made_up and not self._is_said_in_groups(letters, before)

    def _is_alone(self, spelling: Spelling, letters: str, step: int) -> bool:
        """Whether a word was all that an argument of the write at `step` said, or had been shown before it."""
        leaves = self._texts.leaves(step)
        return any(fold(leaf) == spelling.folded for leaf in leaves) or self._stood(letters, step)

    def _stood(self, letters: str, before: int) -> bool:
        """Whether a result before a step shows these letters and digits, in whatever spelling."""
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
