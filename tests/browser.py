"""A real Chromium for tests of pages; where there is none, they skip. One for all: Playwright allows no second."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


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
    fetched = subprocess.run(
        ["npm", "install", "--prefix", str(folder), "axe-core@4"], capture_output=True, text=True, check=False
    )
    if fetched.returncode:
        pytest.skip(f"npm could not fetch axe-core: {fetched.stderr[-200:]}")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")


class Opened:
    """An open page, and all that it did which it should not have."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.faults: list[str] = []
        self.expected: tuple[str, ...] = ()
        """What the browser may say of a server that is away, or refuses."""
        page.set_default_timeout(30_000)
        page.on("console", lambda said: said.type in ("error", "warning") and self._said(said.text))
        page.on("pageerror", lambda fault: self.faults.append(str(fault)))
        page.on("dialog", lambda dialog: self.faults.append(f"dialog {dialog.message}"))
        page.on("request", lambda request: self.may_ask(request.url) or self.faults.append(f"asked for {request.url}"))

    def _said(self, text: str) -> None:
        if not any(part in text for part in self.expected):
            self.faults.append(text)

    def may_ask(self, address: str) -> bool:
        """Whether the page may ask for an address."""
        raise NotImplementedError

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
            for node in rule["nodes"][:5]
        ]


def open_page(chromium: Any, size: tuple[int, int], scheme: str, **more: Any) -> Any:
    """A page of a context of its own."""
    width, height = size
    context = chromium.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce", **more
    )
    return context.new_page()


def close_all(visits: list[Any]) -> None:
    """Close pages; they must have stayed silent, and asked for nothing that they may not."""
    for here in visits:
        here.page.context.close()
        assert here.faults == []
