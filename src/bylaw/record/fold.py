"""Takes the emptied beginning of a chain out of the database: what is left of it is the hash it ended with, by month.

A removal empties entries and leaves their hashes, so that the chain can be followed. After years nobody needs them all:
it can be followed from where it was folded, since an entry, in the chain like all others, says the hash there.
"""

from calendar import monthrange
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from bylaw.record.database import Cursor, as_bytes
from bylaw.record.removal import Folded, Removal, last_folded, write_removal


class Fold(Struct, frozen=True):
    entries: int
    """Rows that were taken out, this time."""
    until: int
    """The last entry that is not there any more; 0 where none was ever folded."""


def fold(cursor: Cursor, tenant: str, before: float) -> Fold:
    """Take out the entries before a time, as far as all of them are empty; an entry says so."""
    earlier = last_fold(cursor, tenant)
    since = earlier.until if earlier is not None else 0
    until = _end(cursor, tenant, before)
    if until <= since:
        return Fold(0, since)
    heads = list(earlier.heads) if earlier is not None else []
    heads += _heads(cursor, tenant, until)
    cursor.execute("SELECT link FROM entries WHERE tenant = ? AND number = ?", (tenant, until))
    link = bytes(cursor.fetchone()[0]).hex()
    cursor.execute("DELETE FROM entries WHERE tenant = ? AND number <= ?", (tenant, until))
    write_removal(cursor, tenant, Removal([], Folded(until, link, heads)))
    return Fold(until - since, until)


def last_fold(cursor: Cursor, tenant: str) -> Folded | None:
    cursor.execute(
        "SELECT body FROM entries WHERE tenant = ? AND kind = 'removal' AND body IS NOT NULL ORDER BY number DESC",
        (tenant,),
    )
    return last_folded(as_bytes(body) for (body,) in cursor.fetchall())


def _end(cursor: Cursor, tenant: str, before: float) -> int:
    """The last entry before a time such that it and all before it say nothing, or only what was removed."""
    cursor.execute(
        "SELECT MIN(number) FROM entries WHERE tenant = ? AND body IS NOT NULL AND kind <> 'removal'", (tenant,)
    )
    (held,) = cursor.fetchone()
    query, values = "SELECT MAX(number) FROM entries WHERE tenant = ? AND time < ?", (tenant, before)
    if held is not None:
        query, values = f"{query} AND number < ?", (*values, held)
    cursor.execute(query, values)
    return int(cursor.fetchone()[0] or 0)


def _heads(cursor: Cursor, tenant: str, until: int) -> list[tuple[str, int, str]]:
    """The last entry of every month that is folded: month (UTC), number and hash."""
    cursor.execute("SELECT MIN(time), MAX(time) FROM entries WHERE tenant = ? AND number <= ?", (tenant, until))
    first, last = cursor.fetchone()
    found: list[tuple[str, int, str]] = []
    month = datetime.fromtimestamp(first, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    while month.timestamp() <= last:
        following = month + timedelta(days=monthrange(month.year, month.month)[1])
        cursor.execute(
            "SELECT number, link FROM entries WHERE tenant = ? AND number <= ? AND time >= ? AND time < ?"
            " ORDER BY number DESC LIMIT 1",
            (tenant, until, month.timestamp(), following.timestamp()),
        )
        if (row := cursor.fetchone()) is not None:
            found.append((month.strftime("%Y-%m"), row[0], bytes(row[1]).hex()))
        month = following
    return found
