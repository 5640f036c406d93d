"""A real Chromium in front of real servers."""

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import Opened, close_all, open_page

SIZES = {"phone": (390, 844), "desktop": (1280, 800), "narrow": (320, 640)}


@pytest.fixture
def serve() -> Iterator[Callable[[Any], str]]:
    """Serve an application on a free port of this machine; its address."""
    import uvicorn

    running: list[tuple[uvicorn.Server, threading.Thread]] = []

    def begin(app: Any) -> str:
        server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        running.append((server, thread))
        while not server.started:
            time.sleep(0.02)
        return f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"

    yield begin
    for server, thread in running:
        server.should_exit = server.force_exit = True
        thread.join(10)


class Visit(Opened):
    """An open page of a server: it asks no other."""

    def __init__(self, page: Any, home: str) -> None:
        self.home = home
        super().__init__(page)

    def may_ask(self, address: str) -> bool:
        return address.startswith((self.home, "data:", "blob:"))

    def go(self, path: str) -> "Visit":
        self.page.goto(self.home + path)
        self.page.wait_for_selector("html[data-ready]")
        return self

    def sign_in(self, key: str) -> None:
        self.go("/sign-in").page.locator("input[name=key]").fill(key)
        self.page.locator("form button.do").click()
        self.page.wait_for_url("**/inbox")

    def photograph(self, name: str) -> None:
        """Keep a picture of the whole page, if somebody wants to look at it."""
        if folder := os.environ.get("SCREENSHOTS"):
            path = Path(folder) / f"{re.sub(r'[^0-9A-Za-z]+', '-', name).strip('-')}.png"
            self.page.screenshot(path=path, full_page=True)


@pytest.fixture
def visit(chromium: Any) -> Iterator[Callable[..., Visit]]:
    """Open pages at a size and in colours; at the end they must have stayed silent, and asked no other server."""
    visits: list[Visit] = []

    def begin(home: str, size: str = "desktop", scheme: str = "light") -> Visit:
        visits.append(Visit(open_page(chromium, SIZES[size], scheme), home))
        return visits[-1]

    yield begin
    close_all(visits)
