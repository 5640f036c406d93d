"""Writes the help of every command into docs/reference/cli.md; with --check, only says whether it is there.

Run it after changing a command: python scripts/cli_reference.py
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from click.testing import CliRunner

from bylaw.cli.align import COMMANDS as ALIGN
from bylaw.cli.app import COMMANDS, app
from bylaw.cli.log import log_command
from bylaw.cli.rules import rules_command

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"
_BLOCK = re.compile(r"(<!-- help: ([\w ]+) -->\n```text\n)(.*?)(```\n)", re.DOTALL)


def commands() -> Iterator[str]:
    """Every command, those of a group as `GROUP NAME`."""
    groups = {"log": list(log_command.commands), "rules": list(rules_command.commands), "align": list(ALIGN)}
    yield from (name for name in COMMANDS if name not in groups)
    yield from (f"{group} {name}" for group, names in groups.items() for name in names)


def help_of(command: str) -> str:
    """What `bylaw COMMAND --help` prints at 80 columns."""
    done = CliRunner(env={"COLUMNS": "80"}).invoke(app, [*command.split(), "--help"], prog_name="bylaw")
    return "".join(f"{line.rstrip()}\n" for line in done.output.strip().splitlines())


def brought_up_to_date(page: str) -> str:
    """The page with the help of today in every block marked for it."""
    return _BLOCK.sub(lambda block: block[1] + help_of(block[2]) + block[4], page)


def main() -> int:
    page = PAGE.read_text(encoding="utf-8")
    fresh = brought_up_to_date(page)
    lacking = [name for name in commands() if f"<!-- help: {name} -->" not in page]
    if "--check" not in sys.argv:
        PAGE.write_text(fresh, encoding="utf-8")
    elif fresh != page:
        print("docs/reference/cli.md is not what --help says; run python scripts/cli_reference.py")
        return 1
    if lacking:
        print(f"docs/reference/cli.md says nothing of: {', '.join(lacking)}")
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
