"""A real Chromium for the report's tests; where there is none, they skip."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
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
SIZES = {"phone": (390, 844), "desktop": (1440, 900)}


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
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


class Visit:
    """An open report, and all that it did which it should not have."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.faults: list[str] = []
        page.on("console", lambda message: message.type in ("error", "warning") and self.faults.append(message.text))
        page.on("pageerror", lambda fault: self.faults.append(str(fault)))
        page.on("dialog", lambda dialog: self.faults.append(f"dialog {dialog.message}"))
        page.on("request", lambda request: self._asked(request.url))

    def _asked(self, address: str) -> None:
        if not address.startswith(("file:", "data:", "blob:")) or (
            address.startswith("file:") and "report.html" not in address
        ):
            self.faults.append(f"asked for {address}")

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


@pytest.fixture
def visit(chromium: Any) -> Iterator[Callable[..., Visit]]:
    """Open a report at a size and colour scheme; at the end it must have stayed silent and asked for nothing."""
    visits: list[tuple[Any, Visit]] = []

    def open_report(
        report: Path, size: str = "desktop", scheme: str = "light", *, address: str = "", **more: Any
    ) -> Visit:
        width, height = SIZES[size]
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce", **more
        )
        page = context.new_page()
        page.set_default_timeout(10_000)
        here = Visit(page)
        visits.append((context, here))
        page.goto(report.resolve().as_uri() + address)
        page.wait_for_selector("html[data-ready]")
        return here

    yield open_report
    for context, here in visits:
        context.close()
        assert here.faults == []
