"""A policy as it was extracted from the document, before anything holds calls to it."""

from msgspec import Struct


class Draft(Struct, frozen=True):
    """A policy as it was extracted."""

    id: str
    definition: str
    # What may be empty may be left out: a schema asks for it, and not every model has one.
    scope: str = ""
    description: str = ""
    quotes: tuple[str, ...] = ()
