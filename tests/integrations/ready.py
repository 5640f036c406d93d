"""Processes of the proxy and of an MCP server, forked from one that has imported the libraries of MCP."""

import shlex
from pathlib import Path

from tests import ready

IMPORTED = (
    "mcp.server.mcpserver", "uvicorn.protocols.http.auto", "uvicorn.lifespan.on", "bylaw.cli.app", "bylaw.cli.proxy",
    "bylaw.integrations.mcp", "bylaw.record.sqlite",
    # What these import only as they begin to work.
    "anyio._backends._asyncio", "anyio._core._subprocesses", "fastmcp.server.middleware.dereference",
    "fastmcp.server.providers.prefab_synthesis", "fastmcp.server.sessions", "h11", "httpcore2", "rich.table",
    "truststore", "attr", "rich.traceback",
)  # fmt: skip


def begin(what: str | Path) -> list[str]:
    """The command before the arguments of `bylaw`, or of a script."""
    return ready.begin(what, IMPORTED)


def programs(folder: Path) -> Path:
    """A folder for the path, with a `bylaw` and a `python` that begin so."""
    folder.mkdir()
    for name, command in (("bylaw", begin("bylaw")), ("python", begin("script")[:-1])):
        (folder / name).write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        (folder / name).chmod(0o755)
    return folder
