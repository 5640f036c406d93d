"""Where the log lies: a file of SQLite, or a PostgreSQL database. One transaction takes a batch of drafts."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bylaw.record.batch import Batch, places
from bylaw.record.database import Cursor, Steps, T
from bylaw.record.entry import Conflict, Draft, Entry
from bylaw.record.reading import Reading
from bylaw.record.removal import Fold, fold, remove

if TYPE_CHECKING:
    from bylaw.record.anchor import Anchor


class Store(Reading):
    """A log in a database. One thread at a time is let in; `Journal` lets many share a transaction."""

    def append(self, drafts: Sequence[Draft]) -> list[Entry | Conflict]:
        """Write what can be written, in order and in one transaction; on disk when this returns."""
        return [answer for answers in self.append_groups([[draft] for draft in drafts]) for answer in answers]

    def append_groups(self, groups: Sequence[Sequence[Draft]]) -> list[list[Entry | Conflict]]:
        """The same for drafts that belong together: of a group all are written, or none is."""
        with self.lock:
            return self.gone_through(self.appending(groups))

    def gone_through(self, steps: Steps[T]) -> T:
        """What steps come to, standing still wherever they wait."""
        while True:
            try:
                what = next(steps)
            except StopIteration as done:
                return done.value
            try:
                self.connection.wait(what)
            except Exception as error:
                steps.throw(error)

    def appending(self, groups: Sequence[Sequence[Draft]]) -> Steps[list[list[Entry | Conflict]]]:
        """The same in steps, for who has something else to do where they wait; nothing else may be asked meanwhile."""
        if not any(groups):
            return [[] for _ in groups]
        try:
            begun = yield from self.connection.begin_batch(*places(groups))
            batch = Batch(*begun, sum(map(len, groups)))
            answers = [batch.take_all(drafts) for drafts in groups]
            yield from self.connection.commit_batch(batch.news())
        except BaseException:
            self.connection.rollback()
            raise
        return answers

    def remove(self, tenant: str, *, key: bytes, conversation: str | None = None, before: float | None = None) -> int:
        """Empty the entries of a conversation, or of every one that ended before a time; returns their number.

        The chain still verifies, and gains one entry, signed with `key`, which says what was emptied.
        """
        with self.lock:
            with self._writing() as cursor:
                removed = remove(cursor, tenant, key, conversation, before)
            self.connection.wipe()
            return removed

    def fold(self, tenant: str, *, key: bytes, before: float, anchors: "Iterable[Anchor]") -> Fold:
        """Delete the entries before a time that removals have emptied, up to the last anchored one.

        The chain still verifies, from there on; a signed entry keeps the hash there. Verify the log first.
        """
        noted = {each.number: each.link for each in anchors if each.tenant == tenant}
        with self.lock, self._writing() as cursor:
            return fold(cursor, tenant, key, before, noted)

    @contextmanager
    def _writing(self) -> Generator[Cursor]:
        """One transaction, written as a whole or not at all."""
        cursor = self.connection.begin(writing=True)
        try:
            yield cursor
            self.connection.commit()
        except BaseException:
            self.connection.rollback()
            raise


def open_store(where: str) -> Store:
    """The log at a path, or at `postgresql://...`; made where there is none."""
    if where.startswith(("postgresql://", "postgres://")):
        from bylaw.record.postgres import PostgresConnection

        return Store(PostgresConnection(where))
    from bylaw.record.sqlite import SqliteConnection

    return Store(SqliteConnection(where))
