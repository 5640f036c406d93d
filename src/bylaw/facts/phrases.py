"""Many patterns over short texts, each tried only where a part that it needs stands in the text.

One long alternation is tried at every place of a text; to look for a plain part first costs next to nothing.
"""

import re


class Phrases:
    """Patterns with the parts of which a text must hold at least one before its pattern is tried."""

    def __init__(self, *entries: tuple[str, str]) -> None:
        """Each entry has the parts, divided by `|`, and the pattern."""
        self._entries = [(tuple(parts.split("|")), re.compile(pattern)) for parts, pattern in entries]

    def found_in(self, text: str) -> bool:
        """Whether any of the patterns matches somewhere in a text."""
        for parts, pattern in self._entries:
            for part in parts:
                if part in text:
                    if pattern.search(text) is not None:
                        return True
                    break
        return False
