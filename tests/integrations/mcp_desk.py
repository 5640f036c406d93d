"""The rental desk as an MCP server: `python mcp_desk.py NOTES`. What its tools changed is noted."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from mcp.server.mcpserver import MCPServer

from tests.integrations.rental import Rentals

notes, rentals, server = Path(sys.argv[1]), Rentals(), MCPServer("desk", log_level="CRITICAL")
server.tool()(rentals.get_rental)


@server.tool()
def extend_rental(rental_id: str, new_end: str) -> str:
    """Extend a rental to a new last day."""
    with notes.open("a") as out:
        out.write(f"extend {rental_id}\n")
    return rentals.extend_rental(rental_id, new_end)


if __name__ == "__main__":
    server.run("stdio")
