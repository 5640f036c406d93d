"""Takes out what entries say, to keep a retention period or a promise to a person, and writes down that it did."""

import time as clock
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from bylaw.record.database import COLUMNS, Cursor, entry_of
from bylaw.record.entry import ROOT, Draft, Entry, digest_of, link_of, new_salts
from bylaw.record.stop import STOPS, read_stops
from bylaw.record.use import Use, read_use


class Folded(Struct, frozen=True):
    """Where the chain begins now: what was before is not in the database any more."""

    until: int
    """The last entry that was taken out."""
    link: str
    """Its hash, which the next one follows from."""
    heads: list[tuple[str, int, str]] = []
    """Of every month that was folded, ever, the last entry and its hash."""


class Removal(Struct, frozen=True, omit_defaults=True):
    """What the entry of a removal says: which entries it emptied, and nothing of what they said."""

    entries: list[tuple[int, int]]
    """First and last number of each run of them."""
    folded: Folded | None = None


_EMPTY = """UPDATE entries SET conversation = NULL, position = NULL, id = NULL, body = NULL, salt = NULL
    WHERE tenant = ? AND conversation = ?"""
encode = msgspec.json.Encoder().encode
read_removal = msgspec.json.Decoder(Removal).decode


def remove(cursor: Cursor, tenant: str, conversation: str | None, before: float | None) -> int:
    """Empty the entries of a conversation, or of all that ended before a time; how many there were."""
    numbers: list[int] = []
    for name in _names(cursor, tenant, conversation, before):
        cursor.execute("SELECT number FROM entries WHERE tenant = ? AND conversation = ?", (tenant, name))
        numbers += [number for (number,) in cursor.fetchall()]
        cursor.execute(_EMPTY, (tenant, name))
        cursor.execute("DELETE FROM conversations WHERE tenant = ? AND name = ?", (tenant, name))
        cursor.execute("DELETE FROM approvals WHERE tenant = ? AND conversation = ?", (tenant, name))
        cursor.execute("DELETE FROM uses WHERE tenant = ? AND conversation = ?", (tenant, name))
    if before is not None:
        numbers += _empty_stops(cursor, tenant, before)
    if numbers:
        write_removal(cursor, tenant, Removal(runs(numbers)))
    return len(numbers)


def _names(cursor: Cursor, tenant: str, conversation: str | None, before: float | None) -> list[str]:
    if conversation is not None:
        return [conversation]
    # A conversation that is still going on must stay whole, or nobody could decide in it.
    cursor.execute(
        "SELECT conversation FROM entries WHERE tenant = ? AND conversation IS NOT NULL"
        " GROUP BY conversation HAVING MAX(time) < ?",
        (tenant, before),
    )
    found = [name for (name,) in cursor.fetchall() if name != STOPS]
    counted = _still_counted(cursor, tenant) if found else set[str]()
    return [name for name in found if name not in counted]


def _still_counted(cursor: Cursor, tenant: str) -> set[str]:
    """Conversations with a call that takes a place under a limit now: without it there would be one more."""
    cursor.execute(
        f"SELECT {COLUMNS} FROM entries WHERE tenant = ? AND kind = 'use' AND body IS NOT NULL"
        " AND conversation IN (SELECT conversation FROM uses WHERE tenant = ?)",
        (tenant, tenant),
    )
    now, taken = clock.time(), dict[tuple[str, str], str]()
    for entry in sorted(map(entry_of, cursor.fetchall()), key=lambda each: each.number):
        use: Use = read_use(entry.body or b"")
        if use.status == "taken" and entry.time + use.within > now:
            taken[use.decision, use.limit] = entry.conversation or ""
        elif use.status == "returned":
            taken.pop((use.decision, use.limit), None)
    return set(taken.values())


def _empty_stops(cursor: Cursor, tenant: str, before: float) -> list[int]:
    """Empty what is said of stops before a time, once all of them are over; their numbers.

    How many entries there were stays known: whoever decides tells by it that stops have changed.
    """
    cursor.execute(f"SELECT {COLUMNS} FROM entries WHERE tenant = ? AND conversation = ?", (tenant, STOPS))
    entries = [entry_of(row) for row in cursor.fetchall()]
    now = clock.time()
    if any(entry.time >= before for entry in entries) or any(each.stands(now) for each in read_stops(entries)):
        return []
    cursor.execute(_EMPTY, (tenant, STOPS))
    return [entry.number for entry in entries]


def write_removal(cursor: Cursor, tenant: str, removal: Removal) -> None:
    """The entry of a removal. It belongs to no conversation, so no later removal empties it."""
    cursor.execute("SELECT number, link FROM heads WHERE tenant = ?", (tenant,))
    number, before = cursor.fetchone() or (0, ROOT)
    number, time, salt = number + 1, clock.time(), new_salts(1)
    draft = Draft(tenant, "", "removal", encode(removal))
    digest = digest_of(draft, 0, salt)
    link = link_of(bytes(before), tenant, number, repr(time), draft.kind, digest)
    row = (tenant, number, time, draft.kind, None, None, None, draft.body, salt, digest, link)
    cursor.execute(f"INSERT INTO entries ({COLUMNS}) VALUES ({','.join('?' * len(row))})", row)
    cursor.execute("UPDATE heads SET number = ?, link = ? WHERE tenant = ?", (number, link, tenant))


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Numbers as runs, first and last of each."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def last_folded(bodies: Iterable[bytes]) -> Folded | None:
    """Where the chain was folded last, from what removals say, the last first; one that cannot be read is not one."""
    for body in bodies:
        try:
            if (found := read_removal(body).folded) is not None:
                return found
        except msgspec.MsgspecError:
            continue
    return None


def emptied(entry: Entry, *, after: int = 0) -> Iterable[int]:
    """The entries after one that a removal says it emptied: all of them came before it."""
    try:
        removal = read_removal(entry.body or b"")
    except msgspec.MsgspecError:
        return
    for first, last in removal.entries:
        yield from range(max(first, after + 1), min(last, entry.number - 1) + 1)
