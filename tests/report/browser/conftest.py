"""Reports in a real Chromium."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import Opened, close_all, open_page

SIZES = {"phone": (390, 844), "desktop": (1440, 900)}


class Visit(Opened):
    """An open report: it asks for nothing but itself."""

    def may_ask(self, address: str) -> bool:
        return address.startswith(("data:", "blob:")) or (address.startswith("file:") and "report.html" in address)


@pytest.fixture
def visit(chromium: Any) -> Iterator[Callable[..., Visit]]:
    """Open a report at a size and colour scheme; at the end it must have stayed silent and asked for nothing."""
    visits: list[Visit] = []

    def open_report(
        report: Path, size: str = "desktop", scheme: str = "light", *, address: str = "", **more: Any
    ) -> Visit:
        here = Visit(open_page(chromium, SIZES[size], scheme, **more))
        visits.append(here)
        here.page.goto(report.resolve().as_uri() + address)
        here.page.wait_for_selector("html[data-ready]")
        return here

    yield open_report
    close_all(visits)
