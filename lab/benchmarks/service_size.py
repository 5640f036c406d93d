"""Measures the size of the decision log, before and after its text is removed.

    python lab/benchmarks/service_size.py [--store postgres|sqlite] [--conversations 2000]

Simulated clinic conversations are decided and logged as in the service. PostgreSQL's numbers are those of tables and
indexes after `VACUUM FULL`, and SQLite's those of the file after `VACUUM`.
"""

import sqlite3
import sys
import time
from pathlib import Path

from service_stores import arguments, is_server, new_log
from service_traffic import conversations

from bylaw.record import open_store
from bylaw.record.verify import verify
from bylaw.shield import Shield
from bylaw.trace import Call, Message


def main() -> int:
    parser = arguments(__doc__)
    parser.set_defaults(store="postgres")
    parser.add_argument("--conversations", type=int, default=2000)
    given = parser.parse_args()
    with new_log(given.store) as where:
        decisions = write(where, given.conversations)
        store = open_store(where)
        entries = verify(store, "default").entries
        before = size(where)
        store.remove("default", key=b"the signing key of this benchmark", before=time.time() + 1)
        found = verify(store, "default")
        store.close()
        after = size(where)
    print(f"{given.store}: {given.conversations:,} conversations, {decisions:,} decisions, {entries:,} entries")
    for name, room in (("kept", before), ("removed, chain kept", after)):
        print(f"{name:20} {room / given.conversations:8,.0f} bytes a conversation, {room / decisions:7,.0f} a decision")
    return 1 if found.faults else 0


def write(where: str, count: int) -> int:
    """Decide every call in `count` conversations. Return the number of calls."""
    decided = 0
    recorded = conversations()
    with Shield("clinic", log=where) as shield:
        for number in range(count):
            trajectory = recorded[number % len(recorded)]
            with shield.session(f"{trajectory.id}-{number}") as session:
                for step, event in enumerate(trajectory.events):
                    if isinstance(event, Message):
                        (session.user if event.by == "user" else session.agent)(event.text)
                    elif isinstance(event, Call):
                        session.decide(event.tool, event.arguments, id=f"k{step}")
                        decided += 1
                    elif event.call is not None:
                        session.result(event.value(), id=f"k{event.call}", error=event.error)
    return decided


def size(where: str) -> int:
    """Return the size in bytes, without free space."""
    if not is_server(where):
        with sqlite3.connect(where) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return Path(where).stat().st_size
    import psycopg

    tables = ("entries", "conversations", "heads", "approvals")
    with psycopg.connect(where, autocommit=True) as connection:
        for table in tables:
            connection.execute(f"VACUUM FULL {table}")
        listed = " + ".join(f"pg_total_relation_size('{table}')" for table in tables)
        row = connection.execute(f"SELECT {listed}").fetchone()
    assert row is not None
    return int(row[0])


if __name__ == "__main__":
    sys.exit(main())
