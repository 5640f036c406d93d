"""Processes of `bylaw` and of scripts, forked from one that has imported what they need.

A process that begins from nothing spends half a second on imports, two with those of MCP, and the tests start some two
hundred. So a test starts a small program instead (`ready_client.py`), which gives its pipes and arguments to this one;
a fork of it then runs what was asked for, as a process of its own, with the pipes, folder, variables and signals of
the small one. `tests/cli/test_process.py` and `tests/deploy` hold the command that begins from nothing to the same.
"""

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

PROCESS = (sys.executable, "-c", "from bylaw.cli import main; main()")
"""What the installed command does."""
CLIENT = Path(__file__).with_name("ready_client.py")
ROOT = Path(__file__).parents[1]
HERE = hasattr(os, "fork") and hasattr(socket, "send_fds")
IMPORTED = (
    "bylaw.cli.app", "bylaw.cli.audit", "bylaw.cli.check", "bylaw.cli.scan", "bylaw.cli.explain", "bylaw.cli.report",
    "bylaw.cli.log", "bylaw.cli.init", "bylaw.cli.backtest", "bylaw.audit.batch.update", "bylaw.audit.batch.run",
    "bylaw.shield", "bylaw.record.sqlite", "rich.table", "rich.traceback",
)  # fmt: skip
SERVICE = ("bylaw.service.run", "bylaw.console.pages", "uvicorn.protocols.http.auto", "uvicorn.lifespan.on")


def begin(what: str | Path, imported: tuple[str, ...] = (*IMPORTED, *SERVICE)) -> list[str]:
    """The command before the arguments of `bylaw`, of a script, or of `-c`."""
    if HERE:
        return [*_started(imported), str(what)]
    return [*PROCESS] if what == "bylaw" else [sys.executable, str(what)]


@cache
def _started(imported: tuple[str, ...]) -> list[str]:
    """The command before `bylaw ARGUMENT...` or `SCRIPT ARGUMENT...`."""
    folder = tempfile.TemporaryDirectory(prefix="bylaw-ready-")
    place = str(Path(folder.name) / "socket")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.ready", place, *imported], cwd=ROOT, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"

    def end() -> None:
        process.communicate(timeout=120)
        folder.cleanup()

    atexit.register(end)
    return [sys.executable, "-I", "-S", str(CLIENT), place]


def serve(place: str) -> None:
    """Fork for each that asks, until the tests are over."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(place)
        server.listen(64)
        print("ready", flush=True)
        signal.signal(signal.SIGCHLD, reap)
        # Our own input ends with the tests, however they end.
        while server in select.select([server, 0], [], [])[0]:
            asking, _ = server.accept()
            if os.fork() == 0:
                server.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                run(asking)
                return
            asking.close()


def reap(*_: object) -> None:
    """Take note of forks that have ended: their processor time counts as ours."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def run(asking: socket.socket) -> None:
    """Be the process that was asked for, until its end."""
    data, pipes, _, _ = socket.recv_fds(asking, 1 << 20, 3)
    while not data.endswith(b"\n"):
        data += asking.recv(1 << 20)
    for place, pipe in enumerate(pipes):
        os.dup2(pipe, place)
        os.close(pipe)
    told = json.loads(data)
    os.chdir(told["folder"])
    os.environ.clear()
    os.environ.update(told["variables"])
    threading.Thread(target=obey, args=(asking,), daemon=True).start()
    what, *arguments = told["arguments"]
    status: object = 0
    try:
        if what == "bylaw":
            from bylaw.cli import main

            sys.argv = ["bylaw", *arguments]
            main()
        elif what == "-c":
            code, *arguments = arguments
            sys.argv = [what, *arguments]
            exec(code, {"__name__": "__main__"})
        else:
            sys.argv = [what, *arguments]
            runpy.run_path(what, run_name="__main__")
    except SystemExit as end:
        status = end.code
    number = status if isinstance(status, int) else 0 if status is None else 1
    asking.send(bytes([number]))
    leave(number)


def leave(status: int) -> None:
    """End as an interpreter does, but for taking apart all that was imported, which takes longer than most tests."""
    for each in (threading.__dict__["_shutdown"], atexit.__dict__["_run_exitfuncs"]):
        each()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(status)


def obey(asking: socket.socket) -> None:
    """Pass on the signals that the small program gets; end where it was killed."""
    while got := asking.recv(1):
        os.kill(os.getpid(), got[0])
    os._exit(137)


if __name__ == "__main__":
    for name in sys.argv[2:]:
        import_module(name)
    gc.collect()
    gc.freeze()
    serve(sys.argv[1])
