"""Moves what was committed from SQLite's write-ahead log into its file, beside those who write.

SQLite would do it in the commit that fills the write-ahead log: whoever waits for that commit waits for two more syncs
and a thousand pages.
"""

import sqlite3
import threading
from contextlib import suppress
from pathlib import Path

from bylaw.record.turn import Turns

OFTEN = 1_000
"""Rows after which it is time to."""
LARGE = 8_000
"""Pages of the write-ahead log from which on writers are kept out for a moment, so that it can begin anew."""
TOO_LARGE = 40_000
"""Pages after which SQLite does it in a commit, whatever becomes of us."""


class Checkpoints:
    """For one connection that writes; the work is done in a thread, over a connection of its own."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._rows = 0
        self._is_due = threading.Event()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def wrote(self, rows: int) -> None:
        """So many rows were committed."""
        self._rows += rows
        if self._rows < OFTEN or self._path == ":memory:":
            return
        self._rows = 0
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="bylaw-checkpoints", daemon=True)
            self._thread.start()
        self._is_due.set()

    def close(self) -> None:
        """End the thread. Whoever closes the file last moves the rest."""
        self._is_closed = True
        self._is_due.set()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        # Where it cannot be done, SQLite does it in the end.
        with suppress(sqlite3.Error):
            connection = sqlite3.connect(str(Path(self._path).expanduser()), isolation_level=None)
            connection.execute("PRAGMA synchronous = FULL")
            turns = Turns(self._path)
            try:
                while self._is_due.wait() and not self._is_closed:
                    self._is_due.clear()
                    self._move(connection, turns)
            finally:
                connection.close()
                turns.close()

    def _move(self, connection: sqlite3.Connection, turns: Turns) -> None:
        with suppress(sqlite3.OperationalError):
            if _pages(connection) >= LARGE:
                with turns.take():
                    # The little that has come since; with all of it in the file, the next to write begins anew.
                    _pages(connection)


def _pages(connection: sqlite3.Connection) -> int:
    """Move what can be moved without waiting for anyone; how many pages the write-ahead log has."""
    _, pages, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return pages
