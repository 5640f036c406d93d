"""The drafts of one transaction: what they need to know is read at once, and what they become is written at once.

Every statement lets other threads run and then waits for its turn again, so a batch of any size takes a few of them.
"""

import time as clock
from collections.abc import Iterable, Sequence
from typing import Any

from bylaw.record.approval import project
from bylaw.record.database import COLUMNS, Cursor, entry_of
from bylaw.record.entry import ROOT, SALT, Conflict, Draft, Entry, digest_of, link_of, new_salts

ROWS = 64
"""Rows in one statement at most."""


class Batch:
    """Turns drafts into entries; heads and lengths are read once and written once."""

    def __init__(self, cursor: Cursor, groups: Sequence[Sequence[Draft]]) -> None:
        self._cursor = cursor
        self._heads: dict[str, tuple[int, bytes]] = {}
        self._lengths: dict[tuple[str, str], int] = {}
        self._ids: dict[tuple[str, str], Entry] = {}
        self._rows: list[tuple[Any, ...]] = []
        self._time = clock.time()
        self._read(groups)
        self._salts = new_salts(sum(map(len, groups)))
        self._salted = 0

    def _read(self, groups: Sequence[Sequence[Draft]]) -> None:
        """All that the log knows of the drafts' tenants, conversations and ids."""
        names: dict[str, set[str]] = {}
        ids: dict[str, set[str]] = {}
        for drafts in groups:
            for draft in drafts:
                names.setdefault(draft.tenant, set()).add(draft.conversation)
                if draft.id:
                    ids.setdefault(draft.tenant, set()).add(draft.id)
        for tenant, conversations in names.items():
            self._heads[tenant] = (0, ROOT)
            for number, link in self._select("SELECT number, link FROM heads WHERE tenant = ?", tenant):
                self._heads[tenant] = (number, bytes(link))
            self._lengths |= dict.fromkeys(((tenant, name) for name in conversations), 0)
            lengths = "SELECT name, length FROM conversations WHERE tenant = ? AND name"
            for name, length in self._select_in(lengths, tenant, conversations):
                self._lengths[tenant, name] = length
            known = f"SELECT {COLUMNS} FROM entries WHERE tenant = ? AND id"
            for row in self._select_in(known, tenant, ids.get(tenant, ())):
                entry = entry_of(row)
                self._ids[tenant, entry.id or ""] = entry

    def _select(self, query: str, *values: str) -> list[Any]:
        self._cursor.execute(query, values)
        return self._cursor.fetchall()

    def _select_in(self, query: str, tenant: str, wanted: Iterable[str]) -> list[Any]:
        rows: list[Any] = []
        for part in _parts(list(wanted)):
            rows += self._select(f"{query} IN ({','.join('?' * len(part))})", tenant, *part)
        return rows

    def take_all(self, drafts: Sequence[Draft]) -> list[Entry | Conflict]:
        """The entries that drafts become, or, where one of them cannot, that reason for each."""
        if len(drafts) == 1:
            return [self.take(drafts[0])]
        heads = {draft.tenant: self._heads[draft.tenant] for draft in drafts}
        lengths = {place: self._lengths[place] for place in {(draft.tenant, draft.conversation) for draft in drafts}}
        new = [name for draft in drafts if draft.id and (name := (draft.tenant, draft.id)) not in self._ids]
        size = len(self._rows)
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
        tenant, conversation = draft.tenant, draft.conversation
        if draft.id and (known := self._ids.get((tenant, draft.id))) is not None:
            same = known.body == draft.body and known.conversation == conversation and known.kind == draft.kind
            return known if same else Conflict(f"`{draft.id}` already names another entry")
        place = (tenant, conversation)
        length = self._lengths[place]
        if draft.position is not None and draft.position != length:
            return Conflict(f"conversation `{conversation}` has gone on to {length}, from {draft.position}")
        if draft.kind == "approval" and (wrong := project(self._cursor, draft, self._time)):
            return Conflict(wrong)
        number, before = self._heads[tenant]
        number += 1
        salt = self._salts[self._salted : self._salted + SALT]
        self._salted += SALT
        digest = digest_of(draft, length, salt)
        link = link_of(before, tenant, number, self._time, draft.kind, digest)
        name = draft.id or None
        row = (tenant, number, self._time, draft.kind, conversation, length, name, draft.body, salt, digest, link)
        entry = Entry(*row)
        self._rows.append(row)
        self._heads[tenant] = (number, link)
        self._lengths[place] = length + 1
        if name is not None:
            self._ids[tenant, name] = entry
        return entry

    def write(self) -> None:
        """Put the rows, the new heads and the new lengths into the database."""
        if not self._rows:
            return
        written = {(row[0], row[4]) for row in self._rows}
        self._insert(f"entries ({COLUMNS})", self._rows)
        self._insert(
            "heads (tenant, number, link)",
            [(tenant, *self._heads[tenant]) for tenant in {tenant for tenant, _ in written}],
            "ON CONFLICT (tenant) DO UPDATE SET number = excluded.number, link = excluded.link",
        )
        self._insert(
            "conversations (tenant, name, length)",
            [(*place, self._lengths[place]) for place in written],
            "ON CONFLICT (tenant, name) DO UPDATE SET length = excluded.length",
        )

    def _insert(self, into: str, rows: Sequence[tuple[Any, ...]], known: str = "") -> None:
        row = f"({','.join('?' * len(rows[0]))})"
        start = 0
        while start < len(rows):
            # Few sizes, so that a database has most statements ready.
            size = min(ROWS, 1 << ((len(rows) - start).bit_length() - 1))
            values = [value for each in rows[start : start + size] for value in each]
            self._cursor.execute(f"INSERT INTO {into} VALUES {','.join([row] * size)} {known}", values)
            start += size


def _parts(values: list[str]) -> Iterable[list[str]]:
    """Values in parts of a few sizes, filled up with the last of them."""
    for start in range(0, len(values), ROWS):
        part = values[start : start + ROWS]
        size = 1 << (len(part) - 1).bit_length()
        yield part + part[-1:] * (size - len(part))
