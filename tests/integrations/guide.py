"""Follows a guide where the core's tests cannot: with the framework installed that it is about."""

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.docs.walkthrough import ROOT, blocks

_EXAMPLE = re.compile(r"\$ cp -r ~/bylaw/examples/(\S+)/\. \.")


def follow_guide(name: str, folder: Path, programs: Path = Path(sys.executable).parent, **variables: str) -> int:
    """Write the guide's files, run its `$ python` lines and compare what they print; how many were run.

    `programs` holds the `bylaw` and the `python` that the guide says.
    """
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    ran = 0
    for block in blocks(ROOT / "docs" / "guides" / f"{name}.md"):
        if "file" in block.marks:
            target = folder / block.marks["file"]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("\n".join(block.lines) + "\n", encoding="utf-8")
        elif block.language == "console" and (example := _EXAMPLE.fullmatch(block.lines[0])):
            shutil.copytree(ROOT / "examples" / example[1], folder, dirs_exist_ok=True)
        elif block.language == "console" and block.lines[0].startswith("$ python "):
            done = subprocess.run(
                block.lines[0][2:].split(),
                cwd=folder,
                env={**os.environ, "PATH": path, **variables},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            printed, wanted = done.stdout.splitlines(), block.lines[1:]
            if wanted[0] == "...":
                # The guide leaves out the beginning.
                printed, wanted = printed[1 - len(wanted) :], wanted[1:]
            assert printed == wanted
            ran += 1
    return ran


async def run_section(heading: str, names: dict[str, Any], page: str = "reference/frameworks.md") -> dict[str, Any]:
    """Run the Python block under a heading of a page, after those above the first heading; the names it leaves."""
    path = ROOT / "docs" / page
    lines = path.read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(lines, 1) if line.startswith("## "))
    start = lines.index(f"## {heading}") + 1
    python = [each for each in blocks(path) if each.language == "python"]
    block = next(each for each in python if each.line > start)
    shared = [line for each in python if each.line < first for line in each.lines]
    code = compile("\n".join([*shared, *block.lines]), str(path), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    waits = eval(code, names)
    if inspect.isawaitable(waits):
        await waits
    return names
