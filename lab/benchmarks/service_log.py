"""The decision log by itself: what a commit costs and how long it takes, as a busy service makes it.

    python lab/benchmarks/service_log.py [--store sqlite|postgres] [--decisions 16] [--commits 300] [--first]

Each commit writes so many decisions of as many conversations, four entries each, two of them with names; a log has 384
conversations, which take turns. CPU is that of this process and, for PostgreSQL, of the server's process for it.

`--first` tells what it costs that a session names the first entry of its conversation (decision 0385): commits with it
and without it take turns in one run, and what is told is the ratio of their CPU.
"""

import argparse
import json
import time

import psycopg
from msgspec.structs import replace
from service_load import percentile, speed
from service_stores import KINDS, cpu_of, is_server, new_log

from bylaw.record import Draft, Store, open_store
from bylaw.record.entry import Entry
from bylaw.record.verify import verify

OPEN = 384
"""Conversations."""
ENTRIES = 4
WARM = 30
"""Commits before it counts."""
PAUSE = 0.003
"""Seconds between two commits, in which a service would decide."""


def batch(turn: int, decisions: int) -> list[list[Draft]]:
    """The drafts of one commit, those of a decision together."""
    found: list[list[Draft]] = []
    for number in range(turn * decisions, (turn + 1) * decisions):
        name, start = f"conversation-{number % OPEN:07d}", number // OPEN * ENTRIES
        names = (f"request:{name}/{number:064x}/{start}", "", "", f"name:{name}/{start}")
        said = [json.dumps({"type": "result", "data": "x" * 150 * (1 + place)}).encode() for place in range(ENTRIES)]
        found.append(
            [Draft("default", name, "event", said[at], names[at], start + at) for at in range(ENTRIES)],
        )
    return found


def server_process(where: str) -> int:
    """The server's process for the one connection that there is."""
    with psycopg.connect(where) as connection:
        row = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        ).fetchone()
    assert row is not None
    return row[0]


def measure(store: Store, where: str, decisions: int, commits: int) -> None:
    batches = [batch(turn, decisions) for turn in range(WARM + commits)]
    for groups in batches[:WARM]:
        store.append_groups(groups)
    pid = server_process(where) if is_server(where) else None
    of_server, own, took = cpu_of(pid) if pid else 0.0, time.process_time(), list[float]()
    for groups in batches[WARM:]:
        started = time.perf_counter()
        with store.connection.turn():
            store.append_groups(groups)
        took.append(time.perf_counter() - started)
        time.sleep(PAUSE)
    used = (time.process_time() - own) / commits
    served = (cpu_of(pid) - of_server) / commits if pid else 0.0
    print(
        f"{commits} commits of {decisions} decisions of {ENTRIES} entries; a million turns of a loop: {speed():.3f} s"
    )
    print(f"  a commit: p50 {percentile(took, 0.5):.1f} ms, p90 {percentile(took, 0.9):.1f} ms, "
          f"p99 {percentile(took, 0.99):.1f} ms, most {max(took) * 1000:.1f} ms")  # fmt: skip
    told = f", of the server {served * 1000:.1f} ms" if pid else ""
    print(f"  CPU a commit: {used * 1000:.1f} ms{told}; a decision: {(used + served) / decisions * 1e6:,.0f} us")


def cost_of_first(store: Store, where: str, decisions: int, commits: int) -> None:
    """The CPU of commits whose drafts name the first entry of their conversation, over that of commits that do not."""
    opened = [
        Draft("default", f"conversation-{each:07d}", "opening", b"{}", f"opening:{each:032x}") for each in range(OPEN)
    ]
    first = {entry.conversation: entry for entry in store.append(opened) if isinstance(entry, Entry)}
    assert len(first) == OPEN
    pid = server_process(where) if is_server(where) else None
    used = {True: list[float](), False: list[float]()}
    for turn in range(WARM + commits):
        # Rounds of all conversations alternate, so that each is as long with as without.
        is_named = (turn * decisions // OPEN) % 2 == 0
        groups = [
            [replace(each, position=(each.position or 0) + 1) for each in group] for group in batch(turn, decisions)
        ]
        if is_named:
            groups = [[replace(group[0], first=first[group[0].conversation]), *group[1:]] for group in groups]
        before = time.process_time() + (cpu_of(pid) if pid else 0.0)
        with store.connection.turn():
            answers = store.append_groups(groups)
        assert all(isinstance(each, Entry) for group in answers for each in group)
        if turn >= WARM:
            used[is_named].append(time.process_time() + (cpu_of(pid) if pid else 0.0) - before)
    named, plain = (sum(used[way]) / len(used[way]) for way in (True, False))
    print(
        f"{len(used[True])} commits with the first entry named, {len(used[False])} without, {decisions} decisions each"
    )
    print(f"  CPU a commit: {named * 1000:.2f} ms and {plain * 1000:.2f} ms; ratio {named / plain:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--store", choices=KINDS, default="sqlite")
    parser.add_argument("--decisions", type=int, default=16)
    parser.add_argument("--commits", type=int, default=300)
    parser.add_argument("--first", action="store_true", help="what naming the first entry costs, as a ratio")
    given = parser.parse_args()
    with new_log(given.store) as where:
        store = open_store(where)
        (cost_of_first if given.first else measure)(store, where, given.decisions, given.commits)
        found = verify(store, "default")
        store.close()
        print(f"  the log: {found.entries:,} entries, {len(found.faults)} faults")


if __name__ == "__main__":
    main()
