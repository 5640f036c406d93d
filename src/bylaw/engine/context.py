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


def warn_of_model(pack: Pack) -> None:
    """Tell once what changed for a pack of before 0.2 where a model is asked: it agrees for no user."""
    silent = [each.name for each in pack.book.predicates.values() if each.consent == "told" and not each.says_of_model]
    if silent and (pack.digest, "model") not in _told and len(_told) < MOST_TOLD:
        _told.add((pack.digest, "model"))
        names = ", ".join(f"`{name}`" for name in silent)
        _logger.warning(
            "%s: since 0.2 a model does not settle %s live, and the user is asked; write `model: may settle` beside "
            "`consented: told` to let it, or `model: never` to leave it so",
            pack.name,
            names,
        )


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
