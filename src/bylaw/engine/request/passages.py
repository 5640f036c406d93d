"""Where a value stands in a running text: it is the line or the sentence that bears the names."""

import re
from collections.abc import Sequence

from bylaw.engine.request.allowance import Source, Span
from bylaw.engine.request.bearing import WHOLLY, likely_words, names, telling_stems
from bylaw.engine.request.values import given_words
from bylaw.engine.request.view import View, step_of
from bylaw.facts.provenance import Traced, plain_link
from bylaw.text.folding import fold, occurs
from bylaw.text.identifier import identifiers, is_prose
from bylaw.text.spelling import spell

_HEADED = 2
"""A text of more lines has a heading."""
NAMED = 100
"""What a name in a piece of a text counts, beside words that it may bear."""
_SENTENCE = re.compile(r"(?<=[.!?;])\s+")


class Passages:
    """Holds the pieces of the texts that results show against the names that the user gave."""

    def __init__(self, view: View) -> None:
        self._view = view

    def is_in_a_row(self, sight: Traced, value: str, codes: Sequence[str]) -> bool:
        """Whether a code stands in a line of a text that has no other and is no sentence."""
        text = self._view.around(sight).written(sight.number, sight.field)
        lines = (text or self._view.text(step_of(sight))).splitlines()
        rows = [line for line in lines if value in line and sum(code in line for code in codes) == 1]
        return bool(rows) and not any(is_prose(fold(line)) for line in rows)

    def alone_bears(self, source: Source, sight: Traced, value: str, rivals: Sequence[str]) -> bool:
        """Whether pieces of a running text that bear any of the names hold a value, and none holds a rival of it:
        whoever adds a line with the name makes two of it."""
        counted = self._borne(source, sight, said=True)
        most = max((count for _, count in counted), default=0)
        borne = [piece for piece, count in counted if count and (count >= NAMED or count == most < NAMED)]
        held = {rival for rival in rivals for piece in borne if occurs(fold(rival), piece) >= 0}
        return held == {value}

    def stands_by_its_names(
        self, source: Source, sight: Traced, value: str | float, *, among_all: bool = False
    ) -> bool:
        """Of a value in a text, whether no other piece of it bears more of the names which the text alone bears. Of the
        pieces those count that hold such a value, with `among_all` all.

        "Ann's contract has ended. Ben's runs until May": asked for the contract that has ended, it is not Ben's.
        """
        named = fold(str(plain_link(value)))
        is_plain = not identifiers(named)
        borne = [each for each in self._borne(source, sight, headed=is_plain) if among_all or _may_hold(each[0], named)]
        most = max((count for _, count in borne), default=0)
        spelling = spell(plain_link(value))
        held = [count for piece, count in borne if spelling is not None and spelling.said_in(piece)]
        return not most or most in held

    def _borne(
        self, source: Source, sight: Traced, *, said: bool = False, headed: bool = False
    ) -> list[tuple[str, int]]:
        """The pieces of the text that a value stands in, folded, each with how many names of its source it bears; those
        aside that short fields of the record or the tool's arguments bear. With `said` none but the user's words; with
        `headed` what the first of several lines says, it says of the whole text."""
        places = self._view.around(sight)
        given = given_words(sight.arguments)
        short = [each for each in places.beside_number(sight.number).values() if not is_prose(each)]
        text = places.written(sight.number, sight.field) or self._view.text(step_of(sight))
        lines = [line for line in text.splitlines() if line.strip()]
        outer = (*short, *given, *(fold(line) for line in lines[: headed and len(lines) > _HEADED]))
        words = [
            word for word in self._view.words(source.named) if not any(names(word, each) >= WHOLLY for each in outer)
        ]
        perhaps = [
            word
            for word, _ in likely_words(self._view.request, source.perhaps, () if said else source.guessed)
            if not any(names(word, each) >= WHOLLY for each in outer)
        ]
        pieces = [fold(each) for each in pieces_of(text)]
        return [(piece, NAMED * _borne_by(words, piece) + _borne_by(perhaps, piece)) for piece in pieces]

    def stands_by_words(
        self, texts: Sequence[str], spans: Sequence[Span], value: str | float, *, as_well: bool
    ) -> bool:
        """Whether the sentence of running texts that holds a value has more words of a description than any other, or
        with `as_well` the line as many; or is the only one."""
        told, spelling = telling_stems(" ".join(self._view.words(spans))), spell(plain_link(value))
        mine = others = 0
        parts = [line for text in texts for line in text.splitlines() if line.strip()] if as_well else []
        pieces = [fold(piece) for piece in parts or (piece for text in texts for piece in pieces_of(text))]
        for piece in pieces:
            shared = len(told & telling_stems(piece))
            if spelling is not None and spelling.said_in(piece):
                mine = max(mine, shared)
            else:
                others = max(others, shared)
        return mine > others or len(pieces) == 1 or (as_well and mine == others)

    def lines(self, step: int, value: str) -> str:
        """The lines of a text in which a value stands, folded."""
        lines = (fold(line) for line in self._view.text(step).splitlines())
        return " \n ".join(line for line in lines if occurs(value, line) >= 0)


def _borne_by(words: Sequence[str], piece: str) -> int:
    return sum(bool(names(word, piece)) for word in words)


def _may_hold(piece: str, value: str) -> bool:
    """Whether a piece of a text holds something of the kind that a value is: an address, a link, a code, a figure. A
    plain name may stand anywhere."""
    if not any(each.isdigit() for each in value) and "@" not in value and "." not in value:
        return True
    if value.replace(".", "").replace(",", "").isdigit():
        return any(each.isdigit() for each in piece)
    return bool(identifiers(piece))


def pieces_of(text: str) -> list[str]:
    """The lines of a text, and of these the sentences."""
    return [piece for line in text.splitlines() for piece in _SENTENCE.split(line) if piece.strip()]
