"""Parsers for the text that agents pass to tools (SQL, shell commands, paths, URLs), and for the pages that agents see.

Every parser is an allowlist: if the meaning of a text is uncertain, the parser raises `Unreadable`, and the text is
never treated as read-only. Start at `unreadable.py`, then go to the parser for the text: `sql.py`, `shell.py`,
`path.py`, `url.py` or `page.py`.
"""

from bylaw.reading.unreadable import Unreadable

__all__ = ["Unreadable"]
