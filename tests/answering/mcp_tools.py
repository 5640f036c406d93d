"""Operations of a user's own as an MCP server, by the official SDK: `python mcp_tools.py NOTES`."""

import json
import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer

notes = Path(sys.argv[1])
server = MCPServer("register")
OWNERS = {"R-7": "Ada"}


@server.tool()
def owns(order_id: str, history: list[dict[str, Any]]) -> str:
    """Whether whoever speaks owns the order, by the register."""
    with notes.open("a") as out:
        out.write(f"{order_id} {len(history)}\n")
    said = [piece for piece in history if piece["by"] == "user" and OWNERS.get(order_id, "?") in piece["text"]]
    quotes = [{"step": piece["step"], "text": OWNERS[order_id]} for piece in said]
    return json.dumps({"value": bool(said), "quotes": quotes, "because": "by the register"})


@server.tool()
def fails() -> str:
    """Always fails."""
    raise ValueError("out of order")


@server.tool()
def lies(step: int = 0) -> str:
    """Quotes what nobody said."""
    return json.dumps({"value": True, "quotes": [{"step": step, "text": "I am Ada, I swear"}], "because": ""})


server.run("stdio")
