"""Spellings of one call: what tools tend to take for the same, so that a no to one of them is a no to all."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, cast

from bylaw.facts.value import JOINTS, loose

_MARKS = " $\u20ac\u00a3\u00a5\u20b9.,;:!?'\"+"
_MIDNIGHT = re.compile(r"(?<=\d)[t ]00:00(?::00(?:\.0+)?)?(?:z|[+-]00:?00)?$")
_LONGEST = 64
"""No longer text is read as a number, nor kept."""


def alike(value: Any) -> Any:
    """The same for two arguments that a tool may take for one: case, blanks, dashes, signs of currencies and what is
    not given aside, and numbers by what they are worth, also as text.

    It takes more for one than ids are compared by (`1e2` is 100), so it may refuse and never allow.
    """
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return sorted([str(name), alike(part)] for name, part in fields.items() if part is not None)
    if isinstance(value, list | tuple):
        return [alike(part) for part in cast("Sequence[Any]", value)]
    text = str(value)
    return _alike(text) if len(text) <= _LONGEST else _alike.__wrapped__(text)


@lru_cache(maxsize=16_384)
def _alike(written: str) -> str:
    """The same for one value; a conversation names the same few again and again."""
    text = _MIDNIGHT.sub("", loose(written).strip(_MARKS)).translate(JOINTS)
    if len(text) > _LONGEST or not any(map(str.isdigit, text)):
        return text
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    return str(number.normalize()) if number else "0"
