"""Operations that users add: the tools of any MCP server, started as a process or reached by its address.

Needs the extra `mcp`. A tool's answer is JSON with a boolean `value`, which settles a step, or any text, to be read.
"""
# pyright: basic, reportMissingImports=false

import asyncio
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

SECONDS = 30.0


class McpOperation:
    """One tool of a server."""

    def __init__(self, server: "McpServer", name: str, description: str, parameters: Sequence[str]) -> None:
        self._server = server
        self.name = name
        self.description = f"{' '.join(description.split())} Arguments: {', '.join(parameters) or 'none'}."

    def run(self, arguments: Mapping[str, Any]) -> str:
        """Call the tool; what it raises settles nothing."""
        return self._server.call(self.name, arguments)


class McpServer:
    """A server that stays connected, in a thread of its own: those who ask are not coroutines.

    `where` is a command, as a sequence, or an address. Use it in a `with`.
    """

    def __init__(self, where: str | Sequence[str], *, seconds: float = SECONDS) -> None:
        transport = (
            StreamableHttpTransport(where) if isinstance(where, str) else StdioTransport(where[0], list(where[1:]))
        )
        self._client: Any = Client(transport)
        self._seconds = seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._done: asyncio.Event | None = None
        self._opened: Future[list[Any]] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), name="bylaw-mcp", daemon=True)
        self.operations: tuple[McpOperation, ...] = ()

    def __enter__(self) -> Self:
        self._thread.start()
        tools = self._opened.result(self._seconds)
        self.operations = tuple(
            McpOperation(self, tool.name, tool.description or "", _parameters(tool.input_schema)) for tool in tools
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._loop is not None and self._done is not None:
            self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join(self._seconds)

    async def _live(self) -> None:
        """The connection, from its opening to its end, in one task."""
        self._loop, self._done = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with self._client:
                self._opened.set_result(await self._client.list_tools())
                await self._done.wait()
        except BaseException as error:
            # Whoever opens it hears of it; once it is open, the next call does.
            if self._opened.done():
                raise
            self._opened.set_exception(error)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        answer: Any = self._wait(self._client.call_tool(tool, dict(arguments)))
        return "\n".join(str(part.text) for part in answer.content if getattr(part, "text", None) is not None)

    def _wait(self, coming: Any) -> Any:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(coming, self._loop).result(self._seconds)


def _parameters(schema: dict[str, Any] | None) -> list[str]:
    properties: dict[str, Any] = (schema or {}).get("properties", {})
    return list(properties)
