"""Prints wide tables of benchmark results."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table


def wide_console() -> Console:
    return Console(width=None if Console().is_terminal else 140)


def print_figures(title: str, columns: Iterable[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table with names on the left and aligned figures."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    for column in columns:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*row)
    console = wide_console()
    console.print(table)
    console.print()
