"""Writes the help of every command into the pages of docs/reference. With --check, only compares it.

Run it after changing a command: python scripts/cli_reference.py
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from click.testing import CliRunner

from bylaw.cli.align import align_command
from bylaw.cli.app import COMMANDS, app
from bylaw.cli.log import log_command
from bylaw.cli.rules import rules_command

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
PAGES = [FOLDER / name for name in ("cli.md", "cli-live.md", "cli-models.md")]
_BLOCK = re.compile(r"(<!-- help: ([\w ]+) -->\n```text\n)(.*?)(```\n)", re.DOTALL)
_COMMON = (
    *("--help", "PACK", "LOGS", "--pack", "--log LOG", "--tenant", "--by", "--anchors FILE", "--signing-key"),
    *("--llm", "--memory", "--kept", "--embedder", "--operations", "--earlier", "--dry-run", "--json"),
)
_ENTRY = re.compile(rf"^  (-h, )?\[?({'|'.join(_COMMON)})\b.*\n( {{4,}}.*\n)*", re.MULTILINE)
_BOUND = re.compile(r"\s+\[x>=\d+\]|;\s+x>=\d+")
_EMPTY = re.compile(r"\n(Options|Positional arguments):\n(?=\n|\Z)")


def commands() -> Iterator[str]:
    """Yield every command. A command in a group is `GROUP NAME`."""
    groups = {"log": log_command, "rules": rules_command, "align": align_command}
    yield from (name for name in COMMANDS if name not in groups)
    yield from (f"{name} {command}" for name, group in groups.items() for command in group.commands)


def help_of(command: str) -> str:
    """Return the help of a command at 80 columns, without lower bounds and the entries in cli.md."""
    done = CliRunner(env={"COLUMNS": "80"}).invoke(app, [*command.split(), "--help"], prog_name="bylaw")
    lines = "".join(f"{line.rstrip()}\n" for line in done.output.strip().splitlines())
    return _BOUND.sub("", _EMPTY.sub("", _ENTRY.sub("", lines)))


def brought_up_to_date(page: str) -> str:
    """Return the page with the current help in every marked block."""
    return _BLOCK.sub(lambda block: block[1] + help_of(block[2]) + block[4], page)


def main() -> int:
    texts = {page: page.read_text(encoding="utf-8") for page in PAGES}
    lacking = [name for name in commands() if not any(f"<!-- help: {name} -->" in text for text in texts.values())]
    for page, text in texts.items():
        fresh = brought_up_to_date(text)
        if "--check" not in sys.argv:
            page.write_text(fresh, encoding="utf-8")
        elif fresh != text:
            print(f"docs/reference/{page.name} is out of date; run python scripts/cli_reference.py")
            return 1
    if lacking:
        print(f"no page of docs/reference shows the help of: {', '.join(lacking)}")
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
