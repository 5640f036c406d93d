"""A PostgreSQL server of our own for a measurement: its data in a new folder, reached over a socket in it.

`POSTGRES_BIN` names the folder of `initdb` and `pg_ctl`; by default the newest of Debian's packages.
"""

import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

SETTINGS = ("fsync", "synchronous_commit", "full_page_writes", "wal_sync_method")


@contextmanager
def server() -> Generator[str]:
    """The address of a server that runs until the end of the `with`, with the settings it comes with."""
    folder = Path(mkdtemp(prefix="bylaw-postgres-"))
    data = folder / "data"
    if os.geteuid() == 0:
        # The server does not run as root; Debian's package brings a user for it.
        shutil.chown(folder, "postgres", "postgres")
    try:
        _run("initdb", "-D", data, "-A", "trust", "-U", "bylaw")
        address = f"postgresql://bylaw@/postgres?host={folder}"
        start(address)
        try:
            yield address
        finally:
            _run("pg_ctl", "-D", data, "-m", "fast", "-w", "stop")
    finally:
        shutil.rmtree(folder)


def start(address: str) -> None:
    """Start a server of ours, for the first time or after `crash`."""
    folder = _home(address)
    where = f"-c listen_addresses= -c unix_socket_directories={folder}"
    _run("pg_ctl", "-D", folder / "data", "-o", where, "-l", folder / "log", "-w", "start")


def crash(address: str) -> None:
    """Kill all processes of a server of ours at one moment: what it has not written yet is lost."""
    first, *children = _processes(address)
    # Stopped, the first cannot start again what falls, nor tell the others.
    for pid, how in ((first, signal.SIGSTOP), *((pid, signal.SIGKILL) for pid in (*children, first))):
        with suppress(ProcessLookupError):
            os.kill(pid, how)
    while any(_is_alive(pid) for pid in (first, *children)):
        time.sleep(0.01)
    # One that is dead and was not waited for would be taken for a server that runs.
    for left in (_home(address) / "data" / "postmaster.pid", *_home(address).glob(".s.PGSQL.*")):
        left.unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def _home(address: str) -> Path:
    """The folder of a server of ours."""
    return Path(address.partition("host=")[2])


def _processes(address: str) -> list[int]:
    """All processes of a server of ours, the one that started the others first."""
    first = int((_home(address) / "data" / "postmaster.pid").read_text().split()[0])
    return [first, *map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split())]


def settings(address: str) -> str:
    """What makes a commit durable there."""
    import psycopg

    with psycopg.connect(address) as connection:
        shown = [(name, connection.execute(f"SHOW {name}").fetchone()) for name in (*SETTINGS, "server_version")]
    return ", ".join(f"{name}={row[0]}" for name, row in shown if row)


def syncs(address: str) -> int:
    """Syncs of the server's own log so far."""
    import psycopg

    with psycopg.connect(address) as connection:
        row = connection.execute("SELECT wal_sync FROM pg_stat_wal").fetchone()
    assert row is not None
    return row[0]


def server_cpu(address: str) -> float:
    """Seconds of CPU that all processes of a server of ours have used."""
    used = 0.0
    for pid in _processes(address):
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


def _run(program: str, *arguments: str | Path) -> None:
    options = {}
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        options = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    done = subprocess.run([_folder() / program, *arguments], stdout=subprocess.DEVNULL, check=False, cwd="/", **options)
    if done.returncode:
        raise RuntimeError(f"{program} failed: {done.returncode}")


def _folder() -> Path:
    if given := os.environ.get("POSTGRES_BIN"):
        return Path(given)
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if not found:
        raise SystemExit("no PostgreSQL server here: install Debian's `postgresql`, or set POSTGRES_BIN")
    return found[-1]
