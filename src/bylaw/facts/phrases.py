"""Many patterns over short texts, each tried only where parts that it needs stand in the text.

One long alternation is tried at every place of a text; to look for a plain part first costs next to nothing.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial


class Phrases:
    """Patterns with the parts that a text must hold before its pattern is tried."""

    def __init__(self, *entries: tuple[str, str]) -> None:
        """Each entry has the parts and the pattern, which is compiled when it is first tried.

        A text must hold one of the parts, which are divided by `|`; where there are several such groups, divided by
        `&`, one of each.
        """
        self._needed = [tuple(tuple(group.split("|")) for group in parts.split("&")) for parts, _ in entries]
        self._searches: list[Callable[[str], object]] = [partial(self._first, at) for at in range(len(entries))]
        self._patterns: dict[tuple[int, ...], re.Pattern[str]] = {}
        self.patterns = [pattern for _, pattern in entries]

    def found_in(self, text: str) -> bool:
        """Whether any of the patterns matches somewhere in a text."""
        for at, groups in enumerate(self._needed):
            # Written out, as this is asked more often than anything else.
            for parts in groups:
                for part in parts:
                    if part in text:
                        break
                else:
                    break
            else:
                if self._searches[at](text) is not None:
                    return True
        return False

    def may_be_in(self, text: str) -> bool:
        """Whether the parts of any pattern stand in a text: if not, no pattern matches in it, nor in a piece of it."""
        return any(_stand(groups, text) for groups in self._needed)

    def among(self, sentences: Sequence[str], text: str) -> list[str]:
        """Of the sentences of a text, those in which any of the patterns matches."""
        return [each for each in sentences if self.found_in(each)] if self.may_be_in(text) else []

    def without(self, text: str) -> str:
        """A text with a blank in place of all that the patterns match."""
        found = self._matching(text)
        return self._joined(found).sub(" ", text) if found else text

    def all_in(self, text: str) -> list[str]:
        """All that the patterns match in a text."""
        found = self._matching(text)
        return [match[0] for match in self._joined(found).finditer(text)] if found else []

    def _matching(self, text: str) -> tuple[int, ...]:
        """The places of the patterns that match in a text; in most texts none does, and that is soon found."""
        if not self.found_in(text):
            return ()
        near = (at for at, groups in enumerate(self._needed) if _stand(groups, text))
        return tuple(at for at in near if self._searches[at](text) is not None)

    def _first(self, at: int, text: str) -> object:
        search = self._searches[at] = self._joined((at,)).search
        return search(text)

    def _joined(self, places: tuple[int, ...]) -> re.Pattern[str]:
        """Some of the patterns as one; the others match nowhere, so that it finds what all of them would."""
        pattern = self._patterns.get(places)
        if pattern is None:
            pattern = self._patterns[places] = re.compile("|".join(f"(?:{self.patterns[at]})" for at in places))
        return pattern


def _stand(groups: Sequence[Sequence[str]], text: str) -> bool:
    """Whether a text holds one part of each group."""
    for parts in groups:
        for part in parts:
            if part in text:
                break
        else:
            return False
    return True
