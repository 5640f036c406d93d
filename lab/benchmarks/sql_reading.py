"""Tests the SQL reader on statements from the documentation of PostgreSQL, SQLite and MySQL, labelled before the reader
was run.

    uv run python lab/benchmarks/sql_reading.py [--page lab/results/pages/desks.md]

A label is `write` if the statement may change rows, structure, rights, settings, files, locks or another session.
"""

import argparse
import csv
from collections import Counter
from pathlib import Path

from bylaw.reading import Unreadable
from bylaw.reading.sql import read_sql

LABELS = Path(__file__).with_name("labels") / "sql-documented.tsv"
START, END = "<!-- sql -->", "<!-- end of sql -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help="write the table to its section of this page")
    page = parser.parse_args().page
    counted, others = count()
    print(counted, *others, sep="\n")
    if page is not None:
        before, _, rest = page.read_text("utf-8").partition(START)
        _, _, after = rest.partition(END)
        page.write_text(f"{before}{START}\n\n{counted}\n\n{END}{after}", "utf-8")


def count() -> tuple[str, list[str]]:
    """Return a table of labels and readings, and the statements whose reading differs from the label."""
    found: Counter[tuple[str, str, str]] = Counter()
    others: list[str] = []
    with LABELS.open(encoding="utf-8") as file:
        for dialect, label, statement in list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]:
            reading = read(statement, dialect)
            found[dialect, label, reading] += 1
            if reading != label:
                others.append(f"{dialect} {label}, read as {reading}: {statement}")
    heads = ("dialect", "label", "statements", "read", "write", "unreadable")
    rows = [
        (dialect, label, sum(counts), *counts)
        for dialect in sorted({each for each, _, _ in found})
        for label in ("read", "write")
        if (counts := [found[dialect, label, reading] for reading in heads[3:]])
    ]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (heads, ["---"] * len(heads), *rows)), others


def read(statement: str, dialect: str) -> str:
    try:
        return "write" if any(each.writes for each in read_sql(statement, dialect, None)) else "read"
    except Unreadable:
        return "unreadable"


if __name__ == "__main__":
    main()
