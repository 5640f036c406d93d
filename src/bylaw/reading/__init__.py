"""Readers for what agents pass to tools (SQL, shell commands, paths, URLs) and for the pages they see.

Every reader is an allowlist. Text with an uncertain meaning is `Unreadable` and is never treated as a read. Start at
`unreadable.py`, then go to the reader for the text: `sql.py`, `shell.py`, `path.py`, `url.py` or `page.py`.
"""

from bylaw.reading.unreadable import Unreadable

__all__ = ["Unreadable"]
