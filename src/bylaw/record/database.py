"""The log's database: its tables, and the shared code for SQLite and PostgreSQL."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from hashlib import sha256
from typing import Any, Protocol

from msgspec import Struct

from bylaw.record.entry import Entry

Place = tuple[str, str]
"""A tenant, and the name of a conversation or entry."""
Row = tuple[Any, ...]

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS heads (
        tenant TEXT PRIMARY KEY, number BIGINT NOT NULL, link {bytes} NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS entries (
        tenant TEXT NOT NULL, number BIGINT NOT NULL, time {real} NOT NULL, kind TEXT NOT NULL,
        conversation TEXT, position BIGINT, id TEXT, body {bytes}, salt {bytes},
        digest {bytes} NOT NULL, link {bytes} NOT NULL, PRIMARY KEY (tenant, number))""",
    "CREATE UNIQUE INDEX IF NOT EXISTS entry_places ON entries (tenant, conversation, position)",
    "CREATE UNIQUE INDEX IF NOT EXISTS entry_ids ON entries (tenant, id) WHERE id IS NOT NULL",
    """CREATE TABLE IF NOT EXISTS conversations (
        tenant TEXT NOT NULL, name TEXT NOT NULL, length BIGINT NOT NULL, PRIMARY KEY (tenant, name))""",
    """CREATE TABLE IF NOT EXISTS approvals (
        tenant TEXT NOT NULL, id TEXT NOT NULL, conversation TEXT NOT NULL, status TEXT NOT NULL,
        asked {real} NOT NULL, expires {real} NOT NULL, body {bytes}, PRIMARY KEY (tenant, id))""",
    """CREATE TABLE IF NOT EXISTS uses (
        tenant TEXT NOT NULL, name TEXT NOT NULL, decision TEXT NOT NULL, conversation TEXT NOT NULL,
        time {real} NOT NULL, PRIMARY KEY (tenant, name, decision))""",
    "CREATE INDEX IF NOT EXISTS use_times ON uses (tenant, name, time)",
)

OWN = "bylaw/"
"""Name prefixes that are reserved for the log itself."""
REMOVED = f"{OWN}removed/"


def removed_name(conversation: str) -> str:
    """Return the replacement for a removed conversation's name."""
    return f"{REMOVED}{sha256(conversation.encode('utf-8', 'replace')).hexdigest()}"


COLUMNS = "tenant, number, time, kind, conversation, position, id, body, salt, digest, link"


class Known(Struct, frozen=True):
    """The state of the log for the tenants, conversations and entries in a batch. Keys that are missing are new."""

    heads: dict[str, tuple[int, bytes]]
    """The length and the last hash of each tenant's chain."""
    lengths: dict[Place, int]
    """The number of entries in each conversation."""
    entries: dict[Place, Entry]
    """Entries, keyed by their idempotency keys."""


class News(Struct, frozen=True):
    """The new data in a batch: rows, chain heads and conversation lengths."""

    rows: Sequence[Row]
    heads: Sequence[tuple[str, int, bytes]]
    lengths: Sequence[tuple[str, str, int]]


class Cursor(Protocol):
    """The methods that the cursors of both database drivers have."""

    def execute(self, query: Any, params: Any = ..., /) -> Any:
        """Run one statement."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchall(self) -> list[Any]: ...


class Connection(ABC):
    """A connection for one thread at a time."""

    name: str
    """The store's name in messages."""
    reads_at_once = False
    """Whether it is faster to read a few rows directly than in another thread."""

    @property
    def is_there(self) -> bool:
        """Whether the connection is alive. For a file, it always is."""
        return True

    @abstractmethod
    def rows(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        """Return the result of one statement outside a transaction."""

    def settle(self) -> None:  # noqa: B027
        """Wait until every row that was read is on disk, so that no reported data can be lost. Some stores never show
        unsynced data and need no wait.
        """

    def turn(self) -> AbstractContextManager[None]:
        """Wait until this process may write. A database server needs no wait, because it queues writers itself."""
        return nullcontext()

    @abstractmethod
    def begin(self, *, writing: bool) -> Cursor:
        """Begin a transaction. A writing transaction excludes other writers."""

    @abstractmethod
    def begin_batch(self, conversations: Collection[Place], ids: Collection[Place]) -> tuple[Cursor, Known]:
        """Begin a writing transaction, and read the state of these conversations and entries."""

    @abstractmethod
    def commit_batch(self, news: News) -> None:
        """Write and commit the batch. On return, the rows are on disk."""

    @abstractmethod
    def commit(self) -> None:
        """Commit the transaction. On return, all writes are on disk."""

    @abstractmethod
    def rollback(self) -> None:
        """Roll back the transaction."""

    def wipe(self) -> None:  # noqa: B027
        """Erase removed text from storage as far as possible. On a database server, the vacuum erases the rest."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""


def entry_of(row: Sequence[Any]) -> Entry:
    """Convert a database row to an entry. PostgreSQL returns bytes as memoryviews."""
    tenant, number, time, kind, conversation, position, name, body, salt, digest, link = row
    told = (None if body is None else as_bytes(body), None if salt is None else as_bytes(salt))
    return Entry(tenant, number, time, kind, conversation, position, name, *told, as_bytes(digest), as_bytes(link))


def as_bytes(value: Any) -> bytes:
    """Return the bytes in a column. Text from another program is kept, so that `verify` can report it."""
    return value.encode("utf-8", "replace") if isinstance(value, str) else bytes(value)
