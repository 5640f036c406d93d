"""A line on standard input that cannot be read is answered with an error: whoever sent it would wait for ever."""
# pyright: basic, reportMissingImports=false

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError


@asynccontextmanager
async def answering_stdio_server() -> AsyncIterator[tuple[Any, Any]]:
    """What `stdio_server` of MCP gives, which passes over what it cannot read."""
    async with stdio_server() as (read, write), anyio.create_task_group() as tasks:
        passed_on, messages = anyio.create_memory_object_stream[Any](0)

        async def pass_on() -> None:
            async with passed_on:
                async for item in read:
                    if not isinstance(item, Exception):
                        await passed_on.send(item)
                    elif (error := refusal(item)) is not None:
                        await write.send(SessionMessage(error))

        tasks.start_soon(pass_on)
        yield messages, write
        tasks.cancel_scope.cancel()


def refusal(fault: Exception) -> JSONRPCError | None:
    """What to answer where a line could not be read; None for what asks for no answer."""
    told: Any = fault if isinstance(fault, ValidationError) else None
    found: list[Any] = [] if told is None else list(told.errors(include_url=False))
    if found and found[0]["type"] == "json_invalid":
        line = str(found[0]["input"])
        if not line.strip():
            return None
        code, why, request = PARSE_ERROR, f"the line cannot be read: {found[0]['msg']}", _read(line)
    else:
        # Of each kind of message that it might have been, something is missing in the whole.
        request = next((each["input"] for each in found if each["type"] == "missing" and len(each["loc"]) == 2), None)
        code, why = INVALID_REQUEST, "the line is no request of JSON-RPC 2.0; requests come one by one, not in a list"
    if isinstance(request, dict) and ("result" in request or "error" in request):
        return None
    id = request.get("id") if isinstance(request, dict) else None
    is_named = id.isprintable() if isinstance(id, str) else isinstance(id, int) and not isinstance(id, bool)
    return JSONRPCError(jsonrpc="2.0", id=id if is_named else None, error=ErrorData(code=code, message=why))


def _read(line: str) -> Any:
    """What stands there, read less strictly, so that the answer can name the request; None where that fails too."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
