"""The command `bylaw tools` reviews changed tool descriptions of an MCP server."""

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
    by: Annotated[str, "Your name, for the record.", {"show_default": "you", "default": getpass.getuser}],
) -> int:
    """Review and accept changed tool descriptions of an MCP server.

    FILE is written by `bylaw proxy --tools FILE`. Until a changed description is accepted, the agent sees the old one
    and calls of the tool need approval. The exit status is 1 while any description awaits review.
    """
    if digests:
        for name in accept(file, digests, by):
            print(f"accepted: {visible(name)}")
    book = read_book(file)
    waiting = {name: known for name, known in sorted(book.tools.items()) if known.waiting}
    for name, known in waiting.items():
        print("\n".join(_changes(name, known)))
    print(f"{len(book.tools)} tools, {len(waiting)} with a description to review")
    return 1 if waiting else 0


def _changes(name: str, known: Known) -> Iterator[str]:
    before = _lines(known.accepted[-1]) if known.accepted else []
    for each in known.waiting:
        new = "" if known.accepted else ", a new tool"
        yield f"{visible(name)}: {each.digest}, seen {local_time(each.at)}{new}"
        shown = difflib.unified_diff(before, _lines(each), lineterm="", n=1)
        yield from (f"  {line}" for line in shown if not line.startswith(("---", "+++", "@@")))


def _lines(told: Told) -> list[str]:
    text = msgspec.json.format(msgspec.json.encode(told.tool, order="sorted"), indent=1).decode()
    return visible(text).splitlines()
