"""The command `bylaw sql` queries the tables of an audit."""

import csv
import json
import sys
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any

import click
from rich import box
from rich.table import Table

from bylaw.audit.batch.query import Tables, ready_queries
from bylaw.cli.command import Folder, command
from bylaw.cli.console import open_console, say
from bylaw.errors import UsageError
from bylaw.text.visible import visible

_WIDE = 500
"""The width of a table outside a terminal. It is large, so that names are not wrapped and can be searched for."""
_SHOWN = 200


@command("sql")
def sql_command(
    out: Annotated[Path | None, "Output folder of an audit."] = None,
    query: Annotated[str | None, "SQL, or the name of a built-in query."] = None,
    *,
    listed: Annotated[bool, "--list", "List the built-in queries; with a name, print its SQL."] = False,
    base: Annotated[Folder, "An earlier audit; its tables are base.calls and so on."] = None,
    to: Annotated[str, click.Choice(("table", "csv", "jsonl")), "How to print the rows."] = "table",
) -> int:
    """Query audit tables.

    The tables are conversations, calls, findings, open_questions and missing_facts.
    """
    ready = ready_queries()
    if listed:
        console = open_console()
        name = query or (str(out) if out is not None else "")
        if name in ready:
            print(ready[name].text.rstrip())
            return 0
        for each in ready.values():
            say(console, each.about, f"{each.name:22} ")
        return 0
    if out is None or not query:
        raise UsageError("pass the folder of an audit and a query", hint="`bylaw sql --list` shows built-in queries")
    found = ready.get(query)
    if found is None and not any(mark in query for mark in " \n;("):
        raise UsageError(f"no built-in query `{query}`", hint=f"known: {', '.join(ready)}")
    if found is not None and found.needs_base and base is None:
        raise UsageError(f"`{query}` compares two audits", hint="pass the folder of the earlier audit with --base")
    names, rows = Tables(out, base=base).query(found.text if found is not None else query)
    _print(names, rows, to)
    return 0


def _print(names: list[str], rows: list[tuple[Any, ...]], to: str) -> None:
    match to:
        case "csv":
            out = csv.writer(sys.stdout, lineterminator="\n")
            out.writerow(names)
            out.writerows([_text(value) for value in row] for row in rows)
        case "jsonl":
            for row in rows:
                print(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=str))
        case _:
            table = Table(box=box.SIMPLE_HEAD)
            for at, name in enumerate(names):
                is_number = bool(rows) and all(isinstance(row[at], int | float | None) for row in rows)
                table.add_column(name, justify="right" if is_number else "left", overflow="fold")
            for row in rows[:_SHOWN]:
                table.add_row(*(visible(_text(value)) for value in row))
            console = open_console()
            if not console.is_terminal:
                console.width = _WIDE
            console.print(table, markup=False)
            if len(rows) > _SHOWN:
                console.print(
                    f"the first {_SHOWN} of {len(rows):,} rows; --to csv prints all of them", style="dim", markup=False
                )


def _text(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list():
            return ", ".join(map(_text, value))  # pyright: ignore[reportUnknownArgumentType]
        case dict():
            return json.dumps(value, ensure_ascii=False, default=str)
        case datetime() | date():
            return value.isoformat()
        case _:
            return str(value)
