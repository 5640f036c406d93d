"""Finds the acts that can break a rule if only certain acts are possible."""

from collections.abc import Sequence

from msgspec import Struct

from bylaw.rule.automaton import BROKEN
from bylaw.rule.formula import Formula
from bylaw.rule.monitor import Values, program


class Reach(Struct, frozen=True):
    acts: frozenset[int]
    at_end: bool

    @property
    def is_breakable(self) -> bool:
        return self.at_end or bool(self.acts)


def reach(formula: Formula, acts: Sequence[Values]) -> Reach:
    """Return the places where a rule can break in conversations that consist only of these acts.

    Each act is given by its known predicates. Unknown predicates may have any value. If the automaton of the rule is
    too large to search, the rule is assumed to break anywhere.
    """
    ready = program(formula)
    face = ready.pair.rearming
    letters = [ready.letters(values) for values in acts]
    if not ready.pair.is_whole or not all(letters):
        return Reach(frozenset(range(len(acts))), True)
    by_letter: dict[int, set[int]] = {}
    for number, own in enumerate(letters):
        for letter in own:
            by_letter.setdefault(letter, set()).add(number)
    broken: set[int] = set()
    seen = {face.start}
    waiting = [face.start]
    at_end = False
    while waiting:
        here = waiting.pop()
        for letter, numbers in by_letter.items():
            there, verdict = face.step(here, letter)
            if verdict is None or verdict == BROKEN:
                broken |= numbers
            at_end = at_end or not face.accepts(there)
            if there not in seen:
                seen.add(there)
                waiting.append(there)
    return Reach(frozenset(broken), at_end)
