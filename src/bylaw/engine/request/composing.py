"""Whether a text that the agent wrote holds what it may: the user's words, and what the request takes it from.

A link, an address or an account number in it must be the user's, or stand in a source of the text; and no passage may
come from another text than those.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from bylaw.engine.request.allowance import Source, fetches
from bylaw.engine.request.naming import Naming
from bylaw.engine.request.view import View
from bylaw.facts.provenance import Traced, plain_link
from bylaw.text.identifier import identifiers

LINK = re.compile(r"(?:https?://|www\.)[^\s<>\"')\]]+", re.IGNORECASE)
TRIM = ".,;:!?'\"()[]*_`"
_PASSAGE = 5
"""Words in a row that one text has of another."""
_PASSAGES = 100
_CODE = 8
_FIGURES = 4
_FIGURE = re.compile(r"(?<![\w.])[A-Za-z]*-?\d[\w.,-]*\d(?!\w)")
"""An amount, a number or a code of two figures or more."""


class Composing:
    """Holds texts that the agent wrote to what they may be made of."""

    def __init__(
        self, view: View, naming: Naming, approved: Callable[[str], bool], is_said: Callable[[str], bool]
    ) -> None:
        self._view, self._naming, self._approved, self._is_said = view, naming, approved, is_said

    def strange_name(self, text: str, sources: Sequence[Source]) -> str:
        """A link, an address or a long code in a text that is neither the user's nor from its sources."""
        for name in _names_in(text):
            is_said = self._is_said(name) or self._approved(name)
            is_found = self._is_linked(name, sources) if LINK.match(name) else self._is_in_its_piece(name, sources)
            if not is_said and not is_found:
                return name
        return ""

    def strange_passage(self, text: str, sources: Sequence[Source]) -> str:
        """A passage that stands in a text which somebody wrote and which is none of the sources."""
        # Of a channel that the user named all may be passed on, and not only messages with a word of the description.
        passages = [*_passages(text)]
        sources = [self._naming.by_name(source) for source in sources] if passages else ()
        for passage in passages:
            if self._is_said(passage):
                continue
            sights = [*self._view.sights(passage)]
            if any(sight.source == "content" for sight in sights) and not self._is_in(passage, sources):
                return passage
        return ""

    def figure_of_another(self, text: str, sources: Sequence[Source], is_best: Callable[[Traced], bool | None]) -> str:
        """A figure or a code in a text that its sources show only beside other things than those the user named, or
        only in records that are not the one which the user chose; or the first, where all stand beside other things
        than those that the words fit best which the right one may bear."""
        unlikely: list[str] = []
        is_likely = False
        for value in dict.fromkeys(_FIGURE.findall(text)):
            if self._is_said(value):
                continue
            stands = [*self._stands(value, [source.as_named() for source in sources], is_best)]
            if stands and not any(stands):
                return value
            stands = [*self._stands(value, sources, is_best)]
            is_likely = is_likely or any(stands)
            unlikely += [value] if stands and not any(stands) else []
        return "" if is_likely or not unlikely else unlikely[0]

    def _stands(
        self, value: str, sources: Sequence[Source], is_best: Callable[[Traced], bool | None]
    ) -> Iterator[bool]:
        """For each place in a source that shows a figure, whether it is the right one by the names given."""
        for sight in self._view.sights(value):
            for source in sources:
                if source.named and (
                    self._naming.is_in_text_of(source, sight) or self._naming.is_of(source, sight, value)
                ):
                    is_beside = sight.is_whole or self._naming.passages.stands_by_its_names(source, sight, value)
                    yield is_beside and is_best(sight) is not False

    def _is_in(self, value: str, sources: Sequence[Source]) -> bool:
        sights = self._view.sights(plain_link(value))
        return any(self._naming.is_of(source, sight, value) for sight in sights for source in sources)

    def _is_in_its_piece(self, value: str, sources: Sequence[Source]) -> bool:
        """Whether a value stands in a source, and of a running text in the piece that bears the names."""
        sights = [*self._view.sights(plain_link(value))]
        return any(
            self._naming.is_of(source, sight, value)
            and (sight.is_whole or self._naming.passages.stands_by_its_names(source, sight, value, among_all=True))
            for sight in sights
            for source in sources
        )

    def _is_linked(self, link: str, sources: Sequence[Source]) -> bool:
        """Whether a link stands in a source; not one of a page, which may not send people to another."""
        pages = {name for name, tool in self._view.tools.items() if fetches(tool)}
        return self._is_in_its_piece(link, [source for source in sources if source.tool not in pages])


def _names_in(text: str) -> Iterator[str]:
    """The links, addresses and long codes of a text."""
    yield from (link.rstrip(TRIM) for link in LINK.findall(text))
    for name in identifiers(text):
        if is_code(name) or ("@" in name and not LINK.match(name)):
            yield name


def is_code(name: str) -> bool:
    """Whether a name is a long code: an account, a passport."""
    return len(name) >= _CODE and sum(each.isdigit() for each in name) >= _FIGURES and name.isalnum()


def _passages(text: str) -> Iterator[str]:
    words = text.split()
    for start in range(min(len(words) - _PASSAGE + 1, _PASSAGES)):
        yield " ".join(words[start : start + _PASSAGE]).strip(TRIM)
