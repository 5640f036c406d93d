"""The log's store: an SQLite file or a PostgreSQL database. Each transaction writes one batch of drafts."""

import time as clock
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager

from bylaw.record.approval import project
from bylaw.record.database import Cursor, Known, News, Place, Row, removed_name
from bylaw.record.entry import ROOT, SALT, Anchor, Conflict, Draft, Entry, digest_of, link_of, new_salts
from bylaw.record.reading import Reading
from bylaw.record.removal import Fold, fold, remove
from bylaw.record.stop import STOPS
from bylaw.record.use import project_use


class Store(Reading):
    """A log in a database, for one thread at a time. `Journal` lets many threads share each transaction."""

    def append(self, drafts: Sequence[Draft]) -> list[Entry | Conflict]:
        """Write those drafts that can be written, in order and in one transaction. On return, they are on disk."""
        return [answer for answers in self.append_groups([[draft] for draft in drafts]) for answer in answers]

    def append_groups(self, groups: Sequence[Sequence[Draft]]) -> list[list[Entry | Conflict]]:
        """Write groups of drafts. A group is written completely or not at all."""
        if not any(groups):
            return [[] for _ in groups]
        with self.lock:
            try:
                batch = _Batch(*self.connection.begin_batch(*_places(groups)), sum(map(len, groups)))
                answers = [batch.take_all(drafts) for drafts in groups]
                self.connection.commit_batch(batch.news())
            except BaseException:
                self.connection.rollback()
                raise
            return answers

    def remove(self, tenant: str, *, key: bytes, conversation: str | None = None, before: float | None = None) -> int:
        """Empty the entries of one conversation, or of all conversations that ended before a given time.

        Return the number of emptied entries. The chain still verifies, because a new entry, signed with `key`, lists
        the emptied entries.
        """
        with self.lock:
            with self._writing() as cursor:
                removed = remove(cursor, tenant, key, conversation, before)
            self.connection.wipe()
            return removed

    def fold(self, tenant: str, *, key: bytes, before: float, anchors: Iterable[Anchor]) -> Fold:
        """Delete the emptied entries at the start of a chain, before a given time and up to the last entry with an
        anchor.

        The caller must verify the log first. A signed entry records the hash before the new start, so the remaining
        chain still verifies.
        """
        noted = {each.number: each.link for each in anchors if each.tenant == tenant}
        with self.lock, self._writing() as cursor:
            return fold(cursor, tenant, key, before, noted)

    @contextmanager
    def _writing(self) -> Generator[Cursor]:
        """Run a writing transaction completely or not at all."""
        cursor = self.connection.begin(writing=True)
        try:
            yield cursor
            self.connection.commit()
        except BaseException:
            self.connection.rollback()
            raise


def _places(groups: Sequence[Sequence[Draft]]) -> tuple[set[Place], set[Place]]:
    drafts = [draft for each in groups for draft in each]
    conversations = {(draft.tenant, draft.conversation) for draft in drafts}
    conversations |= {(draft.tenant, STOPS) for draft in drafts if draft.under is not None}
    conversations |= {(draft.tenant, removed_name(draft.conversation)) for draft in drafts if draft.kind == "opening"}
    ids = {(draft.tenant, draft.id) for draft in drafts if draft.id}
    return conversations, ids | {(draft.tenant, draft.first.id) for draft in drafts if draft.first and draft.first.id}


_NOTHING = (0, ROOT)


class _Batch:
    """Turns the drafts of a batch into entries. Each chain head and length is read and written only once."""

    def __init__(self, cursor: Cursor, known: Known, size: int) -> None:
        """`known` is what the log contains for the drafts' tenants, conversations and keys. `size` is the number of
        drafts.
        """
        self._cursor = cursor
        self._heads, self._lengths, self._ids = known.heads, known.lengths, known.entries
        self._rows: list[Row] = []
        self._time = clock.time()
        self._shown = repr(self._time)
        self._salts = new_salts(size)
        self._salted = 0

    def take_all(self, drafts: Sequence[Draft]) -> list[Entry | Conflict]:
        """Return the entries for a group of drafts. If one cannot be written, return its reason for every draft."""
        if len(drafts) == 1:
            return [self.take(drafts[0])]
        heads, size = self._heads.copy(), len(self._rows)
        moves = any(draft.kind in ("approval", "use") for draft in drafts)
        if moves:
            self._cursor.execute("SAVEPOINT together")
        answers: list[Entry | Conflict] = []
        for draft in drafts:
            answer = self.take(draft)
            answers.append(answer)
            if isinstance(answer, Conflict):
                self._undo(size)
                self._heads = heads
                if moves:
                    self._cursor.execute("ROLLBACK TO SAVEPOINT together")
                return [answer for _ in drafts]
        if moves:
            self._cursor.execute("RELEASE SAVEPOINT together")
        return answers

    def take(self, draft: Draft) -> Entry | Conflict:
        """Return the entry for a draft. For a retry, return the earlier entry. If the draft cannot be written, return
        the reason.
        """
        tenant, conversation, kind = draft.tenant, draft.conversation, draft.kind
        body, name = draft.body, draft.id or None
        if name is not None and (known := self._ids.get((tenant, name))) is not None:
            same = known.body == body and known.conversation == conversation and known.kind == kind
            return known if same else Conflict(f"another entry already has the id `{name}`")
        place = (tenant, conversation)
        length = self._lengths.get(place, 0)
        if draft.position is not None and draft.position != length:
            return Conflict(f"conversation `{conversation}` has grown from {draft.position} to {length} entries")
        if draft.first is not None and draft.first.id and not self._is_there(draft.first):
            return Conflict(f"conversation `{conversation}` was removed")
        if kind == "opening" and (tenant, removed_name(conversation)) in self._lengths:
            return Conflict(f"conversation `{conversation}` was removed")
        if draft.under is not None and draft.under != self._lengths.get((tenant, STOPS), 0):
            return Conflict("it was decided before a stop was added or lifted", "stops")
        if kind == "approval" and (wrong := project(self._cursor, draft, self._time)):
            return Conflict(wrong)
        if kind == "use" and (wrong := project_use(self._cursor, draft, self._time)):
            return Conflict(wrong, "limit")
        number, before = self._heads.get(tenant, _NOTHING)
        number += 1
        salt = self._salts[self._salted : self._salted + SALT]
        self._salted += SALT
        digest = digest_of(draft, length, salt)
        link = link_of(before, tenant, number, self._shown, kind, digest)
        row = (tenant, number, self._time, kind, conversation, length, name, body, salt, digest, link)
        entry = Entry(*row)
        self._rows.append(row)
        self._heads[tenant] = (number, link)
        self._lengths[place] = length + 1
        if name is not None:
            self._ids[tenant, name] = entry
        return entry

    def _is_there(self, first: Entry) -> bool:
        known = self._ids.get((first.tenant, first.id or ""))
        return known is not None and known.digest == first.digest

    def _undo(self, size: int) -> None:
        for tenant, _, _, _, conversation, position, name, *_ in reversed(self._rows[size:]):
            self._lengths[tenant, conversation] = position
            if name is not None:
                del self._ids[tenant, name]
        del self._rows[size:]

    def news(self) -> News:
        written = {(row[0], row[4]) for row in self._rows}
        return News(
            self._rows,
            [(tenant, *self._heads[tenant]) for tenant in {tenant for tenant, _ in written}],
            [(*place, self._lengths[place]) for place in written],
        )


def open_store(where: str) -> Store:
    """Open the log at a path or at `postgresql://...`. Create it if needed."""
    if where.startswith(("postgresql://", "postgres://")):
        from bylaw.record.postgres import PostgresConnection

        return Store(PostgresConnection(where))
    from bylaw.record.sqlite import SqliteConnection

    return Store(SqliteConnection(where))
