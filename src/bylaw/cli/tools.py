"""`bylaw tools`: how an MCP server described its tools when somebody accepted that, and how it does now."""

import difflib
import getpass
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import click
import msgspec

from bylaw.cli.command import command
from bylaw.cli.console import local_time
from bylaw.integrations.mcp_catalogue import Known, Told, accept, read_book
from bylaw.text.visible import visible


@command("tools")
def tools_command(
    file: Annotated[Path, click.Path(dir_okay=False, exists=True, path_type=Path)],
    *,
    digests: Annotated[tuple[str, ...], "--accept DIGEST", "Accept the description with this digest."] = (),
    by: Annotated[str, "Who does it; the file says so.", {"show_default": "you", "default": getpass.getuser}],
) -> int:
    """Show how an MCP server's tools were described when accepted, and what changed; accept that.

    FILE is the one that `bylaw proxy --tools FILE` keeps. Until somebody accepts a changed description, the agent is
    shown the old one, and calls of the tool are put to a person. Ends with 1 while a description waits.
    """
    if digests:
        for name in accept(file, digests, by):
            print(f"accepted: {visible(name)}")
    book = read_book(file)
    waiting = {name: known for name, known in sorted(book.tools.items()) if known.waiting}
    for name, known in waiting.items():
        print("\n".join(_told(name, known)))
    print(f"{len(book.tools)} tools, {len(waiting)} with a description that waits")
    return 1 if waiting else 0


def _told(name: str, known: Known) -> Iterator[str]:
    before = _lines(known.accepted[-1]) if known.accepted else []
    for each in known.waiting:
        new = "" if known.accepted else ", a tool that is new"
        yield f"{visible(name)}: {each.digest}, told {local_time(each.at)}{new}"
        shown = difflib.unified_diff(before, _lines(each), lineterm="", n=1)
        yield from (f"  {line}" for line in shown if not line.startswith(("---", "+++", "@@")))


def _lines(told: Told) -> list[str]:
    """A description as lines that can be compared; what a server writes is JSON on one line each."""
    text = msgspec.json.format(msgspec.json.encode(told.tool, order="sorted"), indent=1).decode()
    return visible(text).splitlines()
