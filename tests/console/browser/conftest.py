"""A real Chromium in front of real servers; where there is none, these tests skip."""

import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
SIZES = {"phone": (390, 844), "desktop": (1280, 800), "narrow": (320, 640)}


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A browser with an empty profile of its own."""
    from playwright import sync_api as playwright

    executable = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not executable:
        pytest.skip("needs `chromium` on the path, or its path in CHROMIUM")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=FLAGS, headless=True)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core: from the path in AXE_CORE, else fetched by npm into a temporary folder."""
    if given := os.environ.get("AXE_CORE"):
        return Path(given).read_text("utf-8")
    if not shutil.which("npm"):
        pytest.skip("needs `npm`, or the path of axe.min.js in AXE_CORE")
    folder = tmp_path_factory.mktemp("axe")
    command = ["npm", "install", "--prefix", str(folder), "axe-core@4"]
    fetched = subprocess.run(command, capture_output=True, text=True, check=False)
    if fetched.returncode:
        pytest.skip(f"npm could not fetch axe-core: {fetched.stderr[-200:]}")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")


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


class Visit:
    """An open page, and all that it did which it should not have."""

    def __init__(self, page: Any, home: str) -> None:
        self.page = page
        self.home = home
        self.faults: list[str] = []
        self.expected: tuple[str, ...] = ()
        """What the browser may say of a server that is away, or refuses."""
        page.on("console", lambda said: said.type in ("error", "warning") and self._said(said.text))
        page.on("pageerror", lambda fault: self.faults.append(str(fault)))
        page.on("dialog", lambda dialog: self.faults.append(f"dialog {dialog.message}"))
        page.on("request", lambda request: self._asked(request.url))

    def _said(self, text: str) -> None:
        if not any(part in text for part in self.expected):
            self.faults.append(text)

    def _asked(self, address: str) -> None:
        if not address.startswith((self.home, "data:", "blob:")):
            self.faults.append(f"asked for {address}")

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

    def has_no_sideways_scroll(self) -> bool:
        return self.page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    def serious(self, axe: str) -> list[str]:
        """What axe finds that is serious or critical, one line each."""
        self.page.evaluate(axe)
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{rule['id']}: {node['target']} {node['failureSummary'][:200]}"
            for rule in found["violations"]
            if rule["impact"] in ("serious", "critical")
            for node in rule["nodes"][:3]
        ]


@pytest.fixture
def visit(chromium: Any) -> Iterator[Callable[..., Visit]]:
    """Open pages at a size and in colours; at the end they must have stayed silent, and asked no other server."""
    visits: list[tuple[Any, Visit]] = []

    def begin(home: str, size: str = "desktop", scheme: str = "light") -> Visit:
        width, height = SIZES[size]
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
        )
        page = context.new_page()
        page.set_default_timeout(10_000)
        here = Visit(page, home)
        visits.append((context, here))
        return here

    yield begin
    for context, here in visits:
        context.close()
        assert here.faults == []
