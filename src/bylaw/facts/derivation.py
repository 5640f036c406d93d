"""What a value was made of, where it stands nowhere as it is: joined words, a sum."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from bylaw.facts.provenance import WORST_FIRST, Provenance, Traced

_JOINTS = re.compile(r"[\s,;/]+")
_PIECES = 8
_LETTERS = 3
"""A piece of fewer stands anywhere."""
_DIGITS = 6


def derive(provenance: Provenance, value: str | float, traced: Traced, *, before: int) -> Traced:
    """Where a value came from, with what it was made of in place of `agent`; as it was where nothing tells.

    A sum may come out by chance, so it stays the agent's own; its `parts` say what it may be made of.
    """
    if traced.source != "agent":
        return traced
    if isinstance(value, str):
        pieces = [piece for piece in _JOINTS.split(value) if piece]
        return _joined([provenance.trace(piece, before=before) for piece in pieces], traced) if _may(pieces) else traced
    terms = _terms(float(value), provenance.numbers(before=before))
    if terms is None:
        return traced
    sources = sorted({provenance.trace(term, before=before).source for term in terms}, key=WORST_FIRST.index)
    return replace(traced, how="derived", parts=tuple(sources))


def _may(pieces: Sequence[str]) -> bool:
    return 2 <= len(pieces) <= _PIECES and all(len(piece) >= _LETTERS for piece in pieces)


def _joined(found: Sequence[Traced], traced: Traced) -> Traced:
    """The worst founded of the pieces, where each was found."""
    worst = min(found, key=lambda each: WORST_FIRST.index(each.source))
    if worst.source == "agent":
        return traced
    parts = sorted({each.source for each in found}, key=WORST_FIRST.index)
    return replace(worst, how="derived", is_whole=False, parts=tuple(parts))


def _terms(value: float, numbers: Sequence[float]) -> tuple[float, float] | None:
    """Two numbers that a value is the sum or the difference of."""
    known = {round(number, _DIGITS): number for number in numbers if number}
    for number in known.values():
        for other in (value - number, number - value):
            found = known.get(round(other, _DIGITS))
            if found is not None and (other == value - number or found != number):
                return number, found
    return None
