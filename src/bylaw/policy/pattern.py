"""Regular expressions that a pack brings along: refused where one text could keep them busy for ever.

Python's engine goes back and tries again. Under a repeat, a text that can be read in two ways costs twice as much with
every round: that is refused when the pack loads. Repeats in a row that can hand letters to each other cost their
product: such a pattern searches only as much of a text as surely takes no more than a second or two.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from bylaw.errors import BylawError
from bylaw.policy.ambiguity import Automaton, Letters, Node, parse
from bylaw.policy.effort import Effort

LONGEST = 20_000
"""How many characters of a text are searched, at most."""
SHORTEST = 500
"""A pattern that cannot search so many in time is refused."""
MOST_NANOSECONDS = 2 * 10**9
"""What a search may take at worst, on a text made for that."""


class PatternError(BylawError):
    """A pattern of a pack could take for ever on some text."""

    code = "BY409"


class Pattern:
    """A pattern that was looked at; it searches the first characters of a text."""

    __slots__ = ("_compiled", "longest")

    def __init__(self, compiled: re.Pattern[str], longest: int) -> None:
        self._compiled = compiled
        self.longest = longest
        """How many characters: fewer than LONGEST where its repeats can hand letters to each other."""

    def search(self, text: str) -> re.Match[str] | None:
        """The first match, or None."""
        return self._compiled.search(text, 0, self.longest)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Every match, one after the other."""
        return self._compiled.finditer(text, 0, self.longest)


@lru_cache(maxsize=1024)
def compile_pattern(text: str, flags: int = re.IGNORECASE) -> Pattern:
    """The pattern, ready to search; `re.error` where it is none, PatternError where it could take for ever."""
    compiled = re.compile(text, flags)
    tree = parse(text, flags)
    dot_is_all = bool(compiled.flags & re.DOTALL) or _DOTS.search(text) is not None
    letters = Letters(tree, dot_is_all=dot_is_all)
    fault = _fault(tree, letters)
    longest = _longest(tree, letters, compiled.flags) if fault is None else 0
    if fault is None and longest < SHORTEST:
        fault = "its repeats can hand letters to each other", "bound them, as in `.{0,80}`"
    if fault is not None:
        raise PatternError(f"`{text[:200]}` could take for ever on some text: {fault[0]}", hint=fault[1])
    return Pattern(compiled, longest)


_DOTS = re.compile(r"\(\?[a-zA-Z]*s")
"""Sets a flag for a part of a pattern by which a dot takes line breaks too."""


def _fault(tree: Sequence[Node], letters: Letters) -> tuple[str, str] | None:
    """What is wrong with a pattern, and what to do about it."""
    waiting: list[Sequence[Node]] = [tree]
    while waiting:
        part = waiting.pop()
        automaton = Automaton(letters, part)
        if not automaton.is_too_large and automaton.is_ambiguous():
            return (
                "under a repeat, the same letters can be read in more than one way",
                "let nothing under a repeat vary so that the next round could take it over",
            )
        if automaton.is_too_large:
            return "it has too many parts to tell", "split it into several patterns"
        waiting.extend(automaton.inner)
    return None


def _longest(tree: Sequence[Node], letters: Letters, flags: int) -> int:
    """How many characters can be searched in time; 0 where these are too few."""
    begins = str(tree[0][1]) if tree and tree[0][0] == "AT" else ""
    is_anchored = begins == "AT_BEGINNING_STRING" or (begins == "AT_BEGINNING" and not flags & re.MULTILINE)

    def is_in_time(length: int) -> bool:
        return Effort(letters, tree, length).nanoseconds(is_anchored=is_anchored) <= MOST_NANOSECONDS

    if is_in_time(LONGEST):
        return LONGEST
    if not is_in_time(SHORTEST):
        return 0
    enough, too_many = SHORTEST, LONGEST
    while too_many - enough > enough // 20:
        middle = (enough + too_many) // 2
        enough, too_many = (middle, too_many) if is_in_time(middle) else (enough, middle)
    return enough
