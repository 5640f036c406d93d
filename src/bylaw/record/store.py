"""Where the log lies: a file of SQLite, or a PostgreSQL database. One transaction takes a batch of drafts."""

import threading
import time as clock
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from bylaw.record.approval import Approval, project, read_approval
from bylaw.record.entry import ROOT, Conflict, Draft, Entry, digest_of, link_of, new_salt

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
)

_COLUMNS = "tenant, number, time, kind, conversation, position, id, body, salt, digest, link"


class Cursor(Protocol):
    """What both drivers' cursors can do."""

    @property
    def rowcount(self) -> int:
        """Rows the last statement touched."""
        ...

    def execute(self, query: Any, params: Any = ..., /) -> Any:
        """Run one statement."""
        ...

    def executemany(self, query: Any, params: Any, /) -> Any:
        """Run one statement for each row."""
        ...

    def fetchone(self) -> Any:
        """The next row, or None."""
        ...

    def fetchall(self) -> list[Any]:
        """All rows that are left."""
        ...


class Connection(Protocol):
    """One connection; used by one thread at a time."""

    name: str
    """What to call the store in a message."""

    def begin(self, *, writing: bool) -> Cursor:
        """Begin a transaction; a writing one keeps other writers out until it ends."""
        ...

    def commit(self) -> None:
        """End it; what was written is on disk when this returns."""
        ...

    def rollback(self) -> None:
        """Give it up."""
        ...

    def close(self) -> None:
        """Give the connection back."""
        ...


class Store:
    """A log in a database. One thread at a time is let in; `Journal` lets many share a transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """What to call it in a message."""
        return self._connection.name

    def append(self, drafts: Sequence[Draft]) -> list[Entry | Conflict]:
        """Write what can be written, in order and in one transaction; on disk when this returns."""
        return [answer for answers in self.append_groups([[draft] for draft in drafts]) for answer in answers]

    def append_groups(self, groups: Sequence[Sequence[Draft]]) -> list[list[Entry | Conflict]]:
        """The same for drafts that belong together: of a group all are written, or none is."""
        with self._lock:
            return self._append(groups)

    def _append(self, groups: Sequence[Sequence[Draft]]) -> list[list[Entry | Conflict]]:
        cursor = self._connection.begin(writing=True)
        try:
            batch = _Batch(cursor)
            answers = [batch.take_all(drafts) for drafts in groups]
            batch.write()
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            raise
        return answers

    def conversation(self, tenant: str, name: str, *, after: int = 0) -> list[Entry]:
        """What the log holds of a conversation, in order, from position `after` on."""
        where = "tenant = ? AND conversation = ? AND position >= ? ORDER BY position"
        return self._read(where, (tenant, name, after))

    def entries(self, tenant: str, *, page: int = 1000) -> Iterator[Entry]:
        """A tenant's whole chain, in order, read page by page."""
        number = 0
        while rows := self._read(f"tenant = ? AND number > ? ORDER BY number LIMIT {page}", (tenant, number)):
            yield from rows
            number = rows[-1].number

    def heads(self) -> dict[str, tuple[int, bytes]]:
        """Per tenant how many entries its chain has, and its last hash."""
        rows = self._rows("SELECT tenant, number, link FROM heads ORDER BY tenant", ())
        return {tenant: (number, bytes(link)) for tenant, number, link in rows}

    def conversations(self, tenant: str) -> list[str]:
        """Names of a tenant's conversations that have not been removed."""
        rows = self._rows("SELECT name FROM conversations WHERE tenant = ? ORDER BY name", (tenant,))
        return [name for (name,) in rows]

    def approvals(self, tenant: str, *, status: str = "", id: str = "") -> list[Approval]:
        """A tenant's approvals, or those in one state, or the one of an id; the oldest first."""
        query, values = (
            "SELECT id, conversation, status, asked, expires, body FROM approvals WHERE tenant = ?",
            [tenant],
        )
        for column, wanted in (("status", status), ("id", id)):
            if wanted:
                query += f" AND {column} = ?"
                values.append(wanted)
        return [read_approval(row) for row in self._rows(query + " ORDER BY asked, id", tuple(values))]

    def remove(self, tenant: str, *, conversation: str | None = None, before: float | None = None) -> int:
        """Take out what entries say: those of a conversation, or all older than a time. The chain still verifies."""
        with self._lock:
            return self._remove(tenant, conversation, before)

    def _remove(self, tenant: str, conversation: str | None, before: float | None) -> int:
        where, values = ("conversation = ?", conversation) if conversation is not None else ("time < ?", before)
        cursor = self._connection.begin(writing=True)
        try:
            if conversation is None:
                # A conversation that is still going on must stay whole, or nobody could decide in it.
                where += (
                    " AND conversation NOT IN (SELECT conversation FROM entries WHERE tenant = ? AND time >= ?"
                    " AND conversation IS NOT NULL)"
                )
            extra = (tenant, before) if conversation is None else ()
            cursor.execute(
                f"SELECT DISTINCT conversation FROM entries WHERE tenant = ? AND body IS NOT NULL AND {where}",
                (tenant, values, *extra),
            )
            names = [name for (name,) in cursor.fetchall()]
            removed = 0
            for name in names:
                cursor.execute(
                    "UPDATE entries SET conversation = NULL, position = NULL, id = NULL, body = NULL, salt = NULL"
                    " WHERE tenant = ? AND conversation = ?",
                    (tenant, name),
                )
                removed += cursor.rowcount
                cursor.execute("DELETE FROM conversations WHERE tenant = ? AND name = ?", (tenant, name))
                cursor.execute("DELETE FROM approvals WHERE tenant = ? AND conversation = ?", (tenant, name))
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            raise
        return removed

    def close(self) -> None:
        """Give the connection back."""
        self._connection.close()

    def _read(self, where: str, values: tuple[Any, ...]) -> list[Entry]:
        return [entry_of(row) for row in self._rows(f"SELECT {_COLUMNS} FROM entries WHERE {where}", values)]

    def _rows(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        with self._lock:
            cursor = self._connection.begin(writing=False)
            try:
                cursor.execute(query, values)
                return cursor.fetchall()
            finally:
                self._connection.rollback()


class _Batch:
    """The drafts of one transaction; heads and lengths are read once and written once."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._heads: dict[str, tuple[int, bytes]] = {}
        self._lengths: dict[tuple[str, str], int] = {}
        self._ids: dict[tuple[str, str], Entry] = {}
        self._rows: list[tuple[Any, ...]] = []
        self._time = clock.time()

    def take_all(self, drafts: Sequence[Draft]) -> list[Entry | Conflict]:
        """The entries that drafts become, or, where one of them cannot, that reason for each."""
        if len(drafts) == 1:
            return [self.take(drafts[0])]
        heads = {draft.tenant: self._head(draft.tenant) for draft in drafts}
        places = {(draft.tenant, draft.conversation) for draft in drafts}
        lengths = {place: self._length(place) for place in places}
        named = [(draft.tenant, draft.id) for draft in drafts if draft.id]
        new, size = [name for name in named if name not in self._ids], len(self._rows)
        moves = any(draft.kind == "approval" for draft in drafts)
        if moves:
            self._cursor.execute("SAVEPOINT together")
        answers: list[Entry | Conflict] = []
        for draft in drafts:
            answer = self.take(draft)
            answers.append(answer)
            if isinstance(answer, Conflict):
                self._heads |= heads
                self._lengths |= lengths
                for name in new:
                    self._ids.pop(name, None)
                del self._rows[size:]
                if moves:
                    self._cursor.execute("ROLLBACK TO SAVEPOINT together")
                return [answer for _ in drafts]
        if moves:
            self._cursor.execute("RELEASE SAVEPOINT together")
        return answers

    def take(self, draft: Draft) -> Entry | Conflict:
        """The entry a draft becomes, that it became when it was first sent, or why it cannot."""
        if draft.id and (known := self._known(draft.tenant, draft.id)) is not None:
            same = known.body == draft.body and known.conversation == draft.conversation and known.kind == draft.kind
            return known if same else Conflict(f"`{draft.id}` already names another entry")
        place = (draft.tenant, draft.conversation)
        length = self._length(place)
        if draft.position is not None and draft.position != length:
            return Conflict(f"conversation `{draft.conversation}` has gone on to {length}, from {draft.position}")
        if draft.kind == "approval" and (wrong := project(self._cursor, draft, self._time)):
            return Conflict(wrong)
        number, before = self._head(draft.tenant)
        salt = new_salt()
        digest = digest_of(draft, length, salt)
        link = link_of(before, draft.tenant, number + 1, self._time, draft.kind, digest)
        name = draft.id or None
        told = (draft.conversation, length, name, draft.body, salt, digest, link)
        entry = Entry(draft.tenant, number + 1, self._time, draft.kind, *told)
        self._rows.append((entry.tenant, entry.number, entry.time, entry.kind, *told))
        self._heads[draft.tenant] = (entry.number, link)
        self._lengths[place] = length + 1
        if name is not None:
            self._ids[draft.tenant, name] = entry
        return entry

    def write(self) -> None:
        """Put the rows, the new heads and the new lengths into the database."""
        if not self._rows:
            return
        self._cursor.executemany(f"INSERT INTO entries ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?)", self._rows)
        self._cursor.executemany(
            "INSERT INTO heads (tenant, number, link) VALUES (?,?,?)"
            " ON CONFLICT (tenant) DO UPDATE SET number = excluded.number, link = excluded.link",
            [(tenant, number, link) for tenant, (number, link) in self._heads.items()],
        )
        self._cursor.executemany(
            "INSERT INTO conversations (tenant, name, length) VALUES (?,?,?)"
            " ON CONFLICT (tenant, name) DO UPDATE SET length = excluded.length",
            [(tenant, name, length) for (tenant, name), length in self._lengths.items()],
        )

    def _known(self, tenant: str, name: str) -> Entry | None:
        written = self._ids.get((tenant, name))
        if written is None:
            self._cursor.execute(f"SELECT {_COLUMNS} FROM entries WHERE tenant = ? AND id = ?", (tenant, name))
            row = self._cursor.fetchone()
            written = entry_of(row) if row is not None else None
        return written

    def _length(self, place: tuple[str, str]) -> int:
        if place not in self._lengths:
            self._cursor.execute("SELECT length FROM conversations WHERE tenant = ? AND name = ?", place)
            row = self._cursor.fetchone()
            self._lengths[place] = row[0] if row is not None else 0
        return self._lengths[place]

    def _head(self, tenant: str) -> tuple[int, bytes]:
        if tenant not in self._heads:
            self._cursor.execute("SELECT number, link FROM heads WHERE tenant = ?", (tenant,))
            row = self._cursor.fetchone()
            self._heads[tenant] = (row[0], bytes(row[1])) if row is not None else (0, ROOT)
        return self._heads[tenant]


def entry_of(row: Sequence[Any]) -> Entry:
    """A row of the database as a record; PostgreSQL gives memoryviews for bytes."""
    tenant, number, time, kind, conversation, position, name, body, salt, digest, link = row
    told = (None if body is None else _bytes(body), None if salt is None else _bytes(salt))
    return Entry(tenant, number, time, kind, conversation, position, name, *told, _bytes(digest), _bytes(link))


def _bytes(value: Any) -> bytes:
    """A column's bytes; what somebody wrote there as text is taken as it is, so that `verify` can tell of it."""
    return value.encode("utf-8", "replace") if isinstance(value, str) else bytes(value)


def open_store(where: str) -> Store:
    """The log at a path, or at `postgresql://...`; made where there is none."""
    if where.startswith(("postgresql://", "postgres://")):
        from bylaw.record.postgres import connect

        return Store(connect(where))
    from bylaw.record.sqlite import connect

    return Store(connect(where))
