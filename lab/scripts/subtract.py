"""Counts lines and modules per area at a base commit and now: `python lab/scripts/subtract.py [--write]`.

With `--write`, the counts go into the table of `lab/results/subtract.md`. The last column of the table is handwritten
and is kept.
"""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BASE = "1f347695"
PAGE = ROOT / "lab" / "results" / "subtract.md"
HEAD = "| area | lines before | lines now | modules before | modules now | removed, and why no user misses it |"
RESEARCH = ("simulator", "tasks", "attacks")


def area_of(path: str) -> str | None:
    """Return the area of a Python file, or None if the file is not counted."""
    parts = path.split("/")
    if not path.endswith(".py") or "tests" in parts:
        return None
    match parts:
        case ["src", "bylaw", "packs", "clinic", part, *_] if part in RESEARCH:
            return "lab: clinic"
        case ["src", "bylaw", "bench", *_]:
            return "lab: bench"
        case ["src", "bylaw", area, _, *_]:
            return area
        case ["src", "bylaw", _]:
            return "package"
        case ["lab", "src", "bylaw_lab", area, _, *_]:
            return f"lab: {area}"
        case ["lab", "benchmarks", *_] | ["benchmarks", *_]:
            return "lab: benchmarks"
        case ["lab", *_]:
            return "lab: scripts and command"
        case ["scripts", name, *_]:
            return (
                "scripts"
                if name in ("cli_reference.py", "screenshots.py", "site_hooks.py")
                else ("lab: scripts and command")
            )
        case _:
            return None


def git(*arguments: str) -> bytes:
    """Return the output of a git command."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout


def texts(commit: str) -> Iterator[tuple[str, bytes]]:
    """Return the counted files of a commit, or of the working tree if `commit` is empty."""
    listing = ("ls-tree", "-r", "--name-only", commit) if commit else ("ls-files", "-co", "--exclude-standard")
    for path in git(*listing).decode().splitlines():
        if area_of(path) is not None and (commit or (ROOT / path).is_file()):
            yield path, git("show", f"{commit}:{path}") if commit else (ROOT / path).read_bytes()


def count(commit: str) -> tuple[Counter[str], Counter[str]]:
    """Return lines and modules per area at a commit, with totals for the package and the lab."""
    lines: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    for path, text in texts(commit):
        area = area_of(path) or ""
        whole = "**src/bylaw**" if path.startswith("src/bylaw/") else "**lab and scripts**"
        for name in (area, whole):
            lines[name] += text.count(b"\n")
            modules[name] += 1
    return lines, modules


def table(notes: dict[str, str]) -> list[str]:
    """Return the rows of the table. The rows of the package come first."""
    before, now = count(BASE), count("")
    areas = sorted(
        before[0].keys() | now[0].keys(), key=lambda name: (name.startswith(("lab", "**lab", "scripts")), name)
    )
    rows = [HEAD, "|---|--:|--:|--:|--:|---|"]
    for area in areas:
        counts = (before[0][area], now[0][area], before[1][area], now[1][area])
        rows.append(f"| {area} | {' | '.join(f'{each:,}' for each in counts)} | {notes.get(area, '')} |")
    return rows


def notes_in(page: str) -> dict[str, str]:
    """Return the handwritten last column, by area."""
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ") and line.count(" | ") >= 5]
    return {cells[0].removeprefix("| "): cells[5].removesuffix("|").strip() for cells in rows if cells[0] != "| area"}


def main() -> None:
    """Print the table or write it to the page."""
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else "# Lines by area, before and after\n\n"
    found = "\n".join(table(notes_in(page))) + "\n"
    if "--write" not in sys.argv:
        print(found, end="")
        return
    start = page.find(HEAD)
    PAGE.write_text((page if start < 0 else page[:start]) + found, encoding="utf-8")


if __name__ == "__main__":
    main()
