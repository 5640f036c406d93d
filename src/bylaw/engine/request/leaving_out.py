"""What the user left out: "everyone except Ann", "the signed ones stay", "do not mention the price".

A thing is left out where its own name, or the record that shows it, bears the words better than any other record beside
it. Where all are meant but some, and no result shows which, that is asked about.
"""

import re
from collections.abc import Mapping
from typing import Any

from bylaw.engine.request.allowance import Slot, Span
from bylaw.engine.request.bearing import closeness, is_name, names, telling_stems
from bylaw.engine.request.naming import Naming, about
from bylaw.engine.request.values import DAY, given_words, leaves_of
from bylaw.engine.request.view import View, step_of
from bylaw.text.folding import fold, occurs
from bylaw.text.identifier import is_identifier, is_prose

_ALIKE = 5
"""Letters that two words begin with alike where they are forms of one: caterer, catering."""
_OWN = 10
"""What a word in a short field counts, beside one in a text."""
_OF = re.compile(r"(?:\s+(?:of|for|from|about)(?:\s+\w+){1,2})?")
"""What goes on with what is left out: "the confirmation of my order"."""
_LATEST = telling_stems("newest latest last recent")
_OTHERS = telling_stems("other others rest one ones")
_TELLING = 3
"""Letters and figures of a value by which it is known in a text."""


class LeavingOut:
    """Holds values and texts to what the user left out."""

    def __init__(self, view: View, naming: Naming, *, judges: bool) -> None:
        """`judges` where it is left to the agent which things a description fits that nothing bears."""
        self._view, self._naming, self._judges = view, naming, judges

    def is_out(self, slot: Slot, value: str | float, arguments: Mapping[str, Any] | None = None) -> bool:
        """Whether a value is one that the user left out, or may be, as nothing shows which those are.

        `arguments` are those of the call: "who is not in the channel yet" is about the channel that it is given.
        """
        called = (word for each in slot.sources for word in self._view.words((*each.named, *each.perhaps)))
        named = telling_stems(" ".join(called))
        for span, words in zip(slot.but, self._view.words(slot.but), strict=True):
            mine = telling_stems(words)
            if mine <= named | _OTHERS:
                # "Not the other Otto" tells nothing of either.
                continue
            given = ((name, each) for name, each in (arguments or {}).items() if name != slot.name)
            words = next((fold(str(each)) for name, each in given if telling_stems(name) & mine), words)
            if is_identifier(words):
                # One address is not left out because another is like it.
                if words == fold(str(value)):
                    return True
                continue
            if self._is_shown(words, span, value) or names(words, fold(str(value))):
                return True
            # A name that stands nowhere is of nobody here; a description that nothing bears may be of anybody.
            if (
                slot.every
                and not self._judges
                and not telling_stems(words) & _LATEST
                and not is_name(self._view.request[span.start : span.end])
                and not self._is_borne(words)
            ):
                return True
        return False

    def held_in(self, slot: Slot, text: str) -> str:
        """What the user left out and a text holds: the words themselves, or a field that they name; else nothing."""
        folded = fold(text)
        for words in self._view.words(slot.but):
            if occurs(words, folded) >= 0:
                return words
            mine = telling_stems(words)
            for step, _, _ in self._view.results():
                for fields in self._view.records(step):
                    for field, told in fields.items():
                        if len(told) >= _TELLING and mine & telling_stems(field) and occurs(told, folded) >= 0:
                            return told
        return ""

    def _is_shown(self, words: str, span: Span, value: str | float) -> bool:
        """Whether a value is shown where what is left out is: by a tool that was asked for that, or that tells it of
        the value, or in its row of a table; else in all records that show it. Flat and garage may have one account."""
        # "Who is not in the team yet": those whom a tool shows that was asked for the team.
        asked = {
            step
            for step, call, _ in self._view.results()
            if any(names(words, each) for each in given_words(call.arguments))
        }
        in_records: list[bool] = []
        mine = telling_stems(words)
        for sight in self._view.sights(value, confirmed=True):
            row = "" if sight.is_whole else self._naming.passages.lines(step_of(sight), fold(str(value)))
            if names(words, row) and not is_prose(row):
                return True
            if asked:
                if sight.is_whole and sight.step in asked:
                    return True
                continue
            if sight.is_whole and sight.number >= 0:
                records = self._view.records(step_of(sight))
                if mine & _LATEST:
                    latest = [max((told for told in each.values() if DAY.match(told)), default="") for each in records]
                    in_records.append(latest[sight.number] == max(latest))
                    continue
                close = [closeness((words,), _short(fields), (), exactly=True) for fields in records]
                if not any(close):
                    # "The confirmation of my order" is a mail about an order, where none says more.
                    more = _OF.match(self._view.request, span.end)
                    said = f"{words} {fold(more[0])}" if more else words
                    close = [_shared_by(said, fields) for fields in records]
                in_records.append(close[sight.number] > 0 and close[sight.number] == max(close))
            told = about(self._view, step_of(sight), sight.arguments, value)
            if told is not None and names(words, told):
                return True
        return bool(in_records) and all(in_records)

    def _is_borne(self, words: str) -> bool:
        """Whether any result bears the words, in a record or in a text."""
        return any(
            names(words, fold(each)) or shared(words, fold(each))
            for _, call, text in self._view.results()
            for each in (text, *map(str, leaves_of(call.arguments)))
        )


def _short(fields: Mapping[str, str]) -> dict[str, str]:
    """A record's own fields, without its texts."""
    return {name: value for name, value in fields.items() if not is_prose(value)}


def _shared_by(words: str, fields: Mapping[str, str]) -> int:
    """How many words of a description a record has: its own short fields before its texts."""
    return _OWN * shared(words, " ".join(_short(fields).values())) + shared(words, " ".join(fields.values()))


def shared(words: str, text: str) -> int:
    """How many words of a description a folded text has, in any form."""
    told = telling_stems(text)
    return sum(
        any(each == other or each[:_ALIKE] == other[:_ALIKE] for other in told if len(each) >= _ALIKE or each == other)
        for each in telling_stems(words)
    )
