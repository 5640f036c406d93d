"""A SQLite index of an audit, so that pages open quickly. Start at `open_index` in `build`."""

from bylaw.console.index.build import open_index, stamp_of
from bylaw.console.index.query import Index, Wanted

__all__ = ["Index", "Wanted", "open_index", "stamp_of"]
