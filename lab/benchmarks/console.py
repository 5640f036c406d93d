"""Measures the speed of the console on a large audit.

    uv run --with playwright python lab/benchmarks/console.py [--calls 100000] [--folder DIR] [--page FILE]

The logs are simulated clinic conversations, repeated with other names until enough calls are judged. The benchmark runs
the audit like `bylaw audit` and indexes it. It requests each page from the application, without a network, and reports
the slowest of several rounds. If playwright is installed and `chromium` is on the path, the benchmark also measures the
first contentful paint of each page, from a server on this machine. `--page` writes the tables to their section of that
page. `--folder` keeps the logs, their audit and its duration for the next run.
"""

import argparse
import gzip
import importlib
import importlib.util
import json
import os
import platform
import resource
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time, sleep
from typing import Any

import uvicorn
from console_page import Row, put_section, table
from starlette.testclient import TestClient

from bylaw.audit.request import Request, write_audited
from bylaw.audit.run import audit
from bylaw.console.index import Wanted, open_index
from bylaw.console.page import load_templates
from bylaw.console.pages import view_app
from bylaw.console.view import View
from bylaw.pack import load_pack
from bylaw_lab.clinic.simulator.generate import write

HOME = "http://127.0.0.1"
ROUNDS = 5
PAINTS = 3
"""The number of times that the browser opens each page. The median is reported."""
GOAL = 0.2
"""The maximum server time of any page, in seconds."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        facts, pages = measured(given.folder or Path(passing), given.calls)
    text = told(facts, pages)
    print(text)
    if given.page is not None:
        put_section(given.page, "A large audit", text)


def measured(folder: Path, calls: int) -> tuple[list[Row], list[Row]]:
    """Return the cost of the audit, of its index, and of each page."""
    out, noted = folder / "out", folder / "audit-seconds.json"
    if not noted.is_file():
        audit_once(folder, calls, noted)
    audited: float = json.loads(noted.read_text())
    (out / "console.db").unlink(missing_ok=True)
    (folder / "waivers.yaml").unlink(missing_ok=True)
    began = process_time()
    open_index(out).close()
    indexed = process_time() - began
    copied(out, folder / "before", "console.db")
    pack = copied(load_pack("clinic").root, folder / "pack", "__pycache__", "simulator")
    began = perf_counter()
    view = View(out, pack=str(pack), waivers=folder / "waivers.yaml")
    opened = perf_counter() - began
    conversations, judged, findings = view.index.totals()
    began = process_time()
    warm(view)
    warmed = process_time() - began
    reader = TestClient(view_app(view), base_url=HOME)
    began = process_time()
    while "refresh" in reader.get("/compare?base=before").headers:
        sleep(0.2)
    compared = process_time() - began
    rows = pages_timed(reader, view)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    facts = [
        ("judged calls, conversations, findings", f"{judged:,}, {conversations:,}, {findings:,}"),
        ("the audit, processor time", f"{audited:.1f} s"),
        ("its index, with every conversation of the logs, processor time", f"{indexed:.1f} s"),
        ("the index on disk", f"{(out / 'console.db').stat().st_size / 1e6:.0f} MB"),
        ("an indexed audit opens in", f"{opened:.2f} s"),
        ("then, in the background: the pack and the templates", f"{warmed:.2f} s"),
        ("in the background, once: an earlier audit of the same size to compare with", f"{compared:.1f} s"),
        ("memory at most, of indexing and the console in one process", f"{memory:.0f} MB"),
    ]
    return facts, rows


def audit_once(folder: Path, calls: int, noted: Path) -> None:
    """Audit `calls` calls as `bylaw audit` does, and record the processor time."""
    folder.mkdir(parents=True, exist_ok=True)
    write(folder, seeds=(1,), count=1500)
    request = Request((repeated(folder, calls),), "clinic", folder / "clinic.sqlite")
    began = process_time()
    audit(request, folder / "out")
    spent = process_time() - began
    write_audited(request, folder / "out")
    noted.write_text(json.dumps(spent))


def copied(source: Path, target: Path, *without: str) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(*without))
    return target


def repeated(folder: Path, calls: int) -> Path:
    """Repeat the logs under other names until enough calls are judged."""
    out = folder / "probe"
    audit(Request((folder / "logs.jsonl.gz",), "clinic", folder / "clinic.sqlite"), out)
    once = sum(1 for _ in (out / "calls.jsonl").open("rb"))
    with gzip.open(folder / "logs.jsonl.gz") as lines:
        records = [json.loads(line) for line in lines]
    path = folder / "many.jsonl"
    with path.open("w", encoding="utf-8") as many:
        for number in range(-(-calls // once)):
            for record in records:
                many.write(json.dumps(record | {"id": f"{record['id']}-{number}"}) + "\n")
    shutil.rmtree(out)
    return path


def warm(view: View) -> None:
    """Load the data of `bylaw view` in a thread, as the request for its first page does."""
    load_templates()
    view.pack_now()


def addresses_of(view: View) -> list[tuple[str, str]]:
    """Return every page with typical filters and searches, and its name in the report."""
    index = view.index
    first = index.findings(Wanted(), limit=1)[0]
    reason = max(index.reasons(Wanted()), key=lambda row: row.findings)
    kept = next(row for row in index.conversations(kind="flagged", limit=500) if row.place is not None)
    compliant, unjudged = (index.conversations(kind=kind, after=1000, limit=1)[0] for kind in ("compliant", "unjudged"))
    ruled = next(row for row in index.findings(Wanted(verdict="broken"), limit=1))
    last = str(reason.findings - 50)
    given = [
        "/",
        "/?base=before",
        "/findings",
        "/findings?state=open",
        "/findings?state=all",
        f"/findings?reason={reason.key}",
        f"/findings?reason={reason.key}&after=500",
        f"/findings?reason={reason.key}&after={last}",
        f"/findings?open={first.id}",
        f"/findings?policy={first.policy}",
        "/findings?agent=hasty&verdict=near_miss",
        "/findings?agent=hasty&tool=book_appointment&verdict=violation",
        "/findings?q=gold",
        "/findings?q=patient",
        "/findings?q=the+clinic",
        "/findings?q=hasty+gold",
        "/findings?q=patient&agent=hasty&state=all",
        f"/findings?q={first.id}&state=all",
        "/findings?q=zzzz",
        "/findings?base=before",
        "/findings?base=before&state=still",
        "/findings?base=before&state=still&q=gold",
        f"/finding/{first.id}",
        "/conversations",
        "/conversations?agent=hasty&after=5000",
        "/conversations?q=gold",
        "/conversations?q=the+clinic",
        "/conversations?q=zzzz",
        "/conversations?kind=unjudged&after=5000",
        f"/c/{kept.name}",
        f"/c/{compliant.name}",
        f"/c/{unjudged.name}",
        "/policy",
        f"/policy/{first.policy}",
        f"/policy/{ruled.policy}",
        f"/policy/{ruled.policy}/circuit.svg?action=change",
        f"/try/{first.policy}",
        "/compare",
        "/compare?base=before",
    ]
    names = {reason.key: "R", first.id: "ID", kept.name: "FLAGGED", compliant.name: "COMPLIANT"}
    names |= {ruled.policy: "RULE", first.policy: "POLICY"}
    names[unjudged.name] = "UNJUDGED"
    names[f"after={last}"] = "after=LAST"

    def told(address: str) -> str:
        for value, name in names.items():
            address = address.replace(value, name)
        return address

    return [(address, told(address)) for address in given]


def pages_timed(reader: TestClient, view: View) -> list[Row]:
    """Measure every page and return the slowest of several rounds. The first round fills caches and is reported
    separately.
    """
    addresses = addresses_of(view)
    timed: list[Row] = []
    for address, _ in addresses:
        spent = [seconds_for(lambda address=address: reader.get(address)) for _ in range(ROUNDS + 1)]
        timed.append((*told_times(spent), f"{len(reader.get(address).content) / 1000:.0f} kB"))
    painted = paints(view, [address for address, _ in addresses])
    rows: list[Row] = [
        (f"`{shown}`", first, then, *painted.get(address, ("", "")), size)
        for (address, shown), (first, then, size) in zip(addresses, timed, strict=True)
    ]
    waivers = [waived(reader, view, number) for number in range(ROUNDS + 1)]
    rows.append(("a waiver", *told_times([taken for taken, _ in waivers]), "", "", ""))
    rows.append(("`/findings` after it", *told_times([after for _, after in waivers]), "", "", ""))
    return rows


def seconds_for(ask: Callable[[], Any]) -> float:
    began = process_time()
    answer = ask()
    spent = process_time() - began
    assert answer.status_code == 200, answer.text[:500]
    return spent


def told_times(spent: list[float]) -> tuple[str, str]:
    """Return the time of the first request, and the slowest time of the others."""
    told = [
        f"{each * 1000:.0f} ms" + ("" if each < GOAL else " (over the goal)") for each in (spent[0], max(spent[1:]))
    ]
    return told[0], told[1]


def waived(reader: TestClient, view: View, number: int) -> tuple[float, float]:
    """Waive a finding through its page and reload the list. Return both times."""
    row = view.index.findings(Wanted(), after=number, limit=1)[0]
    token = reader.get(f"/finding/{row.id}").text.split('name="token" value="')[1][:64]
    form = {"token": token, "by": "Mara", "reason": "agreed", "expires": "2999-01-01"}
    taken = seconds_for(lambda: reader.post(f"/finding/{row.id}/waive", data=form))
    return taken, seconds_for(lambda: reader.get("/findings"))


def paints(view: View, addresses: list[str]) -> dict[str, tuple[str, str]]:
    """Return the browser work and the first contentful paint for each page. Empty if there is no browser."""
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not executable or importlib.util.find_spec("playwright") is None:
        return {}
    sync_playwright = importlib.import_module("playwright.sync_api").sync_playwright
    server = uvicorn.Server(uvicorn.Config(view_app(view), port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        sleep(0.02)
    home = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    found: dict[str, tuple[str, str]] = {}
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        asked = page.context.new_cdp_session(page)
        # This is the processor time of the thread, not wall time.
        asked.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.goto(home)
        for address in addresses:
            every = [painted_at(page, asked, home + address) for _ in range(PAINTS)]
            at, worked = (median(each) for each in zip(*every, strict=True))
            found[address] = (f"{worked:.0f} ms", f"{at:.0f} ms" + ("" if at < 1000 else " (over the goal)"))
        browser.close()
    server.should_exit = True
    thread.join(10)
    return found


def painted_at(page: Any, asked: Any, address: str) -> tuple[float, float]:
    """Return when a page first shows something (wall time), and the processor time of the thread, both in
    milliseconds.
    """
    page.goto(address)
    paint = "(performance.getEntriesByName('first-contentful-paint')[0] || {}).startTime"
    while (at := page.evaluate(paint)) is None:
        sleep(0.02)
    return at, worked_by(asked)


def worked_by(asked: Any) -> float:
    """Return the processor time of the thread that draws the page, in milliseconds."""
    told = {each["name"]: each["value"] for each in asked.send("Performance.getMetrics")["metrics"]}
    return told["TaskDuration"] * 1000


def told(facts: list[Row], pages: list[Row]) -> str:
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    return "\n".join(
        [
            "Made by `uv run --with playwright python lab/benchmarks/console.py --page lab/results/pages/console.md`.",
            "",
            f"Simulated clinic conversations, audited and indexed on one core of a shared machine ({machine}).",
            "",
            *table(("what", "measured"), facts),
            "",
            "Each page as the application answers it, in processor time: the first time, the slowest of the next five;",
            "then Chromium's, of the thread that draws the page, until it is whole; its first contentful paint on the",
            "wall's clock, both the median of three; its size. Other programs had the same cores: the load average was",
            f"{load}. The goals are 200 ms of server time, and one second to the first paint.",
            "",
            *table(("page", "first", "then, at most", "drawing", "first paint", "size"), pages),
        ]
    )


if __name__ == "__main__":
    main()
