"""Readers of what agents pass to tools (SQL, shell commands, paths, URLs) and of the pages they see.

Every reader is an allowlist: text whose meaning is uncertain is `Unreadable` and never counts as a read. Start at
`unreadable.py`, then see the reader for the text: `sql.py`, `shell.py`, `path.py`, `url.py`, `page.py`.
"""

from bylaw.reading.unreadable import Unreadable

__all__ = ["Unreadable"]
