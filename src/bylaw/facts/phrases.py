"""Many patterns over short texts, each tried only where a part that it needs stands in the text.

One long alternation is tried at every place of a text; to look for a plain part first costs next to nothing.
"""

import re
from collections.abc import Callable, Sequence
from functools import cached_property


class Phrases:
    """Patterns with the parts of which a text must hold at least one before its pattern is tried."""

    def __init__(self, *entries: tuple[str, str]) -> None:
        """Each entry has the parts, divided by `|`, and the pattern, which is compiled when it is first tried."""
        self._entries = [(tuple(parts.split("|")), pattern) for parts, pattern in entries]
        self._parts = tuple(dict.fromkeys(part for parts, _ in self._entries for part in parts))
        self._searches: dict[str, Callable[[str], object]] = {}
        self.patterns = [pattern for _, pattern in entries]

    def found_in(self, text: str) -> bool:
        """Whether any of the patterns matches somewhere in a text."""
        for parts, pattern in self._entries:
            for part in parts:
                if part in text:
                    if self._search(pattern)(text) is not None:
                        return True
                    break
        return False

    def may_be_in(self, text: str) -> bool:
        """Whether a part of any pattern stands in a text: if not, no pattern matches in it, nor in a piece of it."""
        return _stands(self._parts, text)

    def among(self, sentences: Sequence[str], text: str) -> list[str]:
        """Of the sentences of a text, those in which any of the patterns matches."""
        near = [entry for entry in self._entries if _stands(entry[0], text)]
        return [each for each in sentences if any(self._is_in(each, *entry) for entry in near)] if near else []

    def without(self, text: str) -> str:
        """A text with a blank in place of all that the patterns match."""
        return self._any.sub(" ", text) if self.may_be_in(text) else text

    def all_in(self, text: str) -> list[str]:
        """All that the patterns match in a text."""
        return [found[0] for found in self._any.finditer(text)] if self.may_be_in(text) else []

    def _is_in(self, text: str, parts: Sequence[str], pattern: str) -> bool:
        return _stands(parts, text) and self._search(pattern)(text) is not None

    def _search(self, pattern: str) -> Callable[[str], object]:
        search = self._searches.get(pattern)
        if search is None:
            search = self._searches[pattern] = re.compile(pattern).search
        return search

    @cached_property
    def _any(self) -> re.Pattern[str]:
        return re.compile("|".join(f"(?:{pattern})" for pattern in self.patterns))


def _stands(parts: Sequence[str], text: str) -> bool:
    for part in parts:  # noqa: SIM110 - a generator would cost more than what it looks for
        if part in text:
            return True
    return False
