"""What a host vouches for: kept as it was when the conversation was opened, whatever the host does with it later."""

import logging
from collections.abc import Mapping
from copy import deepcopy
from difflib import get_close_matches
from typing import Any

from bylaw.pack import Pack

_logger = logging.getLogger("bylaw")
_told: set[tuple[str, str]] = set()
"""Packs and names that a warning was given of."""
MOST_TOLD = 1000


def copied(context: Mapping[str, Any]) -> Mapping[str, Any]:
    """A context of its own, values and all."""
    try:
        return deepcopy(dict(context))
    except Exception:
        # An object that cannot be copied is the host's own; the names stay as they are now.
        return dict(context)


def warn_of_unknown(pack: Pack, context: Mapping[str, Any]) -> None:
    """Tell once of each name that the pack does not declare: it may be misspelt, and nothing would read it."""
    if not context:
        return
    entities = pack.schema.entities.values()
    declared = {name for entity in entities for name, field in entity.fields.items() if field.origin == "context"}
    for name in context:
        if name in declared or (pack.digest, name) in _told or len(_told) >= MOST_TOLD:
            continue
        _told.add((pack.digest, name))
        close = get_close_matches(str(name), declared, n=1)
        hint = f"; is `{close[0]}` meant?" if close else ""
        _logger.warning("%s: the context names `%s`, which the pack does not declare%s", pack.name, name, hint)
