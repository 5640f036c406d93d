"""What is printed to a terminal, whoever wrote it: only Bylaw's own colours and cursor moves reach it as such.

Names, notes and arguments come from agents, their users and foreign packs. Some commands make them visible themselves;
this stands behind all of them, so that one that forgets to is no hole.
"""

import io
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from bylaw.text.visible import visible


class Screen(io.TextIOBase):
    """A terminal that prints what moves its cursor, or turns text round, as characters."""

    def __init__(self, file: TextIO) -> None:
        self.bare = file
        """For a console whose own text is made visible before it adds colours."""

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.bare.encoding

    @property
    def errors(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.bare.errors

    @property
    def buffer(self) -> Any:
        """For what is written as bytes, such as an export: whoever sends that to a terminal wants it as it is."""
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
    """Put a screen before standard output and error, where they are terminals."""
    before = (sys.stdout, sys.stderr)
    sys.stdout, sys.stderr = (
        cast(TextIO, Screen(each)) if each is not None and each.isatty() else each  # pyright: ignore[reportUnnecessaryComparison]
        for each in before
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
