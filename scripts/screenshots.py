"""The README's pictures of the report, taken in real Chromium from a real audit's output folder.

    uv run --with playwright python scripts/screenshots.py OUT

OUT is what `bylaw audit LOGS --pack PACK --out OUT` wrote. The pictures go to docs/images/. It needs `chromium` on
the path, or its path in CHROMIUM.
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from bylaw.audit.report import write_report

IMAGES = Path(__file__).parent.parent / "docs" / "images"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--font-render-hinting=none",
]
PICTURES = {
    # name: width, height, colours, section to show
    "report-light": (1280, 1020, "light", ""),
    "report-dark": (1280, 1020, "dark", ""),
    "report-finding": (1280, 1000, "light", "#findings"),
}


def main() -> None:
    """Write a folder's report and take a screenshot."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("out", type=Path, help="an audit's output folder")
    arguments.add_argument("--images", type=Path, default=IMAGES, help="where the pictures go")
    given = arguments.parse_args()
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not executable:
        sys.exit("screenshots: needs `chromium` on the path, or its path in CHROMIUM")
    given.images.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        report = write_report(given.out, Path(folder) / "report.html")
        browser = driver.chromium.launch(executable_path=executable, args=FLAGS, headless=True)
        for name, (width, height, scheme, section) in PICTURES.items():
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme=scheme,
                device_scale_factor=2 if width < 600 else 1.5,
                reduced_motion="reduce",
            )
            page = context.new_page()
            page.goto(report.as_uri())
            page.wait_for_selector("html[data-ready]")
            if width > 1000:
                page.wait_for_selector("#detail .events")
            if section:
                page.evaluate("section => document.querySelector(section).scrollIntoView()", section)
            picture = given.images / f"{name}.png"
            page.screenshot(path=picture)
            print(picture)
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
