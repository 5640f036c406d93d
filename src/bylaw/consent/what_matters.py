"""What matters in a call: its arguments without those that a pack spares, and without remarks for the record."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from bylaw.policy.verb import words_of

_REMARKS = frozenset(words_of("reason reasons note notes comment comments remark summary description"))
"""Arguments for the record: what is said there changes nothing that a user would agree to."""


class Terms(Struct, frozen=True):
    """What a pack says of its arguments: which need not be told, and which matter although they look like remarks; and
    how long a yes in words counts."""

    spared: frozenset[str] = frozenset()
    wanted: frozenset[str] = frozenset()
    lifetime: float = 86_400.0
    """Seconds; as long as a person's yes."""


def what_matters(given: Mapping[str, Any], terms: Terms) -> dict[str, Any]:
    """The arguments that a user agrees to; whatever stands inside of one does."""
    return {
        name: value
        for name, value in given.items()
        if name not in terms.spared and not (type(value) is str and name not in terms.wanted and _is_remark(name))
    }


@lru_cache(maxsize=4096)
def _is_remark(name: str) -> bool:
    """Whether a text of this name is for the record: `cancel_reason`, and not `email_summary_to`."""
    words = words_of(name)
    return bool(words) and words[-1] in _REMARKS
