"""From where a value may be taken: a place that the user named, or a field that its tool vouches for."""

from collections.abc import Iterator

from bylaw.engine.request.allowance import Slot, Source, fetches
from bylaw.engine.request.choosing import fitting
from bylaw.engine.request.composing import is_code
from bylaw.engine.request.naming import Naming
from bylaw.engine.request.noting import Noting
from bylaw.engine.request.view import View, step_of
from bylaw.facts.provenance import Traced, plain_link
from bylaw.policy.verb import words_of
from bylaw.text.folding import fold
from bylaw.text.identifier import identifiers


class Placing:
    """Holds values to the places that they may come from."""

    def __init__(self, view: View, naming: Naming, *, judges: bool, note: Noting | None) -> None:
        """`judges` where it is left to the agent which of the things that fit is meant by words only a reader can hold
        against them; `note` is a text that the user handed over to and no model read."""
        self._view, self._naming, self._judges, self._note = view, naming, judges, note

    def sights(self, value: str | float) -> Iterator[Traced]:
        """The places where results show a value."""
        return self._view.sights(plain_link(value))

    def is_usable(self, slot: Slot, kind: str, value: str | float, sight: Traced) -> bool:
        """Whether a value may be taken from where it stands."""
        if not slot.sources:
            if self._note is not None:
                return self._note.means(kind, value, sight)
            return sight.source == "record" or self._is_pointed(kind, sight)
        if sight.source != "record" and not self._stands_out(slot, kind, value, sight):
            return False
        if not any(self.is_named(slot, source, sight, value) for source in slot.sources):
            return False
        return (
            sight.source == "record"
            or bool(sight.pointed)
            or any(source.named or source.perhaps for source in slot.sources)
        )

    def is_named(self, slot: Slot, source: Source, sight: Traced, value: str | float) -> bool:
        """Whether a value stands where the user said: in the named record, and in its field; of a text in the piece
        that bears the names."""
        if not self._naming.is_of(source, sight, value) or not self._is_of_field(slot, sight):
            return False
        is_one = not slot.every and not slot.choice and not (slot.judged and self._judges)
        if is_one and not self._naming.is_likeliest(source, sight):
            return False
        return sight.is_whole or self._naming.passages.stands_by_its_names(source, sight, value)

    def _is_of_field(self, slot: Slot, sight: Traced) -> bool:
        """Whether a value stands in the field that it should be, where its record has one of that name."""
        if not slot.field or sight.step is None or sight.number < 0:
            return True
        fields = self._view.around(sight).fields(sight.number)
        best = fitting(slot.field, fields)
        return not best or fold(sight.field) in best

    def is_in_place(self, kind: str, value: str | float) -> bool:
        """Whether a value stands in a trusted field, or in a place that the user named."""
        return any(sight.source == "record" or self._is_pointed(kind, sight) for sight in self.sights(value))

    def _stands_out(self, slot: Slot, kind: str, value: str | float, sight: Traced) -> bool:
        """Whether a value may be taken from a text: it is all that stands there, or a link, an address or a plain name;
        an id in a running text never, an account only where the text has no other, or its piece alone bears the names
        that the user gave; or in a row of its own, where all are meant."""
        if sight.is_whole or kind in ("link", "address"):
            return True
        if "id" in words_of(slot.name):
            return False
        if not is_code(str(value)) and any(each.source == "record" for each in self.sights(value)):
            # `covers-2026` is a channel that the system knows, and no account.
            return True
        codes = [each for each in identifiers(self._view.text(step_of(sight))) if is_code(each)]
        return (
            not identifiers(str(value))
            or codes == [str(value)]
            or (slot.every and self._naming.passages.is_in_a_row(sight, str(value), codes))
            or any(self._naming.passages.alone_bears(source, sight, str(value), codes) for source in slot.sources)
        )

    def _is_pointed(self, kind: str, sight: Traced) -> bool:
        """Whether content counts: it stands in a place that the user named; alone, but for links and addresses."""
        if kind == "link" and (tool := self._view.tools.get(sight.tool)) is not None and fetches(tool):
            # A page that was fetched may not send the agent to another.
            return False
        return bool(sight.pointed) and (sight.is_whole or kind in ("link", "address"))

    def is_the_users_own(self, value: str | float) -> bool:
        """Whether an address is the user's: it stands in every record that the system shows of the user's things."""
        return any(
            sight.source == "record" and self._view.around(sight).in_every_record(str(value), sight.field)
            for sight in self.sights(value)
        )
