"""Measures how long a person needs to decide undecided consent in the console.

    uv run --with playwright python lab/benchmarks/console_settling.py OUT [--most 23] [--phone] [--page FILE]

The time consists of keys or taps, the page's own time, and reading. OUT is the folder of an audit. The benchmark works
on a copy. Chromium decides one question after another, as a reader would. All text of the question counts as read at
240 words a minute. A decision takes one second, a key 0.2 seconds and a tap one second. The reason and the name are
typed once; after that, the page offers them. One of four answers is "no". The page's own time is measured, and the
reading time is added without waiting.
"""

import argparse
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import uvicorn
from console_page import put_section

from bylaw.audit.attestation import read_attestations
from bylaw.console.index import Wanted, open_index
from bylaw.console.pages import view_app
from bylaw.console.view import View

WORDS_A_MINUTE = 240
DECIDING = 1.0
KEY, TAP = 0.2, 1.0
REASON, NAME = "read the exchange", "Mara"
EVERY = 4
"""One in this many answers is "no"."""


@contextmanager
def served(out: Path) -> Iterator[str]:
    """Yield the address of the console for an audit."""
    config = uvicorn.Config(view_app(View(out)), host="127.0.0.1", port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        sleep(0.02)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)


def settle(page: Any, home: str, out: Path, most: int, *, by_touch: bool) -> Counter[str]:
    """Decide `most` calls on the open page."""
    counts: Counter[str] = Counter()
    row = next(row for row in open_index(out).findings(Wanted(state="open"), limit=100) if row.exchange)
    page.goto(f"{home}/findings?state=open&reason={row.reason}&open={row.id}")
    page.wait_for_selector("html[data-ready]")
    while len(read_attestations(out.parent / "attestations.yaml")) < most and page.locator(".consent").count():
        counts["exchanges"] += 1
        counts["words"] += len(page.locator(".consent").inner_text().split())
        name = page.locator("#detail").get_attribute("data-finding")
        answer = "n" if counts["exchanges"] % EVERY == 0 else "y"
        before = perf_counter()
        _touched(page, counts, answer) if by_touch else _typed(page, counts, answer)
        page.locator(f"#detail:not([data-finding='{name}']), .standing").first.wait_for(state="attached")
        counts["milliseconds"] += round(1000 * (perf_counter() - before))
    counts["calls"] = len(read_attestations(out.parent / "attestations.yaml"))
    return counts


def _typed(page: Any, counts: Counter[str], answer: str) -> None:
    page.keyboard.press(answer)
    counts["keys"] += 2
    if counts["exchanges"] == 1:
        page.keyboard.type(REASON)
        page.keyboard.press("Tab")
        page.keyboard.type(NAME)
        counts["keys"] += len(REASON) + len(NAME) + 1
    page.keyboard.press("Enter")


def _touched(page: Any, counts: Counter[str], answer: str) -> None:
    page.locator(f"#settle input[value={'fine' if answer == 'y' else 'wrong'}]").tap()
    counts["taps"] += 2
    if counts["exchanges"] == 1:
        page.locator("#settle input[name=reason]").fill(REASON)
        page.locator("#settle input[name=by]").fill(NAME)
        counts["taps"] += 2
        counts["keys"] += len(REASON) + len(NAME)
    page.locator("#settle button.do").tap()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--most", type=int, default=23)
    parser.add_argument("--phone", action="store_true")
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    size = {"width": 390, "height": 844} if given.phone else {"width": 1280, "height": 800}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        out = Path(shutil.copytree(given.out, Path(folder) / "out"))
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_context(viewport=size, has_touch=given.phone).new_page()
        with served(out) as home:
            counts = settle(page, home, out, given.most, by_touch=given.phone)
        browser.close()
    reading = 60 * counts["words"] / WORDS_A_MINUTE
    hands = KEY * counts["keys"] + TAP * counts["taps"] + DECIDING * counts["exchanges"]
    whole = reading + hands + counts["milliseconds"] / 1000
    told = (
        f"{counts['calls']} calls settled in {counts['exchanges']} answers, {counts['words']:,} words read at "
        f"{WORDS_A_MINUTE} a minute; {counts['keys']} keys, {counts['taps']} taps. The page took "
        f"{counts['milliseconds'] / 1000:.1f} s, reading {reading:.0f} s, deciding and typing {hands:.0f} s: "
        f"{whole:.0f} s in all. Reading is computed, no person was timed."
    )
    print(told)
    if given.page is not None:
        made = f"lab/benchmarks/console_settling.py {given.out}{' --phone' if given.phone else ''} --page {given.page}"
        text = f"Made by `uv run --with playwright python {made}`, after `bylaw demo`.\n\n{told}"
        put_section(given.page, f"Settling undecided consents, {size['width']} px wide", text)


if __name__ == "__main__":
    main()
