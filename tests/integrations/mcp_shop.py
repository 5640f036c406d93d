"""The shop as an MCP server, by the official SDK: `python mcp_shop.py NOTES [PORT]`. Each run of a tool is noted."""

import os
import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer

notes = Path(sys.argv[1])
server = MCPServer("shop", instructions="Be kind.", log_level="CRITICAL")
ORDERS = {"7": {"order_id": "7", "returned": True}, "8": {"order_id": "8", "returned": False}}
runs: list[str] = []


def note(text: str) -> None:
    runs.append(text)
    with notes.open("a") as out:
        out.write(f"{text} ({len(runs)})\n")


@server.tool()
def get_order(order_id: str) -> dict[str, Any]:
    """Show an order."""
    note(f"get_order {order_id}")
    if order_id == "fatal":
        os._exit(3)
    if order_id not in ORDERS:
        raise ValueError(f"no order {order_id}")
    return ORDERS[order_id]


@server.tool()
def refund(order_id: str, conversation: str = "") -> str:
    """Pay an order back."""
    note(f"refund {order_id}")
    return f"refunded {order_id}"


@server.resource("shop://hours")
def hours() -> str:
    """When the shop is open."""
    return "9 to 5"


if __name__ == "__main__":
    if len(sys.argv) > 2:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        server.run("stdio")
