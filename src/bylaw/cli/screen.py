"""Escapes control characters in everything that is printed to a terminal, except Bylaw's own colours.

Names, notes and arguments come from agents, users and third-party packs. Commands escape them as well; this catches
what a command forgets.
"""

import io
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from bylaw.text.visible import visible


class Screen(io.TextIOBase):
    """A terminal that shows control characters and text-direction marks as escapes."""

    def __init__(self, file: TextIO) -> None:
        self.bare = file
        """The unfiltered terminal, for a console that escapes text before it adds colours."""

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.bare.encoding

    @property
    def errors(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.bare.errors

    @property
    def buffer(self) -> Any:
        """The unfiltered byte stream, for exports."""
        return self.bare.buffer

    def write(self, text: str, /) -> int:
        self.bare.write("\t".join(map(visible, text.split("\t"))))
        return len(text)

    def flush(self) -> None:
        self.bare.flush()

    def isatty(self) -> bool:
        return self.bare.isatty()

    def fileno(self) -> int:
        return self.bare.fileno()

    def writable(self) -> bool:
        return True


def bare(file: Any) -> TextIO:
    """The file behind a screen, or the file itself."""
    return file.bare if isinstance(file, Screen) else file


@contextmanager
def on_screen() -> Generator[None]:
    """Filter standard output and standard error, if they are terminals."""
    before = (sys.stdout, sys.stderr)
    sys.stdout, sys.stderr = (
        cast(TextIO, Screen(each)) if each is not None and each.isatty() else each  # pyright: ignore[reportUnnecessaryComparison]
        for each in before
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
