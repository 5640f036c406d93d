"""Operations that users add: the tools of any MCP server, started as a process or reached by its address.

Needs the extra `mcp`. A tool's answer is JSON with a boolean `value`, which settles a step, or any text, to be read.
"""

import asyncio
import threading
from collections.abc import Mapping, Sequence
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
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="bylaw-mcp", daemon=True)
        self._thread.start()
        self.operations: tuple[McpOperation, ...] = ()

    def __enter__(self) -> Self:
        self._wait(self._client.__aenter__())
        tools: list[Any] = self._wait(self._client.list_tools())
        self.operations = tuple(
            McpOperation(self, tool.name, tool.description or "", list((tool.inputSchema or {}).get("properties", ())))
            for tool in tools
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self._wait(self._client.__aexit__(None, None, None))
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(self._seconds)
            self._loop.close()

    def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """What a tool answers, as text."""
        answer: Any = self._wait(self._client.call_tool(tool, dict(arguments)))
        return "\n".join(str(part.text) for part in answer.content if getattr(part, "text", None) is not None)

    def _wait(self, coming: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coming, self._loop).result(self._seconds)
