"""What a client sends and nobody can read is answered with an error that says where it is wrong: a line on standard
input, whose sender would wait for ever, a body over HTTP, the parameters of a method.
"""
# pyright: basic, reportMissingImports=false

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
from fastmcp.exceptions import McpError
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

LIST = "a message is one object of JSON-RPC 2.0; messages come one by one, not in a list"


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
        code, why = INVALID_REQUEST, fault_in(request) or LIST
    if isinstance(request, dict) and ("result" in request or "error" in request):
        return None
    return JSONRPCError(jsonrpc="2.0", id=_id_of(request), error=ErrorData(code=code, message=why))


def fault_in(request: Any) -> str:
    """Where a message is no request of JSON-RPC 2.0; nothing where it is one."""
    if not isinstance(request, dict):
        return LIST
    if request.get("jsonrpc") != "2.0":
        return '`jsonrpc` is not "2.0"'
    if not isinstance(request.get("method"), str):
        return "`method` is not a text" if "method" in request else "`method` is missing"
    if not isinstance(request.get("params", {}), dict):
        return "`params` is not an object"
    is_named = "id" not in request or _id_of(request) is not None
    return "" if is_named else "`id` is neither a plain text nor a whole number"


def _id_of(request: Any) -> int | str | None:
    id = request.get("id") if isinstance(request, dict) else None
    is_named = id.isprintable() if isinstance(id, str) else isinstance(id, int) and not isinstance(id, bool)
    return id if is_named else None


async def saying_where(ctx: Any, call_next: Any) -> Any:
    """Answer a request whose parameters cannot be read with their place."""
    try:
        return await call_next(ctx)
    except ValidationError as error:
        place, why = fault_at(error)
        raise McpError(code=INVALID_PARAMS, message=f"`params{place}` of `{ctx.method}`: {why}") from error


async def saying_whose(ctx: Any, call_next: Any) -> Any:
    """Answer a request whose parameters were read, but not what its server answered: that is no fault of the request.

    It may have been carried out; "invalid params" says that it was not.
    """
    try:
        return await call_next(ctx)
    except ValidationError as error:
        place, why = fault_at(error)
        said = f"the server's answer to `{ctx.method}` cannot be read: `result{place}`: {why}"
        raise McpError(code=INTERNAL_ERROR, message=said) from error


def fault_at(error: ValidationError) -> tuple[str, str]:
    """The place of what is wrong, as a path from the whole, and what it is."""
    first: Any = error.errors(include_url=False, include_input=False)[0]
    return "".join(f".{each}" for each in first["loc"] if each != "params"), first["msg"]


class SaysWhere:
    """Before a server that is reached by HTTP: a body that is JSON and no message of JSON-RPC never gets there."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        messages: list[Any] = []
        while not messages or (messages[-1]["type"] == "http.request" and messages[-1].get("more_body")):
            messages.append(await receive())
        request, why = _decoded(b"".join(each.get("body", b"") for each in messages)), ""
        is_answer = isinstance(request, dict) and ("result" in request or "error" in request)
        if request is not None and not is_answer and (why := fault_in(request)):
            error = {"code": INVALID_REQUEST, "message": why}
            body = msgspec.json.encode({"jsonrpc": "2.0", "id": _id_of(request), "error": error})
            head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
            await send({"type": "http.response.start", "status": 400, "headers": head})
            await send({"type": "http.response.body", "body": body})
            return
        waiting = iter(messages)

        async def again() -> Any:
            return next(waiting, None) or await receive()

        await self.app(scope, again, send)


def _decoded(body: bytes) -> Any:
    """What a body holds; None where it is no JSON, of which the SDK tells well enough."""
    try:
        return msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return None


def _read(line: str) -> Any:
    """What stands there, read less strictly, so that the answer can name the request; None where that fails too."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
