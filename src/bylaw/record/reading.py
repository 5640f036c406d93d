"""Reads a log from any store."""

import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import msgspec
from msgspec import Struct

from bylaw.errors import BylawError, UsageError
from bylaw.record.approval import Approval, Status, read_approval
from bylaw.record.database import COLUMNS, REMOVED, Connection, Cursor, as_bytes, entry_of, removed_name
from bylaw.record.entry import Entry, Kind
from bylaw.record.removal import Folded, last_folded, read_removal
from bylaw.record.stop import STOPS, Stopped, read_stops


class Extent(Struct, frozen=True):
    """The number of entries in one tenant's chain."""

    last: int = 0
    """The number of the last entry."""
    recent: int = 0
    """How many of the most recent entries exist."""
    without_conversation: int = 0
    """The number of entries that belong to no conversation: removals and emptied entries."""


class Reading:
    """Reads a log over one connection. Threads share the connection and take turns."""

    def __init__(
        self,
        connection: Connection,
        *,
        fault: type[BylawError] = UsageError,
        lock: AbstractContextManager[object] | None = None,
    ) -> None:
        """If reading fails, `fault` is raised. `lock` is shared by all users of the connection."""
        self.connection = connection
        self.lock: AbstractContextManager[object] = lock or threading.RLock()
        self._fault = fault
        self._moment: Cursor | None = None

    @property
    def name(self) -> str:
        return self.connection.name

    @property
    def reads_at_once(self) -> bool:
        """Whether it is faster to read a few rows directly than to read them in another thread."""
        return self.connection.reads_at_once

    def conversation(self, tenant: str, name: str, *, after: int = 0, settled: bool = True) -> list[Entry]:
        """Return a conversation's entries after position `after`, in order. If `settled` is set, they are on disk.

        Raises an error if the conversation was removed, because no call can be decided without the history.
        """
        where = "tenant = ? AND conversation = ? AND position >= ? ORDER BY position"
        found = self._read(where, (tenant, name, after), settled=settled)
        if not found and not after and self._is_removed(tenant, name):
            raise self._fault(
                f"conversation `{name}` was removed from the log", hint="start a conversation with a new name"
            )
        return found

    def _is_removed(self, tenant: str, name: str) -> bool:
        query = "SELECT 1 FROM conversations WHERE tenant = ? AND name = ?"
        return bool(self._rows(query, (tenant, removed_name(name)), settled=False))

    def settle(self) -> None:
        with self._reading():
            self.connection.settle()

    def named(self, tenant: str, id: str) -> Entry | None:
        return next(iter(self._read("tenant = ? AND id = ?", (tenant, id))), None)

    def entries(self, tenant: str, *, page: int = 1000) -> Iterator[Entry]:
        """Yield a tenant's whole chain in order, page by page."""
        rows = self._read(f"tenant = ? ORDER BY number LIMIT {page}", (tenant,))
        while rows:
            yield from rows
            rows = self._read(f"tenant = ? AND number > ? ORDER BY number LIMIT {page}", (tenant, rows[-1].number))

    def latest(self, tenant: str, kind: Kind, *, after: int = 0, limit: int = 100) -> list[Entry]:
        """Return the latest entries of a kind after the given number, newest first. Entries that were removed are left
        out.
        """
        where = f"tenant = ? AND number > ? AND kind = ? AND body IS NOT NULL ORDER BY number DESC LIMIT {limit}"
        return self._read(where, (tenant, after, kind))

    def openings(self, tenant: str, *, since: float) -> list[bytes]:
        """Return the body of the first entry of each conversation that has new entries since a given time."""
        query = """SELECT body FROM entries WHERE tenant = ? AND kind = 'opening' AND body IS NOT NULL
            AND conversation IN (SELECT conversation FROM entries WHERE tenant = ? AND time >= ?)"""
        return [bytes(body) for (body,) in self._rows(query, (tenant, tenant, since))]

    def opened(self, tenant: str) -> Iterator[tuple[str, bytes]]:
        """Yield a tenant's conversations, each with its first entry's body. Removed conversations are left out."""
        query = "SELECT conversation, body FROM entries WHERE tenant = ? AND kind = 'opening' AND body IS NOT NULL"
        for name, body in self._rows(query, (tenant,)):
            yield name, bytes(body)

    def heads(self) -> dict[str, tuple[int, bytes]]:
        """Return the length and the last hash of each tenant's chain."""
        rows = self._rows("SELECT tenant, number, link FROM heads ORDER BY tenant", ())
        return {tenant: (number, as_bytes(link)) for tenant, number, link in rows}

    def tenants(self) -> list[str]:
        rows = self._rows("SELECT tenant FROM heads UNION SELECT tenant FROM entries ORDER BY tenant", ())
        return [tenant for (tenant,) in rows]

    def lengths(self, tenant: str) -> dict[str, int]:
        """Return the number of entries in each conversation. A removed conversation is listed under the hash of its
        name.
        """
        return dict(self._rows("SELECT name, length FROM conversations WHERE tenant = ?", (tenant,)))

    def conversations(self, tenant: str) -> list[str]:
        """Return the names of a tenant's conversations. Removed conversations are left out."""
        rows = self._rows("SELECT name FROM conversations WHERE tenant = ? ORDER BY name", (tenant,))
        return [name for (name,) in rows if name != STOPS and not name.startswith(REMOVED)]

    def stop_history(self, tenant: str) -> tuple[list[Stopped], int]:
        """Return all stops in the log, and the number of entries about stops."""
        with self.at_one_moment():
            entries = self.conversation(tenant, STOPS)
            length = self.length_of(tenant, STOPS)
        if entries and [entry.position for entry in entries] != [*range(length - len(entries), length)]:
            raise self._fault("an entry about a stop is missing", hint="see `bylaw log verify`")
        try:
            return read_stops(entries), length
        except (ValueError, msgspec.MsgspecError) as error:
            raise self._fault(str(error)) from error

    def latest_uses(
        self, tenant: str, names: Sequence[str], since: float, most: int, returned: Sequence[str] = ()
    ) -> list[float]:
        """Return the times of the latest uses with these names, latest first. Uses that the caller is about to cancel
        are left out.
        """
        query = (
            f"SELECT time, decision FROM uses WHERE tenant = ? AND name IN ({','.join('?' * len(names))}) "
            f"AND time > ? ORDER BY time DESC LIMIT {most + len(returned):d}"
        )
        rows = self._rows(query, (tenant, *names, since), settled=False)
        return [time for time, decision in rows if decision not in returned][:most]

    def uses(self, tenant: str) -> dict[tuple[str, str], tuple[float, str]]:
        """Return the time and the conversation of each active use, keyed by the name under which it is counted and the
        decision.
        """
        rows = self._rows("SELECT name, decision, time, conversation FROM uses WHERE tenant = ?", (tenant,))
        return {(name, decision): (time, conversation) for name, decision, time, conversation in rows}

    def length_if_known(self, tenant: str, name: str) -> int | None:
        """Return the number of entries in a conversation, 0 if it was removed, or None if the log does not know it."""
        query = "SELECT length FROM conversations WHERE tenant = ? AND name IN (?, ?)"
        rows = self._rows(query, (tenant, name, removed_name(name)), settled=False)
        return max(length for (length,) in rows) if rows else None

    def length_of(self, tenant: str, name: str) -> int:
        rows = self._rows("SELECT length FROM conversations WHERE tenant = ? AND name = ?", (tenant, name))
        return int(rows[0][0]) if rows else 0

    def approvals(self, tenant: str, *, status: Status | None = None, id: str = "") -> list[Approval]:
        """Return the approvals, oldest first, optionally only those with this `status` or `id`."""
        query, values = (
            "SELECT id, conversation, status, asked, expires, body FROM approvals WHERE tenant = ?",
            [tenant],
        )
        for column, wanted in (("status", status), ("id", id)):
            if wanted:
                query += f" AND {column} = ?"
                values.append(wanted)
        return [read_approval(row) for row in self._rows(query + " ORDER BY asked, id", tuple(values))]

    def waiting(self, tenant: str | None, now: float) -> tuple[int, float]:
        """Return the number of waiting approvals and when the oldest was requested, for one tenant or for all."""
        query = "SELECT COUNT(*), MIN(asked) FROM approvals WHERE status = 'waiting' AND expires > ?"
        values: tuple[Any, ...] = (now,)
        if tenant is not None:
            query, values = f"{query} AND tenant = ?", (now, tenant)
        ((count, since),) = self._rows(query, values)
        return count, since or 0.0

    def folded(self, tenant: str) -> Folded | None:
        """Return a tenant's last fold (the removal of the chain's start), or None if there was none."""
        return last_folded(entry.body or b"" for entry in reversed(self._removals(tenant)))

    def _removals(self, tenant: str) -> list[Entry]:
        """Return the entries about removals in order. These entries belong to no conversation."""
        where = "tenant = ? AND conversation IS NULL AND kind = 'removal' AND body IS NOT NULL ORDER BY number"
        return self._read(where, (tenant,))

    def extent(self, tenant: str, recent: int) -> Extent:
        """Return the length of a tenant's chain and how many of its entries exist, both read by one statement."""
        query = """SELECT number,
            (SELECT COUNT(*) FROM entries WHERE tenant = heads.tenant AND number > heads.number - ?),
            (SELECT COUNT(*) FROM entries WHERE tenant = heads.tenant AND conversation IS NULL)
            FROM heads WHERE tenant = ?"""
        rows = self._rows(query, (recent, tenant), settled=False)
        return Extent(*rows[0]) if rows else Extent()

    def gap(self, tenant: str, recent: int) -> str:
        """Return whether recent entries are missing, or were emptied without a removal entry, as text. Empty if there
        is no gap.
        """
        with self.at_one_moment():
            found, removals, fold = self.extent(tenant, recent), self._removals(tenant), self.folded(tenant)
        start = fold.until if fold is not None else 0
        if found.recent != min(recent, found.last - start):
            return f"one of its last {recent} entries is missing"
        told = sum(
            len(range(max(first, start + 1), last + 1))
            for entry in removals
            if (removal := read_removal(entry)) is not None
            for first, last in removal.entries
        )
        return (
            "entries were emptied without a removal entry" if found.without_conversation != told + len(removals) else ""
        )

    def close(self) -> None:
        self.connection.close()

    def _read(self, where: str, values: tuple[Any, ...], *, settled: bool = True) -> list[Entry]:
        rows = self._rows(f"SELECT {COLUMNS} FROM entries WHERE {where}", values, settled=settled)
        with self._reading():
            return [entry_of(row) for row in rows]

    @contextmanager
    def at_one_moment(self) -> Generator[None]:
        """Read a consistent snapshot while other processes may write. When the block ends, all data that was read is on
        disk.
        """
        with self.lock:
            if self._moment is not None:
                yield
                return
            with self._reading():
                self._moment = self.connection.begin(writing=False)
            try:
                yield
            finally:
                self._moment = None
                self.connection.rollback()
            self.settle()

    def _rows(self, query: str, values: tuple[Any, ...], *, settled: bool = True) -> list[Any]:
        with self._reading():
            if self._moment is not None:
                self._moment.execute(query, values)
                return self._moment.fetchall()
            found = self.connection.rows(query, values)
            if settled:
                self.connection.settle()
            return found

    @contextmanager
    def _reading(self) -> Generator[None]:
        with self.lock:
            try:
                yield
            except self._fault:
                raise
            except Exception as error:
                # Only the file or the server can be the cause of a database error here.
                raise self._fault(f"`{self.name}` could not be read: {error}") from error
