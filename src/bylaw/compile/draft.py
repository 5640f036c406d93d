"""A policy as it was extracted from the document, before anything holds calls to it."""

from msgspec import Struct


class Listed(Struct, frozen=True):
    """A policy as an answer lists it."""

    id: str
    definition: str
    # What may be empty may be left out: a schema asks for it, and not every model has one.
    scope: str = ""
    description: str = ""
    quotes: tuple[str, ...] = ()


class Draft(Listed, frozen=True):
    """A policy as it was extracted."""

    refers: str = ""
    """What stands elsewhere that its sentences refer to: where that changes, its check is asked for again."""
    remark: str = ""
    """What is told of it for one update alone, such as why its check was rejected."""
