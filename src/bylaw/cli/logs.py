"""The arguments with which a command receives logs: files, folders, patterns, URLs or a pipe."""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from glob import glob
from pathlib import Path
from typing import Annotated, Any, TypeVar

import click
from msgspec import Struct
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

from bylaw.cli.console import bare
from bylaw.errors import BylawError, FormatError, UsageError
from bylaw.text.visible import visible
from bylaw.trace import Identities, Trajectory, read
from bylaw.trace.source import LogFile, RemoteFile, find_remote, log_file


class LogArgument(click.ParamType[LogFile]):
    """A file or a URL. A URL must not become a path object, which would change it."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> LogFile:
        return log_file(value)


GivenLogs = Annotated[
    tuple[LogFile, ...],
    "LOGS...",
    LogArgument(),
    "Recorded conversations: files, folders, patterns (`day-*.jsonl`), URLs (s3://...) or - for standard input.",
]
_PLAIN = (".json", ".jsonl", ".ndjson")
_SUFFIXES = (
    *_PLAIN,
    *(f"{each}{packed}" for each in _PLAIN for packed in (".gz", ".bz2", ".zst")),
    ".eval",
    ".parquet",
)
_STDIN = ("-", "/dev/stdin", "/dev/fd/0")


class Logs(Struct):
    """Log files that can be read more than once."""

    files: tuple[LogFile, ...]
    found: frozenset[LogFile]
    """Files that were found in a folder. The user did not name them individually."""
    kept: str = ""
    """A temporary folder for data that was read from pipes."""
    faults: list[BylawError] = []
    """The errors of conversations that `readable` could not read until now."""

    def named(self, text: str) -> str:
        """Remove the path of the temporary folder from a message."""
        return text.replace(f"{self.kept}/", "") if self.kept else text

    def trajectories(self, *, agent: str | None = None) -> Iterator[Trajectory | BylawError]:
        """Yield the conversations with unique ids, and an error for each unreadable one."""
        return (each for _, each in self.placed(agent=agent))

    def readable(self) -> Iterator[Trajectory]:
        """Yield the readable conversations. Call `report_faults` after reading to print the errors."""
        for each in self.trajectories():
            if isinstance(each, Trajectory):
                yield each
            else:
                self.faults.append(each)

    def report_faults(self) -> int:
        """Print the errors that `readable` found, and return the exit status."""
        for fault in self.faults:
            print(visible(self.named(f"bylaw: {fault.code} {fault}")), file=sys.stderr)
        return 3 if self.faults else 0

    def placed(self, *, agent: str | None = None) -> Iterator[tuple[LogFile, Trajectory | BylawError]]:
        """Yield the conversations and errors, each with its file."""
        identities = Identities()
        for file in self.files:
            try:
                for each in read(file, agent=agent):
                    yield file, identities.own(each) if isinstance(each, Trajectory) else each
            except FormatError as error:
                # A folder may also contain files that are not logs, but a file that the user names must be a log.
                if file not in self.found:
                    raise
                yield file, error


@contextmanager
def open_logs(given: Sequence[LogFile], *, without: Path | None = None) -> Generator[Logs]:
    """Open each log once, but no files inside `without`. Data from pipes is first copied to files."""
    files: list[LogFile] = []
    found: set[LogFile] = set()
    kept = ""
    with ExitStack() as stack:
        for path in given:
            if isinstance(path, RemoteFile):
                remote = find_remote(path.url, _SUFFIXES)
                if not remote:
                    raise UsageError("no logs found", place=path.url)
                files += remote
                found.update(each for each in remote if each != path)
                continue
            if str(path) not in _STDIN and not path.exists():
                matched = _matched(path)
                if not matched:
                    raise UsageError("no such file or folder", place=str(path), hint=_meant(path))
                files += matched
                continue
            if path.is_dir():
                inside = log_files(path)
                if without is not None:
                    inside = [file for file in inside if without.resolve() not in file.resolve().parents]
                if not inside:
                    raise UsageError("no logs in this folder", place=str(path), hint="name the files")
                files += inside
                found.update(inside)
            elif _is_pipe(path):
                kept = kept or stack.enter_context(tempfile.TemporaryDirectory(prefix="bylaw-"))
                files.append(_copied(path, Path(kept), len(files)))
            else:
                files.append(path)
        # If several paths refer to one file, use only the first path.
        each = dict[LogFile, LogFile]()
        for file in files:
            each.setdefault(file.resolve() if isinstance(file, Path) else file, file)
        yield Logs(tuple(each.values()), frozenset(found), kept)


def trajectories(given: Sequence[LogFile], *, agent: str | None = None) -> Iterator[Trajectory | BylawError]:
    with open_logs(given) as opened:
        yield from opened.trajectories(agent=agent)


def _meant(path: Path) -> str:
    import difflib

    beside = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
    close = difflib.get_close_matches(path.name, sorted(beside), 1, cutoff=0.8)
    return f"did you mean `{path.with_name(close[0])}`?" if close else "pass files or folders of recorded conversations"


def _matched(pattern: Path) -> list[Path]:
    """Return the files that match a pattern, sorted. This is needed because some shells do not expand patterns."""
    if not any(mark in str(pattern) for mark in "*?["):
        return []
    return sorted(path for each in glob(str(pattern), recursive=True) if (path := Path(each)).is_file())


def log_files(folder: Path) -> list[Path]:
    """Return the files in a folder that may be logs, sorted. Raise UsageError if a subfolder cannot be read."""

    def shut(error: OSError) -> None:
        why = (error.strerror or str(error)).lower()
        raise UsageError(
            f"cannot read: {why}", place=str(error.filename), hint="make it readable, so that its logs are not skipped"
        )

    inside = (Path(place, name) for place, _, names in os.walk(folder, onerror=shut) for name in names)
    return sorted(path for path in inside if path.name.lower().endswith(_SUFFIXES) and path.is_file())


T = TypeVar("T")


@contextmanager
def progress_bar() -> Generator[Callable[[int], None]]:
    """On a terminal, show how many conversations have been read.

    Call the returned function with the index of each conversation.
    """
    console = Console(file=bare(sys.stderr))
    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} conversations"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task("", total=None)
        yield lambda number: shown.update(task, completed=number + 1)


def with_progress(items: Iterable[T]) -> Iterator[T]:
    """Yield the items. On a terminal, show how many items have been yielded."""
    with progress_bar() as show:
        for number, item in enumerate(items):
            show(number)
            yield item


def _is_pipe(path: Path) -> bool:
    """Whether a path can be read only once, or only by this process.

    If so, it is copied, because it must be read twice.
    """
    return str(path) in _STDIN or str(path).startswith(("/dev/", "/proc/")) or not stat.S_ISREG(path.stat().st_mode)


def _copied(path: Path, folder: Path, number: int) -> Path:
    if str(path) in _STDIN:
        if sys.stdin is None or sys.stdin.isatty():
            raise UsageError("nothing is piped into standard input", place=str(path), hint="pass a file")
        target = folder / "stdin"
        with target.open("wb") as out:
            shutil.copyfileobj(sys.stdin.buffer, out)
        return target
    mode = path.stat().st_mode
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise UsageError("neither a file nor a pipe", place=str(path), hint="pass a file")
    name = path.name if not path.name.isdigit() else "pipe"
    target = folder / (name if not (folder / name).exists() else f"{name}-{number}")
    with path.open("rb") as source, target.open("wb") as out:
        shutil.copyfileobj(source, out)
    return target
