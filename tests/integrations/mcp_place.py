"""Where the proxy stands between a client and a server."""

from pathlib import Path

from tests.integrations import ready
from tests.integrations.shop import write_pack

SERVER = Path(__file__).with_name("mcp_shop.py")
KEY = {"bylaw/conversation": "c1"}


class Place:
    """A folder with the pack, and what the tools noted there."""

    def __init__(self, folder: Path) -> None:
        self.pack = write_pack(folder)
        self.notes = folder / "notes.txt"

    def ran(self) -> list[str]:
        return self.notes.read_text().splitlines() if self.notes.exists() else []

    def proxy(self, *options: str) -> list[str]:
        return [*ready.begin("bylaw"), "proxy", "--pack", str(self.pack), *options]

    def server(self, *options: str) -> list[str]:
        return [*ready.begin(SERVER), str(self.notes), *options]
