"""Readers of what agents hand to tools: SQL, shell commands, paths and URLs, and of the pages they are shown.

Every reader is an allowlist: what it does not know for certain is `Unreadable`, never a read. Start at
`unreadable.py`, then the reader for the text: `sql.py`, `shell.py`, `path.py`, `url.py`, `page.py`.
"""

from bylaw.reading.unreadable import Unreadable

__all__ = ["Unreadable"]
