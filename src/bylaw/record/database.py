"""The log's database: its tables, and the shared code for SQLite and PostgreSQL."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from hashlib import sha256
from typing import Any, Protocol

from msgspec import Struct

from bylaw.record.entry import Entry

Place = tuple[str, str]
"""A tenant, and the name of a conversation or of an entry."""
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
"""The prefix of names that are reserved for the log itself."""
REMOVED = f"{OWN}removed/"


def removed_name(conversation: str) -> str:
    """Return the name that replaces the name of a removed conversation."""
    return f"{REMOVED}{sha256(conversation.encode('utf-8', 'replace')).hexdigest()}"


COLUMNS = "tenant, number, time, kind, conversation, position, id, body, salt, digest, link"


class Known(Struct, frozen=True):
    """What the log contains for the tenants, conversations and entries of a batch. A missing key means that the log has
    no entry for it.
    """

    heads: dict[str, tuple[int, bytes]]
    """The length and the last hash of each tenant's chain."""
    lengths: dict[Place, int]
    """The number of entries in each conversation."""
    entries: dict[Place, Entry]
    """The entries, keyed by tenant and idempotency key."""


class News(Struct, frozen=True):
    """What a batch adds: rows, chain heads and conversation lengths."""

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
    """How messages refer to the store."""
    reads_at_once = False
    """Whether it is faster to read a few rows directly than to read them in another thread."""

    @property
    def is_there(self) -> bool:
        """Whether the connection still works. The connection to a file always does."""
        return True

    @abstractmethod
    def rows(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        """Return the rows that a statement selects outside a transaction."""

    def settle(self) -> None:  # noqa: B027
        """Wait until every row read so far is on disk, so that nothing that was reported can be lost. A store that
        never shows unsynced rows does not wait.
        """

    def turn(self) -> AbstractContextManager[None]:
        """Wait until this process may write. A database server does not wait here, because it queues writers itself."""
        return nullcontext()

    @abstractmethod
    def begin(self, *, writing: bool) -> Cursor:
        """Begin a transaction. A writing transaction excludes other writers."""

    @abstractmethod
    def begin_batch(self, conversations: Collection[Place], ids: Collection[Place]) -> tuple[Cursor, Known]:
        """Begin a writing transaction, and return what the log contains for these conversations and entries."""

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
    """Convert a database row to an entry. PostgreSQL returns bytes as memoryviews, so these are converted to bytes."""
    tenant, number, time, kind, conversation, position, name, body, salt, digest, link = row
    told = (None if body is None else as_bytes(body), None if salt is None else as_bytes(salt))
    return Entry(tenant, number, time, kind, conversation, position, name, *told, as_bytes(digest), as_bytes(link))


def as_bytes(value: Any) -> bytes:
    """Return a column's value as bytes. Text that another program wrote is encoded, so that `verify` can report it."""
    return value.encode("utf-8", "replace") if isinstance(value, str) else bytes(value)
