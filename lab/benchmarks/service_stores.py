"""Creates a new log for one measurement of the service, in SQLite or PostgreSQL, and describes its
durability settings.
"""

import argparse
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from postgres_server import server, settings

from bylaw.record.sqlite import SETTINGS

KINDS = ("sqlite", "postgres")


@contextmanager
def new_log(kind: str) -> Generator[str]:
    """Yield the address of a log that exists until the end of the `with` block."""
    if kind == "postgres":
        with server() as address:
            yield address
    else:
        with TemporaryDirectory(prefix="bylaw-log-") as folder:
            yield str(Path(folder) / "decisions.db")


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """Add the options that all measurements of the service share: the log and the number of workers."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--store", choices=KINDS, default="sqlite")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--services", type=int, default=1, help="so many, each with so many workers, on one log")
    return parser


def is_server(store: str) -> bool:
    return "://" in store


def described(store: str) -> str:
    if is_server(store):
        return f"log: PostgreSQL ({settings(store)})"
    return f"log: SQLite ({', '.join(f'{name}={value}' for name, value in SETTINGS.items())})"


def cpu_of(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
