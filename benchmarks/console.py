"""How quick the console is on a large audit, and what becomes of requests that it must refuse.

    uv run python benchmarks/console.py [--calls 100000] [--page docs/results/console.md]

The logs are simulated clinic conversations, repeated under other names until so many calls are judged. The audit is run
as `bylaw audit` runs it, then indexed; each page is asked for from the application itself, without a network, and the
slowest of its rounds is told. With `--page` the tables are written to a page of the documentation.
"""

import argparse
import gzip
import json
import os
import platform
import resource
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from starlette.testclient import TestClient

from bylaw.audit.request import Request
from bylaw.audit.run import audit
from bylaw.cli.serve import pages_of
from bylaw.console.index import Wanted, open_index
from bylaw.console.pages import view_app
from bylaw.console.view import View
from bylaw.pack import load_pack
from bylaw.packs.clinic.simulator.generate import write
from bylaw.record import Log
from bylaw.service.keys import Key, hash_of

HOME = "http://127.0.0.1"
ROUNDS = 5
GOAL = 0.2
"""Seconds of server time for any page at most."""
Row = tuple[str, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        facts, pages = measured(Path(folder), given.calls)
        tries = tried(Path(folder))
    text = told(facts, pages, tries)
    print(text)
    if given.page is not None:
        given.page.write_text(text, encoding="utf-8")


def measured(folder: Path, calls: int) -> tuple[list[Row], list[Row]]:
    """What the audit and its index cost, and each page."""
    write(folder, seeds=(1,), count=1500)
    logs = repeated(folder, calls)
    out = folder / "out"
    began = process_time()
    audit(Request((logs,), "clinic", folder / "clinic.sqlite"), out)
    audited = process_time() - began
    began = process_time()
    open_index(out).close()
    indexed = process_time() - began
    shutil.copytree(out, folder / "before", ignore=shutil.ignore_patterns("console.db"))
    pack = folder / "pack"
    shutil.copytree(load_pack("clinic").root, pack, ignore=shutil.ignore_patterns("__pycache__", "simulator"))
    began = perf_counter()
    view = View(out, pack=str(pack), waivers=folder / "waivers.yaml")
    opened = perf_counter() - began
    conversations, judged, findings = view.index.totals()
    reader = TestClient(view_app(view), base_url=HOME)
    rows = pages_timed(reader, view)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    facts = [
        ("judged calls, conversations with any, findings", f"{judged:,}, {conversations:,}, {findings:,}"),
        ("the audit, processor time", f"{audited:.1f} s"),
        ("its index, processor time", f"{indexed:.1f} s"),
        ("the index on disk", f"{(out / 'console.db').stat().st_size / 1e6:.0f} MB"),
        ("an indexed audit opens in", f"{opened:.2f} s"),
        ("memory at most, of the audit and the console in one process", f"{memory:.0f} MB"),
    ]
    return facts, rows


def repeated(folder: Path, calls: int) -> Path:
    """The logs, again and again under other names, until so many calls are judged."""
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


def pages_timed(reader: TestClient, view: View) -> list[Row]:
    """Every page, with the slowest of some rounds; the first of them, which fills caches, apart."""
    first = view.index.findings(Wanted(), limit=1)[0]
    reason = max(view.index.reasons(Wanted()), key=lambda row: row.findings)
    silent = next(row for row in view.index.conversations(limit=500) if row.place is not None)
    addresses = [
        "/",
        "/findings",
        f"/findings?reason={reason.key}",
        f"/findings?reason={reason.key}&after=500",
        "/findings?q=gold",
        f"/findings?q={first.id}&state=all",
        "/findings?agent=hasty&verdict=near_miss",
        f"/finding/{first.id}",
        "/conversations",
        f"/c/{silent.name}",
        "/policy",
        f"/policy/{first.policy}",
        "/compare",
        "/compare?base=before",
    ]
    rows: list[Row] = []
    for address in addresses:
        spent: list[float] = []
        for _ in range(ROUNDS + 1):
            began = process_time()
            answer = reader.get(address)
            spent.append(process_time() - began)
            assert answer.status_code == 200, (address, answer.text[:500])
        shown = address.replace(reason.key, "R").replace(first.id, "ID").replace(silent.name, "NAME")
        shown = shown.replace(first.policy, "POLICY")
        slowest = max(spent[1:])
        kept = f"{slowest * 1000:.0f} ms" + ("" if slowest < GOAL else " (over the goal)")
        rows.append((f"`{shown}`", f"{spent[0] * 1000:.0f} ms", kept, f"{len(answer.content) / 1000:.0f} kB"))
    return rows


def tried(folder: Path) -> list[Row]:
    """Requests that must be refused, and what became of each."""
    out = folder / "small"
    write(folder / "logs", seeds=(2,), count=60)
    audit(Request((folder / "logs" / "logs.jsonl.gz",), "clinic", folder / "logs" / "clinic.sqlite"), out)
    view = View(out, waivers=folder / "small.yaml")
    reader = TestClient(view_app(view), base_url=HOME)
    name = view.index.findings(Wanted(), limit=1)[0].id
    token = reader.get("/findings").text.split('name="token" value="')[1].split('"')[0]
    form = {"token": token, "by": "Mara", "reason": "r", "expires": "2999-01-01"}
    other = TestClient(view_app(view), base_url=HOME).get("/findings").text.split('name="token" value="')[1][:64]
    waive = f"/finding/{name}/waive"

    def sent(**more: Any) -> Callable[[], Any]:
        return lambda: reader.post(waive, **({"data": form} | more))

    keys = {hash_of("agent"): Key("acme"), hash_of("ann"): Key("acme", "approve", "ann")}
    tries: list[tuple[str, Callable[[], Any]]] = [
        ("a page under another `Host`", lambda: reader.get("/findings", headers={"host": "evil.example"})),
        (
            "a page under a `Host` that only begins like ours",
            lambda: reader.get("/", headers={"host": "127.0.0.1.evil"}),
        ),
        ("a change with another site's `Origin`", sent(headers={"origin": "https://evil.example"})),
        ("a change with `Origin: null`", sent(headers={"origin": "null"})),
        ("a change that the browser calls cross-site", sent(headers={"sec-fetch-site": "cross-site"})),
        ("a change without a token", sent(data={key: form[key] for key in ("by", "reason", "expires")})),
        ("a change with another session's token", sent(data=form | {"token": other})),
        ("a change sent as JSON", lambda: reader.post(waive, json=form)),
        ("a change by a link", lambda: reader.get(waive, params=form)),
        ("a form of 300 kB", sent(data=form | {"reason": "x" * 300_000})),
        ("a base that climbs out of the folder", lambda: reader.get("/compare?base=../../etc")),
        ("a file that is no part of the console", lambda: reader.get("/static/0/..%2f..%2fpage.py")),
    ]
    with Log(str(folder / "decisions.db")) as log:
        served = pages_of(log, load_pack("clinic"), keys, HOME, b"s" * 32)["pages"]
        stranger = TestClient(served, base_url=HOME, follow_redirects=False)
        forged = {"cookie": f"bylaw_key={hash_of('ann')}.99999999999.{'0' * 64}"}

        def signed(path: str, **fields: str) -> Any:
            token = stranger.get("/sign-in").text.split('name="token" value="')[1][:64]
            return stranger.post(path, data={"token": token, **fields})

        tries += [
            ("the inbox without signing in", lambda: stranger.get("/inbox")),
            ("the inbox with a forged cookie", lambda: stranger.get("/inbox", headers=forged)),
            ("an answer without signing in", lambda: signed("/inbox/answer", id="x", word="approve")),
            (
                "signing in with an agent's key",
                lambda: signed("/sign-in", key="agent"),
            ),
            ("signing in with no key", lambda: signed("/sign-in", key="")),
            ("events of the inbox without signing in", lambda: stranger.get("/inbox/events")),
        ]
        rows: list[Row] = []
        for what, make in tries:
            answer = make()
            led = f", led to `{answer.headers['location']}`" if answer.status_code == 303 else ""
            rows.append((what, f"{answer.status_code}{led}"))
            assert answer.status_code in (303, 401, 403, 404, 413, 415, 422), (what, answer.status_code)
    assert not (folder / "small.yaml").exists(), "nothing of this may have been written"
    return rows


def told(facts: list[Row], pages: list[Row], tries: list[Row]) -> str:
    """The page."""
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    return "\n".join(
        [
            "# The console: how quick it is, and what it refuses",
            "",
            "Made by `uv run python benchmarks/console.py --page docs/results/console.md`.",
            "",
            "## A large audit",
            "",
            f"Simulated clinic conversations, audited and indexed on one core of a shared machine ({machine}).",
            "",
            *table(("what", "measured"), facts),
            "",
            "Each page as the application answers it, in processor time: the first time, the slowest of the next five,",
            "and its size.",
            "",
            *table(("page", "first", "then, at most", "size"), pages),
            "",
            "## What is refused",
            "",
            "None of these changed anything.",
            "",
            *table(("try", "answer"), tries),
            "",
            "Text out of logs and packs is shown inert in every page: `tests/console/test_pages.py` fills each field",
            "with markup, escapes, bidirectional controls, a megabyte. In Chromium, `tests/console/browser` does what",
            "people do on these pages, by keyboard and on a phone, and axe-core finds no serious or critical fault on",
            "ten pages at 390 and 1280 pixels, light and dark.",
            "",
        ]
    )


def table(head: Row, rows: list[Row]) -> list[str]:
    """Rows in Markdown."""
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows)]


if __name__ == "__main__":
    main()
