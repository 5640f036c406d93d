"""A shop that speaks nothing newer than protocol 2025-11-25, as many servers do: `python mcp_elder.py NOTES`.

Its instructions are those of the file NOTES.says.
"""

import json
import sys
from pathlib import Path
from typing import Any

notes = Path(sys.argv[1])
says = notes.with_suffix(".says")
ORDER = {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}
TOOLS = [{"name": name, "description": "", "inputSchema": ORDER} for name in ("get_order", "refund")]


def called(name: str, order: str) -> dict[str, Any]:
    if name == "refund":
        with notes.open("a") as out:
            out.write(f"refund {order}\n")
    return {"content": [{"type": "text", "text": json.dumps({"order_id": order, "returned": True})}]}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            said = {"instructions": says.read_text()} if says.exists() else {}
            who = {"name": "elder", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": who, **said}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            return called(params["name"], params["arguments"]["order_id"])
        case "ping":
            return {}
    return None


if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            found = answer(request["method"], request.get("params") or {})
            fault = {"error": {"code": -32601, "message": "Method not found"}}
            told = {"jsonrpc": "2.0", "id": request["id"], **(fault if found is None else {"result": found})}
            print(json.dumps(told), flush=True)
