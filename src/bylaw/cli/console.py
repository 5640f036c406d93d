"""The console of every command: as wide as the terminal, 80 columns in a pipe, and there no blanks at line ends."""

import sys
import textwrap
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TextIO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from bylaw.cli.screen import Screen, bare
from bylaw.text.visible import visible


def open_console() -> Console:
    """A console on what stdout is now."""
    if sys.stdout.isatty():
        return _Visible(highlight=False, emoji=False, file=bare(sys.stdout))
    return Console(highlight=False, emoji=False, width=80, file=cast(TextIO, _Trimmed(sys.stdout)))


def wide_console() -> Console:
    """One for wide tables, also where no terminal shows them."""
    return Console(width=None if Console().is_terminal else 140)


def print_figures(title: str, columns: Iterable[str], rows: Iterable[Sequence[str]]) -> None:
    """A wide table: names on the left, figures under their columns."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    for column in columns:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*row)
    console = wide_console()
    console.print(table)
    console.print()


def local_time(moment: float) -> str:
    """A time by the user's clock."""
    return datetime.fromtimestamp(moment).isoformat(" ", "minutes")


def counted(number: int, noun: str) -> str:
    """`1 call`, `3 calls`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def wrapped(console: Console, text: str, head: str = "", hang: int | None = None) -> list[str]:
    """Lines of a text that fit the console, after `head`; later lines are indented by `hang`, or as far as the head."""
    rest = " " * (len(head) if hang is None else hang)
    room, lines = max(console.width - 1, len(rest) + 20), list[str]()
    for part in text.split("\n"):
        start = rest if lines else head
        lines += textwrap.wrap(part, room, initial_indent=start, subsequent_indent=rest, break_on_hyphens=False)
    return lines or [head]


def say(console: Console, text: str, head: str = "", style: str = "", hang: int | None = None) -> None:
    """Print a text wrapped to the console; what a log or a pack wrote is never read as markup."""
    for line in wrapped(console, text, head, hang):
        console.print(Text(line, style=style), soft_wrap=True)


class _Visible(Console):
    """Makes visible what it is given to print, before it adds colours of its own."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for each in super().render(renderable, options):
            plain = each.control or each.text.isprintable() or each.text == "\n"
            yield each if plain else Segment(visible(each.text), each.style)


class _Trimmed(Screen):
    """Writes on without the blanks that rich fills lines up with; a print comes in whole lines."""

    def write(self, text: str, /) -> int:
        self.bare.write("\n".join(line.rstrip(" ") for line in visible(text).split("\n")))
        return len(text)
