"""The origin of the judged call's arguments, as far as the conversation is known."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bylaw.facts.call_record import CallRecord
from bylaw.facts.entity import UNSEEN, NoValue
from bylaw.facts.ledger import Ledger
from bylaw.facts.provenance import WORST_FIRST, Provenance, Traced
from bylaw.facts.result_places import leaf_values, with_keys
from bylaw.text.identifier import identifiers, is_prose

_JOINTS = re.compile(r"[\s,;/]+")
_PIECES = 8
_LETTERS = 3
"""Shorter pieces match anywhere."""
_DIGITS = 6


def derive(provenance: Provenance, value: str | float, traced: Traced, *, before: int) -> Traced:
    """The origin of a value assembled from others, instead of `agent`; unchanged if its parts are not found.

    A sum may match by chance, so it stays the agent's own value; `parts` lists the candidates.
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
    """The least trusted of the pieces, if all were found."""
    worst = min(found, key=lambda each: WORST_FIRST.index(each.source))
    if worst.source == "agent":
        return traced
    parts = sorted({each.source for each in found}, key=WORST_FIRST.index)
    return replace(worst, how="derived", is_whole=False, parts=tuple(parts))


def _terms(value: float, numbers: Sequence[float]) -> tuple[float, float] | None:
    """Two numbers whose sum or difference is the value."""
    known = {round(number, _DIGITS): number for number in numbers if number}
    for number in known.values():
        for other in (value - number, number - value):
            found = known.get(round(other, _DIGITS))
            if found is not None and (other == value - number or found != number):
                return number, found
    return None


_NONE = Traced("agent")
_NAME = re.compile(r"[A-Za-z_][\w.]{0,39}")
"""A field name; labels that somebody wrote may be any text."""


class ArgumentOrigin(Struct, frozen=True):
    """The origin of an argument, and how it was reused afterwards."""

    argument: str
    traced: Traced
    written_at: tuple[int, ...] = ()
    """Steps of earlier writes with this argument."""
    shown_again_at: tuple[int, ...] = ()
    """Steps of results that showed it after such a write, which is not evidence."""

    def record(self) -> dict[str, Any]:
        """The origin for an audit's output, without values or quoted words."""
        traced = self.traced
        told: dict[str, Any] = {"argument": self.argument, "source": traced.source, "how": traced.how}
        if traced.step is not None:
            told["step"] = traced.step
        if traced.tool:
            told |= {"tool": traced.tool, "whole": traced.is_whole, "named_by_user": bool(traced.pointed)}
        if _NAME.fullmatch(traced.field):
            told["field"] = traced.field
        if traced.parts:
            told["parts"] = [*traced.parts]
        if self.written_at:
            told |= {"written_at": [*self.written_at], "shown_again_at": [*self.shown_again_at]}
        return told


def trace_of(ledger: Ledger, at: CallRecord, context: Mapping[str, Any], value: Any) -> Mapping[str, Any] | NoValue:
    """The origin of a value for guards; for a list or record, that of its least trusted part.

    UNSEEN if the value was not found and a message or result was not captured.
    """
    provenance = ledger.provenance(context)
    found = [_traced(provenance, part, at.start) for part in _parts(value, at)] or [_NONE]
    worst = min(found, key=lambda traced: WORST_FIRST.index(traced.source))
    if worst.source in ("agent", "content") and not ledger.is_whole_before(at.start):
        return UNSEEN
    return worst.record()


def _traced(provenance: Provenance, value: str | float, before: int) -> Traced:
    return derive(provenance, value, provenance.trace(value, before=before), before=before)


def origins_of(ledger: Ledger, at: CallRecord, context: Mapping[str, Any]) -> list[ArgumentOrigin]:
    """The origin of each argument of a call: that of its least trusted part."""
    provenance = ledger.provenance(context)
    found: list[ArgumentOrigin] = []
    for name, value in at.call.arguments.items():
        parts = _parts(value, at)
        if not parts:
            continue
        traced = [(part, _traced(provenance, part, at.start)) for part in parts]
        part, worst = min(traced, key=lambda each: WORST_FIRST.index(each[1].source))
        writes, shown = provenance.ways_back(part, before=at.start)
        found.append(ArgumentOrigin(name, worst, tuple(writes), tuple(shown)))
    return found


def _parts(value: Any, at: CallRecord) -> list[str | float]:
    if isinstance(value, str) and (value.count("@") > 1 or is_prose(value)) and (found := identifiers(value)):
        # Addresses joined into one text, and identifiers inside composed text.
        return [*found]
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return [value] if value != "" else []
    return [part for _, part in leaf_values(with_keys(value, at.tool.names if at.tool is not None else ()))]
