"""A server that asks and tells its client things, by the official SDK: `python mcp_talker.py NOTES [PORT]`."""
# pyright: basic

import sys
import warnings
from pathlib import Path

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import SamplingMessage, TextContent

warnings.simplefilter("ignore")
notes = Path(sys.argv[1])
server = MCPServer("talker")


@server.tool()
async def get_order(order_id: str, ctx: Context) -> str:
    """Ask the client's model, its roots and its user; tell of progress, a log line and a new tool."""
    said = await ctx.session.create_message(
        messages=[SamplingMessage(role="user", content=TextContent(type="text", text="long text"))],
        max_tokens=20,
        related_request_id=ctx.request_id,
    )
    roots = await ctx.session.list_roots()
    await ctx.info("a note")
    await ctx.report_progress(1, 2, "half")
    await ctx.session.send_tool_list_changed()
    return f"{said.model}: {said.content.text}, {len(roots.roots)} roots"


@server.tool()
async def refund(order_id: str) -> str:
    """Pay an order back."""
    with notes.open("a") as out:
        out.write(f"refund {order_id}\n")
    return "refunded"


if __name__ == "__main__":
    if len(sys.argv) > 2:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        server.run("stdio")
