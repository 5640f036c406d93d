"""Regular expressions that a pack brings along: refused where one text could keep them busy for ever.

Python's engine goes back and tries again. Under a repeat, a text that can be read in two ways costs twice as much with
every round; repeats in a row that can hand letters to each other cost their product. Both are found when the pack
loads, and no search reads more than the beginning of a text.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from bylaw.errors import BylawError
from bylaw.policy.ambiguity import LOOPS_FROM, Automaton, Letters, Node, parse

LONGEST = 20_000
"""How many characters of a text are searched."""
MOST_STEPS = 2 * 10**9
"""About how many steps a search of so long a text may take at worst: some seconds, on a text made for that."""


class PatternError(BylawError):
    """A pattern of a pack could take for ever on some text."""

    code = "BY409"


class Pattern:
    """A pattern that was looked at; it searches the first characters of a text."""

    __slots__ = ("_compiled",)

    def __init__(self, compiled: re.Pattern[str]) -> None:
        self._compiled = compiled

    def search(self, text: str) -> re.Match[str] | None:
        """The first match, or None."""
        return self._compiled.search(text, 0, LONGEST)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Every match, one after the other."""
        return self._compiled.finditer(text, 0, LONGEST)


@lru_cache(maxsize=1024)
def compile_pattern(text: str, flags: int = re.IGNORECASE) -> Pattern:
    """The pattern, ready to search; `re.error` where it is none, PatternError where it could take for ever."""
    compiled = re.compile(text, flags)
    tree = parse(text, flags)
    dot_is_all = bool(compiled.flags & re.DOTALL) or _DOTS.search(text) is not None
    if fault := _fault(tree, Letters(tree, dot_is_all=dot_is_all), compiled.flags):
        raise PatternError(f"`{text[:200]}` could take for ever on some text: {fault[0]}", hint=fault[1])
    return Pattern(compiled)


_DOTS = re.compile(r"\(\?[a-zA-Z]*s")
"""Sets a flag for a part of a pattern by which a dot takes line breaks too."""


def _fault(tree: Sequence[Node], letters: Letters, flags: int) -> tuple[str, str] | None:
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
    is_anchored = bool(tree) and tree[0][0] == "AT" and not flags & re.MULTILINE
    if Work(letters).of(tree) * (1 if is_anchored else LONGEST) > MOST_STEPS:
        return "its repeats can hand letters to each other", "bound them, as in `.{0,80}`"
    return None


class Work:
    """About how often a pattern starts anew from one place, where nothing in it is ambiguous under a repeat."""

    def __init__(self, letters: Letters) -> None:
        self._letters = letters

    def of(self, tree: Sequence[Node], following: int = 0) -> int:
        """The work for a sequence; `following` are the letters that may come after it."""
        work = 1
        for op, argument in reversed(tree):
            work *= self._node(op, argument, following)
            starts, is_empty = self._starts(op, argument)
            following = starts | following if is_empty else starts
        return work

    def _node(self, op: str, argument: Any, following: int) -> int:
        match op:
            case "SUBPATTERN":
                return self.of(argument[3], following)
            case "BRANCH":
                return max(self.of(each, following) for each in argument[1])
            case "GROUPREF_EXISTS":
                return max(self.of(argument[1], following), self.of(argument[2] or (), following))
            case "ATOMIC_GROUP":
                return self.of(argument)
            case "ASSERT" | "ASSERT_NOT":
                return self.of(argument[1])
            case "POSSESSIVE_REPEAT":
                return self.of(argument[2])
            case "MAX_REPEAT" | "MIN_REPEAT":
                least, most, body = argument
                starts, _ = self._starts(op, argument)
                inner = self.of(body, following | starts if most > 1 else following)
                rounds = min(most - least + 1, LONGEST) if starts & following else 1
                # Without end it can be read in one way only, so that just one round is gone back into.
                return rounds * (inner if most >= LOOPS_FROM else inner**most)
            case "GROUPREF":
                return LONGEST if following else 1
            case _:
                return 1

    def _starts(self, op: str, argument: Any) -> tuple[int, bool]:
        """The letters a node may begin with, and whether it may be empty."""
        match op:
            case "SUBPATTERN":
                return self._first(argument[3])
            case "ATOMIC_GROUP":
                return self._first(argument)
            case "BRANCH":
                return _union([self._first(each) for each in argument[1]])
            case "GROUPREF_EXISTS":
                return _union([self._first(argument[1]), self._first(argument[2] or ())])
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                starts, is_empty = self._first(argument[2])
                return starts, is_empty or argument[0] == 0
            case "AT" | "ASSERT" | "ASSERT_NOT":
                return 0, True
            case "GROUPREF":
                return self._letters.all, True
            case _:
                return self._letters.of(op, argument), False

    def _first(self, tree: Sequence[Node]) -> tuple[int, bool]:
        found = 0
        for op, argument in tree:
            starts, is_empty = self._starts(op, argument)
            found |= starts
            if not is_empty:
                return found, False
        return found, True


def _union(each: Sequence[tuple[int, bool]]) -> tuple[int, bool]:
    found = 0
    for starts, _ in each:
        found |= starts
    return found, any(is_empty for _, is_empty in each)
