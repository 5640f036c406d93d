"""A formula made ready to run: its predicates, how they turn into letters, and its automaton."""

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache

from msgspec import Struct

from bylaw.rule.automaton import Pair, WholeAutomaton, automaton
from bylaw.rule.formula import Formula
from bylaw.rule.letters import alphabet, letter_of, letter_table, possible_letters

FLAT_CAP = 8
"""Up to so many predicates, letters are looked up by their bits."""


class Flat(Struct, frozen=True):
    """A re-arming automaton indexed by `state << count | bits`, states being shifted already."""

    after: tuple[int, ...]
    verdicts: bytes


class Program:
    """What all rules with the same formula share."""

    def __init__(self, formula: Formula) -> None:
        self.formula = formula
        self._alphabet = alphabet(formula)
        self.names = self._alphabet.names
        self.pair: Pair = automaton(self._alphabet)
        self._places = {name: 1 << place for place, name in enumerate(self.names)}
        self._letters: dict[tuple[int, int], tuple[int, ...]] = {}

    def letters(self, values: Mapping[str, bool | None]) -> Sequence[int]:
        """The letters that a step may be, absent names being unknown; none where there are too many to list."""
        bits = unknown = 0
        for name, place in self._places.items():
            value = values.get(name)
            if value is None:
                unknown |= place
            elif value:
                bits |= place
        letters = self._letters.get((bits, unknown))
        if letters is None:
            letters = self._find(bits, unknown)
            if len(self._letters) < 4096:
                self._letters[bits, unknown] = letters
        return letters

    def _find(self, bits: int, unknown: int) -> tuple[int, ...]:
        known = {name: bool(bits & place) for name, place in self._places.items() if not unknown & place}
        if not unknown:
            return (letter_of(self._alphabet.leaves, known),)
        return possible_letters(self._alphabet.leaves, known)[0]

    @cached_property
    def flat(self) -> Flat | None:
        """The re-arming automaton with letters by bits; None where it is too large or not certain of its verdicts."""
        table = self.pair.rearming
        if len(self.names) > FLAT_CAP or not isinstance(table, WholeAutomaton):
            return None
        columns = [table.columns[letter] for letter in letter_table(self._alphabet.leaves, self.names)]
        places = [state * len(table.letters) + column for state in range(len(table.accepting)) for column in columns]
        verdicts = [verdict for place in places if (verdict := table.verdicts[place]) is not None]
        if len(verdicts) < len(places):
            return None
        return Flat(tuple(table.after[place] << len(self.names) for place in places), bytes(verdicts))


@lru_cache(maxsize=4096)
def program(formula: Formula) -> Program:
    """The program of a formula, made once."""
    return Program(formula)
