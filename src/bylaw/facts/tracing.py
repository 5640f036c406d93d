"""Where the value of a judged call's argument came from, as far as the conversation is known."""

from collections.abc import Mapping
from typing import Any

from bylaw.facts.call_record import CallRecord
from bylaw.facts.entity import UNSEEN, NoValue
from bylaw.facts.ledger import Ledger
from bylaw.facts.provenance import Traced, leaf_values
from bylaw.text.identifier import identifiers, is_prose

_WORST = ("agent", "content", "record", "host", "user")
"""Of several values the first of these counts."""
_NONE = Traced("agent")


def trace_of(ledger: Ledger, at: CallRecord, context: Mapping[str, Any], value: Any) -> Mapping[str, Any] | NoValue:
    """A value's origin as guards see it, of a list or record its worst founded part.

    Where a message or a result was not captured, what was not found may have stood there: UNSEEN.
    """
    provenance = ledger.provenance(context)
    found = [provenance.trace(part, before=at.start) for part in _parts(value)] or [_NONE]
    worst = min(found, key=lambda traced: _WORST.index(traced.source))
    if worst.source in ("agent", "content") and not ledger.is_whole_before(at.start):
        return UNSEEN
    return worst.record()


def _parts(value: Any) -> list[str | float]:
    if isinstance(value, str) and (value.count("@") > 1 or is_prose(value)) and (found := identifiers(value)):
        # Addresses that were joined to one text, and what is named in a text that was composed.
        return [*found]
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return [value] if value != "" else []
    return [part for _, part in leaf_values(value)]
