"""Readers of what agents pass to tools (SQL, shell commands, paths, URLs) and of the pages they see.

Every reader is an allowlist: an uncertain text is `Unreadable`, never a read. Start at `unreadable.py`, then the reader
for the text: `sql.py`, `shell.py`, `path.py`, `url.py`, `page.py`.
"""

from bylaw.reading.unreadable import Unreadable

__all__ = ["Unreadable"]
