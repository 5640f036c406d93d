import asyncio

from mcp import Client
from mcp.client.stdio import StdioServerParameters

PROXY = ["proxy", "--pack", "pack", "--", "python", "shop.py"]
MINE = {"bylaw/conversation": "conv-17"}


async def main():
    async with Client(StdioServerParameters(command="bylaw", args=PROXY)) as client:
        for tool in ("refund", "get_order", "refund"):
            result = await client.call_tool(tool, {"order_id": "7"}, meta=MINE)
            print("refused" if result.is_error else "done", "|", result.content[0].text)


asyncio.run(main())
