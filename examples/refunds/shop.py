from mcp.server.mcpserver import MCPServer

server = MCPServer("shop")


@server.tool()
def get_order(order_id: str) -> dict:
    """Show an order."""
    return {"order_id": order_id, "returned": order_id == "7"}


@server.tool()
def refund(order_id: str) -> str:
    """Pay an order back."""
    return f"refunded {order_id}"


server.run()
