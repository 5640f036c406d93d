"""What the user left out: "everyone except Ann", "the signed ones stay", "do not mention the price".

A thing is left out where its own name, or the record that shows it, bears the words better than any other record beside
it. Where all are meant but some, and no result shows which, that is asked about.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from bylaw.engine.request.allowance import Slot
from bylaw.engine.request.naming import Naming, about, closeness, is_name, leaves_of, names
from bylaw.engine.request.stems import telling_stems
from bylaw.facts.provenance import Provenance
from bylaw.text.folding import fold, occurs

_TELLING = 3
"""Letters and figures of a value by which it is known in a text."""


class LeavingOut:
    """Holds values and texts to what the user left out."""

    def __init__(self, provenance: Provenance, naming: Naming, request: str, before: int) -> None:
        self._provenance, self._naming = provenance, naming
        self._request, self._before = request, before

    def is_out(self, slot: Slot, value: str | float, arguments: Mapping[str, Any] | None = None) -> bool:
        """Whether a value is one that the user left out, or may be, as nothing shows which those are.

        `arguments` are those of the call: "who is not in the channel yet" is about the channel that it is given.
        """
        for span, words in zip(slot.but, self._naming.words(slot.but), strict=True):
            mine = telling_stems(words)
            given = ((name, each) for name, each in (arguments or {}).items() if name != slot.name)
            words = next((fold(str(each)) for name, each in given if telling_stems(name) & mine), words)
            shown = [*self._shown(words, value)]
            if any(shown) or names(words, fold(str(value))):
                return True
            # A name that stands nowhere is of nobody here; a description that nothing bears may be of anybody.
            if slot.every and not is_name(self._request[span.start : span.end]) and not self._is_borne(words):
                return True
        return False

    def held_in(self, slot: Slot, text: str) -> str:
        """What the user left out and a text holds: the words themselves, or a field that they name; else nothing."""
        folded = fold(text)
        for words in self._naming.words(slot.but):
            if occurs(words, folded) >= 0:
                return words
            mine = telling_stems(words)
            for step, _, _ in self._provenance.results(before=self._before):
                places = self._provenance.places(step)
                for number in range(len(places.records)):
                    for field, told in places.fields(number).items():
                        if len(told) >= _TELLING and mine & telling_stems(field) and occurs(told, folded) >= 0:
                            return told
        return ""

    def _shown(self, words: str, value: str | float) -> Iterator[bool]:
        """For each place that shows a value, whether what is left out is shown there."""
        # "Who is not in the team yet": those whom a tool shows that was asked for the team.
        asked = {
            step
            for step, call, _ in self._provenance.results(before=self._before)
            if any(names(words, fold(str(each))) for each in leaves_of(call.arguments))
        }
        for sight in self._provenance.sights(value, before=self._before, confirmed=True):
            assert sight.step is not None
            places = self._provenance.places(sight.step)
            if asked:
                yield sight.is_whole and sight.step in asked
                continue
            if sight.is_whole and sight.number >= 0:
                close = [closeness((words,), places.fields(each), ()) for each in range(len(places.records))]
                yield close[sight.number] > 0 and close[sight.number] == max(close)
            told = about(self._provenance, sight.step, sight.arguments, value)
            yield told is not None and bool(names(words, told))

    def _is_borne(self, words: str) -> bool:
        """Whether any result bears the words, in a record or in a text."""
        return any(
            names(words, fold(each))
            for _, call, text in self._provenance.results(before=self._before)
            for each in (text, *map(str, leaves_of(call.arguments)))
        )
