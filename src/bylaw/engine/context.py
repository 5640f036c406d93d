"""What a host vouches for: kept as it was when the conversation was opened, whatever the host does with it later.

The principal is whoever `signed_in_as` names. The same one may add to it with a call; another one begins a conversation
of their own, linked by its name: what the first has agreed to, given as a reason or had approved is not theirs.
"""

from collections.abc import Mapping
from copy import deepcopy
from difflib import get_close_matches
from typing import Any

from bylaw.errors import UsageError
from bylaw.pack import Pack
from bylaw.text.own_log import own_log

PRINCIPAL = "signed_in_as"
"""By convention, the name in a context of who is signed in."""
_logger = own_log()
_told: set[tuple[str, str]] = set()
"""Packs and names that a warning was given of."""
MOST_TOLD = 1000


class AnotherPrincipal(UsageError):
    """Somebody else goes on in a conversation."""

    def __init__(self, conversation: str) -> None:
        super().__init__(
            f"conversation `{conversation}` was opened with another context, by somebody else as far as it tells",
            hint="open a new conversation, or leave `context` out",
        )


def goes_on(known: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Whether what a host vouches for now is of the principal that a conversation is of.

    Who says nothing of a principal says nothing against the one that is known. Where none is known, nothing may differ.
    """
    if PRINCIPAL in known:
        return _is_same(given.get(PRINCIPAL, known[PRINCIPAL]), known[PRINCIPAL])
    return PRINCIPAL not in given and all(_is_same(known.get(name, value), value) for name, value in given.items())


def is_of_one(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two conversations are of one principal."""
    return goes_on(one, other) and goes_on(other, one)


def _is_same(one: Any, other: Any) -> bool:
    """Equal; to Python the customer `1` is also `True`."""
    return one == other and isinstance(one, bool) is isinstance(other, bool)


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
        # A host takes names from elsewhere, and somebody reads this in a terminal.
        shown = str(name)[:200] if str(name).isprintable() else ascii(str(name)[:200])
        _logger.warning("%s: the context names `%s`, which the pack does not declare%s", pack.name, shown, hint)
