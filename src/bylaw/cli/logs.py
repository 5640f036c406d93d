"""The logs that a command was given: files, folders of them, or what comes through a pipe."""

import shutil
import stat
import sys
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click
from msgspec import Struct

from bylaw.errors import BylawError, FormatError, UsageError
from bylaw.trace import Identities, Trajectory, read

logs_argument = click.argument(
    "logs",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    metavar="LOGS...",
    help="Files or folders of recorded conversations; - is standard input.",
)
_SUFFIXES = (".json", ".jsonl", ".ndjson", ".eval", ".json.gz", ".jsonl.gz", ".ndjson.gz")
_STDIN = ("-", "/dev/stdin", "/dev/fd/0")


class Logs(Struct, frozen=True):
    """Log files that can be read, and read again."""

    files: tuple[Path, ...]
    found: frozenset[Path]
    """Those that were found in a folder rather than named."""
    kept: str = ""
    """Where the content of pipes is kept meanwhile."""

    def named(self, text: str) -> str:
        """A message without the place where we keep what came through a pipe."""
        return text.replace(f"{self.kept}/", "") if self.kept else text

    def trajectories(self, *, agent: str | None = None) -> Iterator[Trajectory | BylawError]:
        """The conversations, each under an id of its own, and in its place an error for each that cannot be read."""
        return (each for _, each in self.placed(agent=agent))

    def placed(self, *, agent: str | None = None) -> Iterator[tuple[Path, Trajectory | BylawError]]:
        """The same, each with its file."""
        identities = Identities()
        for file in self.files:
            try:
                for each in read(file, agent=agent):
                    yield file, identities.own(each) if isinstance(each, Trajectory) else each
            except FormatError as error:
                # A folder may hold other things than logs; a file that was named must be one.
                if file not in self.found:
                    raise
                yield file, error


@contextmanager
def open_logs(given: Sequence[Path], *, without: Path | None = None) -> Generator[Logs]:
    """The files that are meant, less those below the folder `without`; pipes are emptied into files first."""
    files: list[Path] = []
    found: set[Path] = set()
    kept = ""
    with ExitStack() as stack:
        for path in given:
            if str(path) not in _STDIN and not path.exists():
                hint = "give files or folders of recorded conversations"
                raise UsageError("no such file or folder", place=str(path), hint=hint)
            if path.is_dir():
                inside = log_files(path)
                if without is not None:
                    inside = [file for file in inside if without.resolve() not in file.resolve().parents]
                if not inside:
                    raise UsageError("no logs in this folder", place=str(path), hint="name the files themselves")
                files += inside
                found.update(inside)
            elif _is_pipe(path):
                kept = kept or stack.enter_context(tempfile.TemporaryDirectory(prefix="bylaw-"))
                files.append(_emptied(path, Path(kept), len(files)))
            else:
                files.append(path)
        yield Logs(tuple(files), frozenset(found), kept)


def trajectories(given: Sequence[Path], *, agent: str | None = None) -> Iterator[Trajectory | BylawError]:
    """The conversations of files and folders, for who needs nothing else of them."""
    with open_logs(given) as opened:
        yield from opened.trajectories(agent=agent)


def log_files(folder: Path) -> list[Path]:
    """The files in a folder that may be logs, by name."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name.lower().endswith(_SUFFIXES))


def _is_pipe(path: Path) -> bool:
    """Whether a path can be read only once, or only by this process: a format is found by looking, then reading."""
    return str(path) in _STDIN or str(path).startswith(("/dev/", "/proc/")) or not stat.S_ISREG(path.stat().st_mode)


def _emptied(path: Path, folder: Path, number: int) -> Path:
    if str(path) in _STDIN:
        if sys.stdin is None or sys.stdin.isatty():
            raise UsageError("nothing is piped into standard input", place=str(path), hint="give a file")
        target = folder / "stdin"
        with target.open("wb") as out:
            shutil.copyfileobj(sys.stdin.buffer, out)
        return target
    mode = path.stat().st_mode
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise UsageError("neither a file nor a pipe", place=str(path), hint="give a file")
    name = path.name if not path.name.isdigit() else "pipe"
    target = folder / (name if not (folder / name).exists() else f"{name}-{number}")
    with path.open("rb") as source, target.open("wb") as out:
        shutil.copyfileobj(source, out)
    return target
