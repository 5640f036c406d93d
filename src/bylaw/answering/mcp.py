"""User-defined operations: tools of any MCP server, which is started as a process or reached at an address. Needs the
extra `mcp`.

A tool's answer is either JSON with a Boolean `value`, which decides a step, or text for the model.
"""
# pyright: basic, reportMissingImports=false

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from anyio.from_thread import start_blocking_portal
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

SECONDS = 30.0


class McpOperation:
    def __init__(self, server: "McpServer", name: str, description: str, parameters: Sequence[str]) -> None:
        self._server = server
        self.name = name
        self.description = f"{' '.join(description.split())} Arguments: {', '.join(parameters) or 'none'}."

    def run(self, arguments: Mapping[str, Any]) -> str:
        """Call the tool. After an error, the step stays undecided."""
        return self._server.call(self.name, arguments)


class McpServer:
    """A server connected from a separate thread, because operations are synchronous.

    `where` is either a command, as a sequence of words, or an address. Use this class in a `with` statement.
    """

    def __init__(self, where: str | Sequence[str]) -> None:
        transport = (
            StreamableHttpTransport(where) if isinstance(where, str) else StdioTransport(where[0], list(where[1:]))
        )
        self._client: Any = Client(transport, init_timeout=SECONDS)
        self._open = ExitStack()
        self.operations: tuple[McpOperation, ...] = ()

    def __enter__(self) -> Self:
        with ExitStack() as opening:
            self._portal = opening.enter_context(start_blocking_portal())
            opening.enter_context(self._portal.wrap_async_context_manager(self._client))
            tools = self._wait(self._client.list_tools)
            self._open = opening.pop_all()
        self.operations = tuple(
            McpOperation(self, tool.name, tool.description or "", _parameters(tool.input_schema)) for tool in tools
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.close()

    def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        answer = self._wait(self._client.call_tool, tool, dict(arguments))
        return "\n".join(str(part.text) for part in answer.content if getattr(part, "text", None) is not None)

    def _wait(self, ask: Any, *given: Any) -> Any:
        return self._portal.start_task_soon(ask, *given).result(SECONDS)


def _parameters(schema: dict[str, Any] | None) -> list[str]:
    properties: dict[str, Any] = (schema or {}).get("properties", {})
    return list(properties)
