"""Whether an amount is one that the user asked for: shown where the user said, a share of it, or worked out from it."""

from typing import Literal

from bylaw.engine.request.allowance import Slot
from bylaw.engine.request.naming import Naming
from bylaw.engine.request.placing import Placing
from bylaw.engine.request.values import NUMBER
from bylaw.facts.provenance import Provenance

Why = Literal["not_found", "as_shown", "not_said", "too_much"]
_CENT = 0.005
_ROUNDED = 0.01


class Amounts:
    """Holds amounts to what the user said and results show."""

    def __init__(self, provenance: Provenance, naming: Naming, placing: Placing, before: int) -> None:
        self._provenance, self._naming, self._placing, self._before = provenance, naming, placing, before

    def objection(self, slot: Slot, number: float, *, is_one: bool, text: str) -> Why | None:
        """Why an amount is not one that the user asked for; None where it is, or nothing tells: one that nobody said
        must at least not be more than all that was said or shown, together.

        `is_one` where the deed is done once; `text` is one that the user handed over to, folded.
        """
        named = [source for source in slot.sources if source.is_described] if slot.fill == "found" else []
        if slot.factor or slot.plus:
            return None if self._is_share(number, slot) else "not_found"
        if named:
            sights = [*self._provenance.sights(number, before=self._before)]
            if any(self._placing.is_named(slot, source, sight, number) for source in named for sight in sights):
                return None
            # What a record says is the thing itself; only a running text tells by how much something changes.
            texts = (text for source in named for text in self._naming.texts(source, (), self._before, only_prose=True))
            told = " \n ".join(texts).strip()
            return None if told and self._follows(number, told) else "not_found"
        if slot.fill == "free" and is_one and self._is_shown_as_it_is(slot, number):
            return "as_shown"
        if text and not self._follows(number, text):
            return "not_said"
        known = self._provenance.numbers(before=self._before)
        return "too_much" if known and number > 2 * max(known) else None

    def _is_shown_as_it_is(self, slot: Slot, number: float) -> bool:
        """Whether an amount that has to be worked out is one that a source shows."""
        sources = [source.as_named() for source in slot.sources if source.is_described]
        sights = [*self._provenance.sights(number, before=self._before)]
        return any(self._naming.is_of(source, sight, number) for source in sources for sight in sights)

    def _is_share(self, number: float, slot: Slot) -> bool:
        """Whether an amount is the share that the user said of one that a source shows."""
        for base in self._provenance.numbers(before=self._before):
            if abs(base * (slot.factor or 1) + slot.plus - number) < _ROUNDED:
                sights = [*self._provenance.sights(base, before=self._before)]
                if not slot.sources or any(
                    self._naming.is_of(source, sight, base) for source in slot.sources for sight in sights
                ):
                    return True
        return False

    def _follows(self, number: float, text: str) -> bool:
        """Whether an amount follows from a text: one that was shown is raised or lowered by what stands there, in
        figures or in percent. A text without figures says nothing of it."""
        told = [float(each.replace(",", "")) for each in NUMBER.findall(text)]
        shown = self._provenance.numbers(before=self._before)
        changes = (
            (base, sign * by) for base in shown for each in told for by in (each, base * each / 100) for sign in (1, -1)
        )
        return not told or any(abs(base + by - number) < _CENT for base, by in changes)
