"""Runs a document's commands as a reader would: files are written, `$` lines are run, shown output is compared.

<!-- file: pack/pack.yaml -->   the next fenced block is that file
<!-- status: 1 -->              the commands of the next console block exit with 1
<!-- output -->                 the next console block shows what the commands print; `...` stands for any lines
<!-- not run -->                the next block is not run (another machine, another project)
"""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from tests.command import typed
from tests.suite import Demo

ROOT = Path(__file__).parent.parent.parent
_FENCE = re.compile(r"^```(\w*)\s*$")
_MARK = re.compile(r"^<!--\s*(file|status|output|not run)(?::\s*(\S+))?\s*-->\s*$")


class Block(NamedTuple):
    """A fenced block with the marks above it."""

    line: int
    language: str
    lines: list[str]
    marks: dict[str, str]


def blocks(path: Path) -> Iterator[Block]:
    """The fenced blocks of a Markdown file."""
    marks: dict[str, str] = {}
    inside: list[str] | None = None
    language, start = "", 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if inside is not None:
            if fence and not fence[1]:
                yield Block(start, language, inside, marks)
                inside, marks = None, {}
            else:
                inside.append(line)
        elif fence:
            inside, language, start = [], fence[1], number
        elif mark := _MARK.match(line):
            marks[mark[1]] = mark[2] or ""
        elif line.strip():
            marks = {}


def walk(
    path: Path,
    folder: Path,
    demo: Demo | None,
    command: Callable[[str], subprocess.CompletedProcess[str]] | None = None,
) -> int:
    """Follow the document in an empty folder; the number of commands run. What `demo` left and said is taken over.

    `command` runs a line elsewhere than in this environment.
    """
    ran = 0
    for block in blocks(path):
        if "not run" in block.marks:
            continue
        if "file" in block.marks:
            target = folder / block.marks["file"]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("\n".join(block.lines) + "\n", encoding="utf-8")
        elif block.language == "console":
            ran += _run(block, path, command or (lambda line: run(line, folder, demo)))
    return ran


def _run(block: Block, path: Path, run: Callable[[str], subprocess.CompletedProcess[str]]) -> int:
    status = int(block.marks.get("status", "0"))
    shown = [line for line in block.lines if not line.startswith("$ ")]
    printed: list[str] = []
    commands = [line[2:] for line in block.lines if line.startswith("$ ")]
    for command in commands:
        done = run(command)
        where = f"{path.name}:{block.line}: {command}"
        assert done.returncode == status, f"{where}: status {done.returncode}\n{done.stdout}"
        printed.extend(done.stdout.splitlines())
    if "output" in block.marks:
        assert_shown(list(map(_undated, printed)), list(map(_undated, shown)), f"{path.name}:{block.line}")
    return len(commands)


def assert_shown(printed: list[str], shown: list[str], where: str) -> None:
    """The lines shown are those printed; a line `...` stands for any number of them."""
    place = 0
    parts = [list(part) for is_gap, part in groupby(shown, lambda line: line == "...") if not is_gap]
    if "..." not in shown:
        assert printed == shown, where
        return
    for part in parts:
        found = [at for at in range(place, len(printed)) if printed[at : at + len(part)] == part]
        assert found, f"{where}: not printed: {part}"
        place = found[0] + len(part)


def _undated(line: str) -> str:
    """A line without the day on which the command was run."""
    return re.sub(r"audited on \d{4}-\d\d-\d\d", "audited on (a day)", line.rstrip())


def installed(command: str) -> str:
    """A command line, without what installs Bylaw first."""
    return re.sub(r"^pip install uv && uv run ", "", command)


def run(command: str, folder: Path, demo: Demo | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command line as a reader of the document would; errors are output too, as on a terminal."""
    line = installed(command)
    if copied := re.fullmatch(r"cp -r ~/bylaw/examples/(\S+)/\. (\S+)", line):
        shutil.copytree(ROOT / "examples" / copied[1], folder / copied[2], dirs_exist_ok=True)
        return subprocess.CompletedProcess(line, 0, "", "")
    if demo is not None and (shown := re.fullmatch(r"bylaw demo(?: --out (\w+))?", line)):
        out = shown[1] or "bylaw-demo"
        shutil.copytree(demo.folder / "bylaw-demo", folder / out, dirs_exist_ok=True)
        if shown[1]:
            for path in (folder / out / name for name in ("audited.json", "report.html")):
                path.write_text(path.read_text(encoding="utf-8").replace("bylaw-demo", out), encoding="utf-8")
        return subprocess.CompletedProcess(line, 0, demo.shown.replace("bylaw-demo", out), "")
    return typed(line, folder)
