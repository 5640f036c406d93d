"""Where the proxy stands between a client and a server."""

import sys
from pathlib import Path

from tests.command import PROCESS
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
        return [*self._begin("bylaw"), "proxy", "--pack", str(self.pack), *options]

    def server(self, *options: str) -> list[str]:
        return [*self._begin(str(SERVER)), str(self.notes), *options]

    def _begin(self, what: str) -> list[str]:
        if ready.HERE:
            return [*ready.started(), what]
        return [*PROCESS] if what == "bylaw" else [sys.executable, what]
