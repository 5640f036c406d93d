"""Runs `bylaw` for tests: in this process, which takes milliseconds, or in one of its own.

    ran = bylaw(folder, "audit", "logs.jsonl", "--pack", "clinic")
    assert (ran.returncode, ran.stderr) == (0, "")

Use `bylaw`, or `typed` for a whole command line, unless the test is about signals, pipes or the installed command; such
tests use `bylaw_process` or `shell` and carry the mark `process`.
"""

import atexit
import contextlib
import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from functools import cache
from pathlib import Path
from unittest import mock

from bylaw.cli import main
from tests.ready import PROCESS, begin

Ran = subprocess.CompletedProcess[str]
BIN = str(Path(sys.executable).parent)
_PLAIN = {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}
_LOUD = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "CLICOLOR_FORCE")


def bylaw(folder: Path, *arguments: str | Path, stdin: bytes = b"") -> Ran:
    """Run `bylaw` in `folder` by the function that the installed command calls."""
    out, err, _, status = _run_here(folder, [str(each) for each in arguments], stdin)
    return Ran(["bylaw", *map(str, arguments)], status, out, err)


def bylaw_process(folder: Path, *arguments: str | Path, from_nothing: bool = False) -> Ran:
    """Run `bylaw` in `folder` as a process of its own; `from_nothing` as the installed command does."""
    command = [*(PROCESS if from_nothing else begin("bylaw")), *map(str, arguments)]
    return subprocess.run(
        command, cwd=folder, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def typed(line: str, folder: Path) -> Ran:
    """Run a command line as a reader would type it, in this process as far as no shell is needed; errors are output
    too. Variables may be set in front of it, and what it prints may go into a pipe."""
    command, _, pipe = line.partition(" | ")
    variables, words = re.fullmatch(r"((?:[A-Z_]+=(?:\w+|\"[^\"]*\") )*)(.*)", command, re.DOTALL).groups()  # type: ignore[union-attr]
    if not words.startswith("bylaw ") or re.search(r"[|<>;&$`*?~(){}\\]", command):
        return shell(line, folder)
    given = dict(each.split("=", 1) for each in shlex.split(variables))
    with mock.patch.dict(os.environ, given):
        _, _, shown, status = _run_here(folder, shlex.split(words)[1:], b"")
    return shell(pipe, folder, stdin=shown) if pipe else Ran(line, status, shown, "")


def shell(line: str, folder: Path, stdin: str = "", *, from_nothing: bool = False) -> Ran:
    """Run a command line by bash, with a `bylaw` that begins quickly first on the path, or with the installed one;
    errors are output too."""
    path = os.pathsep.join([*([] if from_nothing else [str(quick_bylaw())]), BIN, os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env={**environment(), "PATH": path},
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@cache
def quick_bylaw() -> Path:
    """A folder for the path, with a `bylaw` in it."""
    folder = Path(tempfile.mkdtemp(prefix="bylaw-path-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "bylaw").write_text(f'#!/bin/sh\nexec {shlex.join(begin("bylaw"))} "$@"\n')
    (folder / "bylaw").chmod(0o755)
    return folder


def environment() -> dict[str, str]:
    """This process's variables, for a terminal that is always the same."""
    return {name: value for name, value in os.environ.items() if name not in _LOUD} | _PLAIN


def _run_here(folder: Path, arguments: list[str], stdin: bytes) -> tuple[str, str, str, int]:
    """Output, errors, both in the order of a terminal, and the exit status."""
    shown = io.BytesIO()
    out, err = _Output(shown), _Output(shown)
    status = 0
    with _as_command(folder, arguments, stdin, out, err):
        try:
            main()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return out.text(), err.text(), shown.getvalue().decode(), status


class _Output(io.TextIOWrapper):
    """A stream that is no terminal; its bytes are kept, and written to `shown` as well."""

    def __init__(self, shown: io.BytesIO) -> None:
        self._kept = io.BytesIO()
        super().__init__(_Both(self._kept, shown), encoding="utf-8", write_through=True)

    def text(self) -> str:
        return self._kept.getvalue().decode()


class _Both(io.BytesIO):
    def __init__(self, *streams: io.BytesIO) -> None:
        super().__init__()
        self._streams = streams

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        for stream in self._streams:
            stream.write(data)
        return len(data)


@contextlib.contextmanager
def _as_command(folder: Path, arguments: list[str], stdin: bytes, out: _Output, err: _Output) -> Generator[None]:
    """What a new process has of its own, put in place and put back: folder, arguments, variables, streams, Ctrl-C."""
    interrupted = signal.getsignal(signal.SIGINT)
    with (
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, environment(), clear=True),
        mock.patch.object(sys, "argv", ["bylaw", *arguments]),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, interrupted)
