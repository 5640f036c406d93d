"""Both transports on both sides of the proxy."""

import contextlib
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from tests.integrations import ready
from tests.integrations.mcp_place import Place
from tests.integrations.test_mcp import free_port, listening

WAYS = [("stdio", "stdio"), ("http", "http"), ("stdio", "http"), ("http", "stdio")]


@contextlib.asynccontextmanager
async def before(
    server: Path, place: Place, way: tuple[str, str], *options: str, mode: str = "legacy", **told: Any
) -> AsyncGenerator[Any]:
    """A client of the proxy before a server: `way` is how it reaches the proxy, and the proxy the server."""
    down, up = way
    command: Sequence[str] = [*ready.begin(server), str(place.notes)]
    with contextlib.ExitStack() as stack:
        tail = ["--", *command]
        if up == "http":
            port = free_port()
            options = (*options, "--url", stack.enter_context(listening([*command, str(port)], port)))
            tail = []
        where: Any
        if down == "http":
            port = free_port()
            where = stack.enter_context(listening(place.proxy(*options, "--listen", f"127.0.0.1:{port}", *tail), port))
        else:
            begin = place.proxy(*options, *tail)
            where = StdioServerParameters(command=begin[0], args=begin[1:])
        async with Client(where, mode=mode, **told) as client:
            yield client
