"""What the log asks of a database: its tables, and the little that SQLite's and PostgreSQL's drivers must do alike."""

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

REMOVED = "bylaw/removed/"


def removed_name(conversation: str) -> str:
    """What the table of conversations keeps in place of the name of a removed one."""
    return f"{REMOVED}{sha256(conversation.encode('utf-8', 'replace')).hexdigest()}"


COLUMNS = "tenant, number, time, kind, conversation, position, id, body, salt, digest, link"


class Known(Struct, frozen=True):
    """What the log knows of those whom a batch is about; what is not there is new."""

    heads: dict[str, tuple[int, bytes]]
    """By tenant, how many entries its chain has, and its last hash."""
    lengths: dict[Place, int]
    """Entries of each conversation."""
    entries: dict[Place, Entry]
    """By the names their senders gave them."""


class News(Struct, frozen=True):
    """What a batch adds to the log: rows, and the heads and lengths that change with them."""

    rows: Sequence[Row]
    heads: Sequence[tuple[str, int, bytes]]
    lengths: Sequence[tuple[str, str, int]]


class Cursor(Protocol):
    """What both drivers' cursors can do."""

    def execute(self, query: Any, params: Any = ..., /) -> Any:
        """Run one statement."""

    def fetchone(self) -> Any:
        """The next row, or None."""

    def fetchall(self) -> list[Any]:
        """All rows that are left."""
        ...


class Connection(ABC):
    """One connection; used by one thread at a time."""

    name: str
    """What to call the store in a message."""
    reads_at_once = False
    """A few rows are there sooner than another thread could have fetched them."""

    @property
    def is_there(self) -> bool:
        """Whether it has not broken off; a file never does."""
        return True

    @abstractmethod
    def rows(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        """What one statement finds, outside of any transaction that was begun."""

    def settle(self) -> None:  # noqa: B027
        """Wait until all that was read so far is on disk: what others are told of must not vanish. Nothing to wait
        for where what is not synced is not seen."""

    def turn(self) -> AbstractContextManager[None]:
        """Wait until it is this process's turn to write; a server has a queue of its own."""
        return nullcontext()

    @abstractmethod
    def begin(self, *, writing: bool) -> Cursor:
        """Begin a transaction; a writing one keeps other writers out until it ends."""

    @abstractmethod
    def begin_batch(self, conversations: Collection[Place], ids: Collection[Place]) -> tuple[Cursor, Known]:
        """Begin a writing transaction, and read all that the log knows of these."""

    @abstractmethod
    def commit_batch(self, news: News) -> None:
        """Write the news and end it; on disk when this returns."""

    @abstractmethod
    def commit(self) -> None:
        """End a transaction; what was written is on disk when this returns."""

    @abstractmethod
    def rollback(self) -> None:
        """Give it up."""

    def wipe(self) -> None:  # noqa: B027
        """Leave no words of what was removed where they lay, as far as that can be done now; a server's own vacuum sees
        to it."""

    @abstractmethod
    def close(self) -> None:
        """Give the connection back."""


def entry_of(row: Sequence[Any]) -> Entry:
    """A row of the database as a record; PostgreSQL gives memoryviews for bytes."""
    tenant, number, time, kind, conversation, position, name, body, salt, digest, link = row
    told = (None if body is None else as_bytes(body), None if salt is None else as_bytes(salt))
    return Entry(tenant, number, time, kind, conversation, position, name, *told, as_bytes(digest), as_bytes(link))


def as_bytes(value: Any) -> bytes:
    """A column's bytes; what somebody wrote there as text is taken as it is, so that `verify` can tell of it."""
    return value.encode("utf-8", "replace") if isinstance(value, str) else bytes(value)
