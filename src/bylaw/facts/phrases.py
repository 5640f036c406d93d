"""Many patterns over short texts, each tried only where a part that it needs stands in the text.

One long alternation is tried at every place of a text; to look for a plain part first costs next to nothing.
"""

import re
from collections.abc import Callable
from functools import cached_property


class Phrases:
    """Patterns with the parts of which a text must hold at least one before its pattern is tried."""

    def __init__(self, *entries: tuple[str, str]) -> None:
        """Each entry has the parts, divided by `|`, and the pattern, which is compiled when it is first tried."""
        self._entries = [(tuple(parts.split("|")), pattern) for parts, pattern in entries]
        self._searches: dict[str, Callable[[str], object]] = {}
        self.patterns = [pattern for _, pattern in entries]

    def found_in(self, text: str) -> bool:
        """Whether any of the patterns matches somewhere in a text."""
        for parts, pattern in self._entries:
            for part in parts:
                if part in text:
                    search = self._searches.get(pattern)
                    if search is None:
                        search = self._searches[pattern] = re.compile(pattern).search
                    if search(text) is not None:
                        return True
                    break
        return False

    def without(self, text: str) -> str:
        """A text with a blank in place of all that the patterns match."""
        for parts, _ in self._entries:
            for part in parts:
                if part in text:
                    return self._any.sub(" ", text)
        return text

    def all_in(self, text: str) -> list[str]:
        """All that the patterns match in a text."""
        for parts, _ in self._entries:
            for part in parts:
                if part in text:
                    return [found[0] for found in self._any.finditer(text)]
        return []

    @cached_property
    def _any(self) -> re.Pattern[str]:
        return re.compile("|".join(f"(?:{pattern})" for pattern in self.patterns))
