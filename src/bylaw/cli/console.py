"""The console to which all commands print.

It is as wide as the terminal, or 80 columns wide in a pipe. Names, notes and arguments come from agents, users and
other people's packs, so control characters that a command did not escape are escaped here.
"""

import sys
import textwrap
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple, TextIO, cast

import msgspec
from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from bylaw.text.number import counted as counted
from bylaw.text.visible import visible, visible_json


class Screen:
    """A terminal stream that escapes control characters and text-direction marks."""

    def __init__(self, file: TextIO) -> None:
        self.bare = file
        """The terminal itself, for a console that escapes the text before it adds colours."""

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the terminal.

        For example, `buffer` is the byte stream for exports, which is not escaped.
        """
        return getattr(self.bare, name)

    def write(self, text: str, /) -> int:
        self.bare.write("\t".join(map(visible, text.split("\t"))))
        return len(text)

    def writelines(self, lines: Iterable[str], /) -> None:
        self.write("".join(lines))


def bare(file: Any) -> TextIO:
    """Return the file that a screen writes to. Return any other file unchanged."""
    return file.bare if isinstance(file, Screen) else file


@contextmanager
def on_screen() -> Generator[None]:
    """Escape control characters in standard output and standard error, if these go to a terminal."""
    before = (sys.stdout, sys.stderr)
    sys.stdout, sys.stderr = (
        cast(TextIO, Screen(each)) if each is not None and each.isatty() else each  # pyright: ignore[reportUnnecessaryComparison]
        for each in before
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


SCREEN = 24
"""The number of lines of a terminal, by default."""


def open_console() -> Console:
    if sys.stdout.isatty():
        return _Visible(highlight=False, emoji=False, file=bare(sys.stdout))
    return Console(highlight=False, emoji=False, width=80, file=cast(TextIO, _Trimmed(sys.stdout)))


def titled_table(title: str, texts: Sequence[str], numbers: Sequence[str], rows: Iterable[Sequence[str]]) -> Group:
    """Return a table that has text in the first columns, and right-aligned numbers in the remaining columns."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in texts:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True, vertical="bottom")
    for cells in rows:
        table.add_row(*map(Text, cells))
    # Print the title separately, because rich would wrap it to the width of the table.
    return Group(Text(title, style="bold"), table)


def print_json(value: Any) -> None:
    r"""Print a value as indented JSON, with `\u` escapes for unprintable characters."""
    data = msgspec.to_builtins(value, enc_hook=str)
    print(visible_json(data, indent=2))


def local_time(moment: float) -> str:
    """Format a time in the local time zone."""
    return datetime.fromtimestamp(moment).isoformat(" ", "minutes")


def stranded(count: int) -> str:
    """Return a warning about recent conversations that began with a version of the pack that is not loaded."""
    began = f"{counted(count, 'conversation')} from the last day began"
    return f"{began} under another version of the pack and cannot continue: pass that version with --earlier"


def wrapped(console: Console, text: str, head: str = "", hang: int | None = None) -> list[str]:
    """Return `head` and the text as lines that fit the console.

    All lines but the first are indented by `hang`, or by the width of `head` if `hang` is not given.
    """
    rest = " " * (len(head) if hang is None else hang)
    room, lines = max(console.width - 1, len(rest) + 20), list[str]()
    for part in text.split("\n"):
        start = rest if lines else head
        lines += textwrap.wrap(part, room, initial_indent=start, subsequent_indent=rest, break_on_hyphens=False)
    return lines or [head]


def say(console: Console, text: str, head: str = "", style: str = "", hang: int | None = None) -> None:
    """Print text, wrapped to the width of the console. Markup is printed as it is."""
    for line in wrapped(console, text, head, hang):
        console.print(Text(line, style=style), soft_wrap=True)


class Entry(NamedTuple):
    """One result in a section."""

    text: str
    head: str = "  "
    more: Sequence[str] = ()
    """Further lines, which are indented below the text."""


class Section(NamedTuple):
    """Results of one kind under a title."""

    title: str
    entries: Sequence[Entry]
    style: str = "bold"
    header: str = ""
    """A line to print below the title."""
    next: str = ""
    """The next step to recommend for the first entry."""


def print_sections(console: Console, sections: Sequence[Section], *, room: int | None = None) -> bool:
    """Print sections. If `room` is given, print about this many lines, and return whether any entry was left out."""
    share, is_cut = max(1, (room or 0) // max(1, len(sections))), False
    for section in sections:
        console.print()
        say(console, section.title, style=section.style)
        if section.header:
            say(console, section.header)
        used = 0
        for number, entry in enumerate(section.entries):
            lines = wrapped(console, entry.text, entry.head, hang=len(entry.head) + 2)
            lines += [line for each in entry.more for line in wrapped(console, each, "      ")]
            if room is not None and number and used + len(lines) > share:
                say(console, f"and {len(section.entries) - number:,} more", "  ")
                is_cut = True
                break
            used += len(lines)
            for line in lines:
                console.print(Text(line), soft_wrap=True)
    return is_cut


class _Visible(Console):
    """A console that escapes control characters before it adds its own colours."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for each in super().render(renderable, options):
            plain = each.control or each.text.isprintable() or each.text == "\n"
            yield each if plain else Segment(visible(each.text), each.style)


class _Trimmed(Screen):
    """A file without the spaces that rich adds at the ends of lines. rich always writes whole lines."""

    def write(self, text: str, /) -> int:
        self.bare.write("\n".join(line.rstrip(" ") for line in visible(text).split("\n")))
        return len(text)
