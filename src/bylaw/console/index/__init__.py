"""An index of an audit's folder in SQLite, so that any page of it is there at once. Start at `build`."""

from bylaw.console.index.build import open_index, stamp_of
from bylaw.console.index.query import Index
from bylaw.console.index.wanted import Wanted

__all__ = ["Index", "Wanted", "open_index", "stamp_of"]
