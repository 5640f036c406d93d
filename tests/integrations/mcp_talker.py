"""A server that asks and tells its client things, by the official SDK: `python mcp_talker.py NOTES [PORT]`.

What its client asks and tells it is noted.
"""
# pyright: basic

import asyncio
import sys
import warnings
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.session import ServerSession
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    EmptyResult,
    InputRequiredResult,
    ListRootsRequest,
    NotificationParams,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
)

warnings.simplefilter("ignore")
notes = Path(sys.argv[1])
server = MCPServer("talker", log_level="CRITICAL")
QUESTION = [SamplingMessage(role="user", content=TextContent(type="text", text="long text"))]
calls: dict[int, int] = {}
later: set[asyncio.Task[None]] = set()


def note(text: str) -> None:
    with notes.open("a") as out:
        out.write(f"{text}\n")


@server.tool()
async def get_order(order_id: str, ctx: Context) -> str | InputRequiredResult:
    """Ask the client's model and its roots; tell of progress, log lines and a new tool.

    Order `count` is how often this session asked for it, `authorization` who calls, and 41 a plain one.
    """
    if order_id == "count":
        place = id(ctx.session._connection)
        calls[place] = calls.get(place, 0) + 1
        return str(calls[place])
    if order_id == "41":
        return '{"order_id": "41", "returned": true}'
    if order_id == "authorization":
        return (ctx.headers or {}).get("authorization", "nobody")
    if ctx.protocol_version >= "2026":
        if ctx.input_responses is None:
            asked = CreateMessageRequest(params=CreateMessageRequestParams(messages=QUESTION, max_tokens=20))
            return InputRequiredResult(input_requests={"said": asked, "roots": ListRootsRequest()})
        said, roots = ctx.input_responses["said"], ctx.input_responses["roots"]
        await ctx.notify_tools_changed()
    else:
        said = await ctx.session.send_request(
            CreateMessageRequest(params=CreateMessageRequestParams(messages=QUESTION, max_tokens=20)),
            CreateMessageResult,
            metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
            progress_callback=note_progress,
        )
        roots = await ctx.session.list_roots()
        await ctx.session.send_tool_list_changed()
        task = asyncio.create_task(tell_later(ctx.session))
        later.add(task)
        task.add_done_callback(later.discard)
    for step in range(20):
        await ctx.info(f"note {step}")
        await ctx.report_progress(step, 20, f"step {step}")
    return f"{said.model}: {said.content.text}, {len(roots.roots)} roots"


async def note_progress(progress: float, total: float | None, message: str | None) -> None:
    note(f"{message} {progress:g} of {total:g}")


async def tell_later(session: ServerSession) -> None:
    """What is told when no request is under way."""
    await asyncio.sleep(0.5)
    await session.send_log_message("info", "afterwards")
    await session.send_prompt_list_changed()


@server.tool()
async def refund(order_id: str, ctx: Context) -> str:
    """Pay an order back, step by step."""
    for step in range(3):
        await ctx.report_progress(step, 3, f"paying {step}")
    note(f"refund {order_id}")
    return "refunded"


async def level(_: Any, params: SetLevelRequestParams) -> EmptyResult:
    note(f"level {params.level}")
    return EmptyResult()


async def subscribe(_: Any, params: SubscribeRequestParams) -> EmptyResult:
    note(f"subscribe {params.uri}")
    return EmptyResult()


async def roots_changed(_: Any, __: Any) -> None:
    note("roots changed")


inner = server._lowlevel_server
inner.add_request_handler("logging/setLevel", SetLevelRequestParams, level)
inner.add_request_handler("resources/subscribe", SubscribeRequestParams, subscribe)
inner.add_notification_handler("notifications/roots/list_changed", NotificationParams, roots_changed)

if __name__ == "__main__":
    if len(sys.argv) > 2:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        server.run("stdio")
