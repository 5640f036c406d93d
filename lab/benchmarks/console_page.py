"""The results page about the console. Each command writes its own sections and keeps the others."""

import re
from pathlib import Path

Row = tuple[str, ...]
HEAD = "# The console: how quick it is and what it shows inert\n"


def put_section(page: Path, heading: str, text: str) -> None:
    """Replace the section with this heading, or append it."""
    parts = re.split(r"(?m)^(?=## )", page.read_text(encoding="utf-8")) if page.is_file() else [HEAD]
    made = f"## {heading}\n\n{text.strip()}\n\n"
    names = [part.partition("\n")[0] for part in parts]
    if f"## {heading}" in names:
        parts[names.index(f"## {heading}")] = made
    else:
        parts.append(made)
    page.write_text(HEAD + "\n" + "".join(parts[1:]).rstrip() + "\n", encoding="utf-8")


def table(head: Row, rows: list[Row]) -> list[str]:
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows)]
