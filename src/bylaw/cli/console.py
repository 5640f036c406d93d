"""The console of every command: as wide as the terminal, 80 columns in a pipe, and there no blanks at line ends."""

import io
import sys
from typing import TextIO, cast

from rich.console import Console

from bylaw.cli.visible import visible


def open_console() -> Console:
    """A console on what stdout is now."""
    if sys.stdout.isatty():
        return Console(highlight=False, emoji=False)
    return Console(highlight=False, emoji=False, width=80, file=cast(TextIO, _Trimmed(sys.stdout)))


class _Trimmed(io.TextIOBase):
    """Writes on without the blanks that rich fills lines up with; a print comes in whole lines."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._file.encoding

    def write(self, text: str, /) -> int:
        self._file.write("\n".join(line.rstrip(" ") for line in visible(text).split("\n")))
        return len(text)

    def flush(self) -> None:
        self._file.flush()
