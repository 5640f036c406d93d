"""The automata for formulas. Small automata are built in full and minimised. Large automata are built state by state,
on demand.

Formulas with the same skeleton and possible letters share an automaton. Each automaton has two versions. `plain` reads
a trace once. `rearming` starts again after each step that permanently violates the formula, but keeps the history.
"""

from collections.abc import Hashable, Sequence
from functools import cached_property, lru_cache
from typing import Literal

from msgspec import Struct

from bylaw.rule.formula import Formula
from bylaw.rule.letters import Alphabet
from bylaw.rule.progression import MET, NEVER_MET, Progression, State, TooLargeError

StateVerdict = Literal["permanently_satisfied", "currently_satisfied", "currently_violated", "permanently_violated"]
VERDICTS: tuple[StateVerdict, ...] = (
    "permanently_satisfied",
    "currently_satisfied",
    "currently_violated",
    "permanently_violated",
)
BROKEN = 3
"""The index of `permanently_violated` in `VERDICTS`."""

STATE_CAP = 400
"""An automaton with more states than this before minimisation is built lazily."""
STEP_CAP = 20_000
"""An automaton with more transitions than this is built lazily."""
SEARCH_CAP = 2_000
"""The maximum number of transitions that a lazy automaton explores for a verdict. A transition with a large demand
counts several times.
"""
REPEAT_CAP = 2_000
"""The maximum number of transitions with repeated letters that a lazy automaton tries before the full search."""
REPEATS = 32


class WholeAutomaton(Struct, frozen=True):
    """A complete, minimal automaton in flat tables, with one row of entries per state and one entry per letter."""

    letters: tuple[int, ...]
    columns: dict[int, int]
    after: tuple[int, ...]
    verdicts: tuple[int | None, ...]
    accepting: tuple[bool, ...]
    start: int = 0

    @property
    def states(self) -> int:
        return len(self.accepting)

    def step(self, state: int, letter: int) -> tuple[int, int | None]:
        """Return the next state and the index of its verdict in `VERDICTS`."""
        place = state * len(self.letters) + self.columns[letter]
        return self.after[place], self.verdicts[place]

    def move(self, state: int, letter: int) -> int:
        return self.after[state * len(self.letters) + self.columns[letter]]

    def accepts(self, state: int) -> bool:
        return self.accepting[state]


class LazyAutomaton:
    """An automaton that creates its states on demand.

    To find the verdict of a state, the automaton explores up to `SEARCH_CAP` transitions from that state, looking for a
    state in which the rule has a different value. If there is such a state, the verdict is provisional. If the complete
    search finds none, the verdict is permanent. If the search is cut short, or if only some letters are known, there is
    no verdict (None).
    """

    def __init__(self, progression: Progression, letters: Sequence[int], *, complete: bool, rearming: bool) -> None:
        self._progression = progression
        self._letters = letters
        self._complete = complete
        """Whether `letters` contains all possible letters. If not, a search can show that a value may change, but never
        that it cannot change.
        """
        self._rearming = rearming
        self._states: list[State] = [progression.start]
        self._numbers: dict[State, int] = {progression.start: 0}
        self._verdicts: dict[State, int | None] = {}
        self.start = 0

    def step(self, state: int, letter: int) -> tuple[int, int | None]:
        """Return the next state and the index of its verdict in `VERDICTS`. The index is None if there is no
        verdict.
        """
        reached = self._progression.step(self._states[state], letter)
        verdict = self._verdict(reached)
        if self._rearming and verdict == BROKEN:
            reached = self._progression.rearmed(reached)
        return self._number(reached), verdict

    def move(self, state: int, letter: int) -> int:
        if self._rearming:
            return self.step(state, letter)[0]
        return self._number(self._progression.step(self._states[state], letter))

    def accepts(self, state: int) -> bool:
        return self._progression.accepts(self._states[state])

    def _number(self, state: State) -> int:
        number = self._numbers.setdefault(state, len(self._states))
        if number == len(self._states):
            self._states.append(state)
        return number

    def _verdict(self, state: State) -> int | None:
        if state not in self._verdicts:
            self._verdicts[state] = self._search(state)
        return self._verdicts[state]

    def _search(self, state: State) -> int | None:
        if state[1] == MET:
            return 0
        if state[1] == NEVER_MET:
            return BROKEN
        value = self._progression.accepts(state)
        try:
            may_change = self._changes_under_one_letter(state, value) or self._changes(state, value)
        except TooLargeError:
            return None
        if may_change:
            return 1 if value else 2
        if may_change is None or not self._complete:
            return None
        return 0 if value else BROKEN

    def _changes_under_one_letter(self, state: State, value: bool) -> bool:
        """Whether repeating a single letter changes the rule's value. This search is cheap and can follow long
        paths.
        """
        left = REPEAT_CAP
        for letter in self._letters:
            here = state
            for _ in range(REPEATS):
                left -= _cost(here)
                if left < 0:
                    return False
                here, before = self._progression.step(here, letter), here
                if self._progression.accepts(here) != value:
                    return True
                if here == before:
                    break
        return False

    def _changes(self, state: State, value: bool) -> bool | None:
        """Whether the rule's current value can still change on some path. None if the search was cut short."""
        seen = {state}
        waiting = [state]
        left = SEARCH_CAP
        while waiting:
            here = waiting.pop()
            for letter in self._letters:
                left -= _cost(here)
                if left < 0:
                    return None
                there = self._progression.step(here, letter)
                if self._progression.accepts(there) != value:
                    return True
                if there not in seen:
                    seen.add(there)
                    waiting.append(there)
        return False


Automaton = WholeAutomaton | LazyAutomaton
"""An automaton that reads one letter at a time. States are numbered, and the start state has no verdict."""


def _cost(state: State) -> int:
    """Return the cost of a search step from this state. States with large demands cost more, because they are slow."""
    return 1 + len(state[1]) ** 2 // 500


class Pair:
    """Both versions of the automaton for one skeleton and its possible letters."""

    def __init__(self, skeleton: Formula, letters: tuple[int, ...], exact: bool, samples: tuple[int, ...] = ()) -> None:
        self._letters = letters
        self._ahead = letters if exact else samples
        self._exact = exact
        self._progression = Progression(skeleton)
        self._states: list[State] = []
        self._rows: list[list[int]] = []
        self._classes: list[int] = []
        self.is_whole = bool(letters) and self._explore()

    @cached_property
    def plain(self) -> Automaton:
        if not self.is_whole:
            return LazyAutomaton(self._progression, self._ahead, complete=self._exact, rearming=False)
        classes, rows = self._classes, self._rows
        verdicts = self._class_verdicts
        outputs = [tuple(verdicts[classes[there]] for there in row) for row in rows]
        return self._table(classes, rows, outputs)

    @cached_property
    def rearming(self) -> Automaton:
        """The automaton that starts again after each step that permanently violates the formula."""
        if not self.is_whole:
            return LazyAutomaton(self._progression, self._ahead, complete=self._exact, rearming=True)
        classes, verdicts = self._classes, self._class_verdicts
        numbers = {state: number for number, state in enumerate(self._states)}
        outputs = [tuple(verdicts[classes[there]] for there in row) for row in self._rows]
        rows = [
            [
                numbers[self._progression.rearmed(self._states[there])] if verdicts[classes[there]] == BROKEN else there
                for there in row
            ]
            for row in self._rows
        ]
        accepts = [self._progression.accepts(state) for state in self._states]
        return self._table(_classes(rows, list(zip(accepts, outputs, strict=True))), rows, outputs)

    @cached_property
    def _class_verdicts(self) -> list[int | None]:
        """Return the verdict of each class. A verdict is permanent if all letters lead back to the same class."""
        found: list[int | None] = [None] * (max(self._classes) + 1)
        for state, row, number in zip(self._states, self._rows, self._classes, strict=True):
            permanent = all(self._classes[there] == number for there in row)
            if self._progression.accepts(state):
                found[number] = 0 if permanent else 1
            else:
                found[number] = BROKEN if permanent else 2
            if not (permanent or self._exact):
                found[number] = None
        return found

    def _explore(self) -> bool:
        """Visit every reachable state, including those after a restart. Return False if there are too many states or
        transitions.
        """
        progression = self._progression
        states = self._states = [progression.start]
        numbers = {progression.start: 0}
        most = min(STATE_CAP, max(2, STEP_CAP // len(self._letters)))
        try:
            for state in states:
                row: list[int] = []
                for letter in self._letters:
                    reached = progression.step(state, letter)
                    number = numbers.setdefault(reached, len(states))
                    row.append(number)
                    if number == len(states):
                        states.append(reached)
                        anew = progression.rearmed(reached)
                        if numbers.setdefault(anew, len(states)) == len(states):
                            states.append(anew)
                self._rows.append(row)
                if len(states) > most:
                    return False
        except TooLargeError:
            return False
        self._classes = _classes(self._rows, [progression.accepts(state) for state in states])
        return True

    def _table(
        self, classes: list[int], rows: list[list[int]], outputs: Sequence[Sequence[int | None]]
    ) -> WholeAutomaton:
        numbers = {classes[0]: 0}
        members = [0]
        after: list[int] = []
        verdicts: list[int | None] = []
        for member in members:
            for there in rows[member]:
                number = numbers.setdefault(classes[there], len(members))
                if number == len(members):
                    members.append(there)
                after.append(number)
            verdicts += outputs[member]
        return WholeAutomaton(
            letters=self._letters,
            columns={letter: column for column, letter in enumerate(self._letters)},
            after=tuple(after),
            verdicts=tuple(verdicts),
            accepting=tuple(self._progression.accepts(self._states[member]) for member in members),
        )


def _classes(rows: Sequence[Sequence[int]], labels: Sequence[Hashable]) -> list[int]:
    """Return the class of each state, by Moore's algorithm. States that no input can distinguish share a class."""
    numbers: dict[Hashable, int] = {}
    classes = [numbers.setdefault(label, len(numbers)) for label in labels]
    while True:
        signs: dict[Hashable, int] = {}
        finer = [
            signs.setdefault((own, *[classes[there] for there in row]), len(signs))
            for own, row in zip(classes, rows, strict=True)
        ]
        if len(signs) == len(numbers):
            return classes
        classes, numbers = finer, signs


@lru_cache(maxsize=4096)
def _pair(skeleton: Formula, letters: tuple[int, ...], exact: bool, samples: tuple[int, ...]) -> Pair:
    return Pair(skeleton, letters, exact, samples)


def automaton(alphabet: Alphabet) -> Pair:
    """Return the automaton for an alphabet. All rules with this alphabet share it."""
    return _pair(alphabet.skeleton, alphabet.possible, alphabet.exact, alphabet.samples)
