"""Removes conversations from a log after a retention period or at a person's request. Each removal is signed.

A removal empties all entries of a conversation but keeps their hashes, so the chain still verifies. A fold deletes the
emptied entries at the start of a chain. Both add a signed entry to the chain. The signing key is stored outside the
database.
"""

import hmac
import os
import time as clock
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.errors import UsageError
from bylaw.record.database import COLUMNS, REMOVED, Cursor, as_bytes, entry_of, removed_name
from bylaw.record.entry import ROOT, Draft, Entry, digest_of, is_altered, link_of, new_salts
from bylaw.record.stop import STOPS, read_stops
from bylaw.record.use import Use, read_use

VARIABLE = "BYLAW_SIGNING_KEY"
SHORTEST = 32
"""The minimum length of a key in bytes."""
MAKE_ONE = "generate one with `openssl rand -hex 32`, and store it away from the database"


def read_key(path: Path | None) -> bytes | None:
    """Return the key from a file or from the environment variable. None if neither is set."""
    if path is None:
        key, place = os.environ.get(VARIABLE, "").encode(), f"${VARIABLE}"
    else:
        try:
            key, place = path.read_bytes(), str(path)
        except OSError as error:
            raise UsageError(f"cannot be read: {(error.strerror or str(error)).lower()}", place=str(path)) from None
    key = key.strip()
    if not key and path is None:
        return None
    if len(key) < SHORTEST:
        raise UsageError(f"a signing key must have at least {SHORTEST} bytes", place=place, hint=MAKE_ONE)
    return key


def sign(key: bytes, tenant: str, number: int, before: bytes, body: bytes) -> str:
    """Return the signature of an entry's body, its number and the previous entry's hash."""
    place = f"{tenant}\0{number}\0{before.hex()}\0".encode()
    return hmac.new(key, place + body, sha256).hexdigest()


def is_signed(signature: str, key: bytes, tenant: str, number: int, before: bytes, body: bytes) -> bool:
    return hmac.compare_digest(signature, sign(key, tenant, number, before, body))


class Folded(Struct, frozen=True, omit_defaults=True):
    """What a fold records about the deleted start of the chain."""

    until: int
    link: str
    """The hash of the last deleted entry, which the next entry's hash includes."""
    anchors: str = ""
    """A hash of all anchors up to the last deleted entry. They were checked before the fold, because afterwards they
    cannot be.
    """
    removed: str = ""
    """A hash of the names (as in `conversations`) of all conversations whose removal entries were deleted."""
    stops: int = 0
    """The number of deleted entries about stops. They still count towards the total."""


class Removal(Struct, frozen=True, omit_defaults=True):
    """The body of a removal entry. It lists the emptied entries, without their content."""

    entries: list[tuple[int, int]]
    """Runs of emptied entries, each as its first and last number."""
    conversations: list[str] = []
    """Hashes of the removed conversations' names (see `removed_name`)."""
    folded: Folded | None = None
    signature: str = ""


class Fold(Struct, frozen=True):
    entries: int
    """The number of deleted rows."""
    until: int
    """The number of the last deleted entry. 0 if nothing was deleted."""


_EMPTY = """UPDATE entries SET conversation = NULL, position = NULL, id = NULL, body = NULL, salt = NULL
    WHERE tenant = ? AND conversation = ?"""
_MARK = "INSERT INTO conversations (tenant, name, length) VALUES (?,?,0) ON CONFLICT (tenant, name) DO NOTHING"
_REMOVALS = "SELECT body FROM entries WHERE tenant = ? AND kind = 'removal' AND body IS NOT NULL ORDER BY number DESC"
encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Removal).decode


def remove(cursor: Cursor, tenant: str, key: bytes, conversation: str | None, before: float | None) -> int:
    """Empty all entries of one conversation, or of all conversations that ended before a given time.

    Return the number of emptied entries.
    """
    numbers: list[int] = []
    names = _names(cursor, tenant, conversation, before)
    for name in names:
        numbers += [entry.number for entry in _entries(cursor, tenant, name)]
        cursor.execute(_EMPTY, (tenant, name))
        cursor.execute("DELETE FROM conversations WHERE tenant = ? AND name = ?", (tenant, name))
        cursor.execute("DELETE FROM approvals WHERE tenant = ? AND conversation = ?", (tenant, name))
        cursor.execute("DELETE FROM uses WHERE tenant = ? AND conversation = ?", (tenant, name))
    if before is not None:
        numbers += _empty_stops(cursor, tenant, before)
    if numbers:
        # The names remain reserved, because a new conversation under an old name would lack its history.
        marks = [removed_name(name) for name in names]
        for mark in marks:
            cursor.execute(_MARK, (tenant, mark))
        _append(cursor, tenant, key, Removal(runs(numbers), marks))
    return len(numbers)


def _entries(cursor: Cursor, tenant: str, conversation: str) -> list[Entry]:
    """Return a conversation's entries.

    Raises UsageError if any entry was altered or moved, because the removal's signature would hide that.
    """
    cursor.execute(f"SELECT {COLUMNS} FROM entries WHERE tenant = ? AND conversation = ?", (tenant, conversation))
    entries = [entry_of(row) for row in cursor.fetchall()]
    for entry in entries:
        if is_altered(entry):
            hint = "run `bylaw log verify`"
            raise UsageError(f"nothing was removed: entry {entry.number} was altered", hint=hint)
    return entries


def _names(cursor: Cursor, tenant: str, conversation: str | None, before: float | None) -> list[str]:
    if conversation is not None:
        return [conversation]
    # Ongoing conversations stay complete, because otherwise their calls could not be decided.
    cursor.execute(
        "SELECT conversation FROM entries WHERE tenant = ? AND conversation IS NOT NULL"
        " GROUP BY conversation HAVING MAX(time) < ?",
        (tenant, before),
    )
    found = [name for (name,) in cursor.fetchall() if name != STOPS]
    counted = _still_counted(cursor, tenant) if found else set[str]()
    return [name for name in found if name not in counted]


def _still_counted(cursor: Cursor, tenant: str) -> set[str]:
    """Return the conversations with calls that still count towards a limit. If they were removed, more calls would be
    allowed.
    """
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
    """Empty the entries about stops, if all are older than a given time and no stop is active. Return their numbers.

    The emptied entries still count, because decisions compare the number of entries about stops.
    """
    entries, now = _entries(cursor, tenant, STOPS), clock.time()
    if any(entry.time >= before for entry in entries) or any(each.stands(now) for each in read_stops(entries)):
        return []
    cursor.execute(_EMPTY, (tenant, STOPS))
    return [entry.number for entry in entries]


def fold(cursor: Cursor, tenant: str, key: bytes, before: float, anchors: Mapping[int, str]) -> Fold:
    """Delete the emptied entries before a given time, up to the last entry with an anchor.

    `anchors` maps entry numbers to hashes.
    """
    earlier = last_folded(_removals(cursor, tenant))
    since = earlier.until if earlier is not None else 0
    end = _end(cursor, tenant, before)
    until = max((number for number in anchors if number <= end), default=0)
    if until <= since:
        if end > since:
            raise UsageError(f"no anchor covers entries {since + 1} to {end}", hint="run `bylaw serve` with --anchors")
        return Fold(0, since)
    cursor.execute("SELECT link FROM entries WHERE tenant = ? AND number = ?", (tenant, until))
    link = as_bytes(cursor.fetchone()[0]).hex()
    cursor.execute("SELECT COUNT(*) FROM entries WHERE tenant = ? AND number <= ? AND kind = 'stop'", (tenant, until))
    stops = int(cursor.fetchone()[0]) + (earlier.stops if earlier is not None else 0)
    cursor.execute("DELETE FROM entries WHERE tenant = ? AND number <= ?", (tenant, until))
    cursor.execute("SELECT name FROM conversations WHERE tenant = ?", (tenant,))
    marks = {name for (name,) in cursor.fetchall() if name.startswith(REMOVED)}
    for body in _removals(cursor, tenant):
        marks.difference_update(_decode(body).conversations)
    folded = Folded(until, link, hash_anchors(anchors, until), hash_marks(marks), stops)
    _append(cursor, tenant, key, Removal([], folded=folded))
    return Fold(until - since, until)


def _removals(cursor: Cursor, tenant: str) -> list[bytes]:
    cursor.execute(_REMOVALS, (tenant,))
    return [as_bytes(body) for (body,) in cursor.fetchall()]


def hash_marks(marks: Iterable[str]) -> str:
    return sha256(encode(sorted(marks))).hexdigest()


def _end(cursor: Cursor, tenant: str, before: float) -> int:
    """Return the number of the last entry before a given time up to which all entries are emptied or are removals."""
    cursor.execute(
        "SELECT MIN(number) FROM entries WHERE tenant = ? AND body IS NOT NULL AND kind <> 'removal'", (tenant,)
    )
    (held,) = cursor.fetchone()
    query, values = "SELECT MAX(number) FROM entries WHERE tenant = ? AND time < ?", (tenant, before)
    if held is not None:
        query, values = f"{query} AND number < ?", (*values, held)
    cursor.execute(query, values)
    return int(cursor.fetchone()[0] or 0)


def hash_anchors(anchors: Mapping[int, str], until: int) -> str:
    return sha256(encode(sorted(each for each in anchors.items() if each[0] <= until))).hexdigest()


def _append(cursor: Cursor, tenant: str, key: bytes, removal: Removal) -> None:
    """Write a signed removal entry. It belongs to no conversation, so that later removals do not empty it."""
    cursor.execute("SELECT number, link FROM heads WHERE tenant = ?", (tenant,))
    number, before = cursor.fetchone() or (0, ROOT)
    number, before, time, salt = number + 1, as_bytes(before), clock.time(), new_salts(1)
    signed = replace(removal, signature=sign(key, tenant, number, before, encode(removal)))
    draft = Draft(tenant, "", "removal", encode(signed))
    digest = digest_of(draft, 0, salt)
    link = link_of(before, tenant, number, repr(time), draft.kind, digest)
    row = (tenant, number, time, draft.kind, None, None, None, draft.body, salt, digest, link)
    cursor.execute(f"INSERT INTO entries ({COLUMNS}) VALUES ({','.join('?' * len(row))})", row)
    cursor.execute("UPDATE heads SET number = ?, link = ? WHERE tenant = ?", (number, link, tenant))


def read_removal(entry: Entry) -> Removal | None:
    """Return the removal that an entry records, or None if it is unreadable."""
    try:
        return _decode(entry.body or b"")
    except msgspec.MsgspecError:
        return None


def signature_fault(entry: Entry, removal: Removal, before: bytes, key: bytes | None) -> str:
    """Return why a removal cannot be trusted. Empty if its signature is correct."""
    where = f"the removal in entry {entry.number}"
    if not removal.signature:
        return f"{where} is not signed"
    if key is None:
        return f"{where} cannot be checked without the signing key"
    body = encode(replace(removal, signature=""))
    if not is_signed(removal.signature, key, entry.tenant, entry.number, before, body):
        return f"{where} was not signed with this key"
    return ""


def emptied(entry: Entry, removal: Removal, *, after: int = 0) -> Iterable[int]:
    """Return the numbers, above a given number, of the entries that a removal lists as emptied. All precede it."""
    for first, last in removal.entries:
        yield from range(max(first, after + 1), min(last, entry.number - 1) + 1)


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Group numbers into runs. Each run is a pair of its first and last number."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def last_folded(bodies: Iterable[bytes]) -> Folded | None:
    """Return the last fold. `bodies` are the bodies of removal entries, newest first. Unreadable bodies are skipped."""
    for body in bodies:
        try:
            if (found := _decode(body).folded) is not None:
                return found
        except msgspec.MsgspecError:
            continue
    return None
