"""What the console makes of hostile content, of requests that it must refuse, and of people who decide at once.

    uv run --with playwright python lab/benchmarks/console_tries.py [--page lab/results/pages/console.md]

Hostile text stands in every field that somebody else than us fills: each page that shows it is read, and opened in
Chromium where playwright is installed and `chromium` is on the path. It ends with 1 where anything was not inert, was
answered that should not have been, or was lost. With `--page` the tables are written to their sections of that page;
the first section is that of `console.py`.
"""

import argparse
import importlib
import importlib.util
import os
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import uvicorn
from console_hostile import MARKER, ask_a_person, audit_pages, faults_of, service_pages, sizes, timed
from console_page import Row, put_section, table
from starlette.testclient import TestClient

from bylaw.audit.request import Request
from bylaw.audit.run import audit
from bylaw.audit.waiver import read_waivers
from bylaw.cli.serve import pages_of
from bylaw.console.draft import drafts_of
from bylaw.console.index import Wanted, open_index
from bylaw.console.pack_state import PackStates
from bylaw.console.pages import view_app
from bylaw.console.view import View
from bylaw.pack import load_pack
from bylaw.record import Log
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from bylaw.service.keys import Key, hash_of
from bylaw_lab.clinic.simulator.generate import write

HOME = "http://127.0.0.1"
REFUSED = (303, 401, 403, 404, 413, 415, 422)
FEE = "late-cancel-fee"
OFFERED = ("!= due", "with a patch to take along; nothing is written")
FAULTY = ("Nothing was tried", "with what is wrong with it; nothing ran")
NONE = ("Tried on 0 recent conversations", "on none of them")
UNKNOWN = {"what": "tool", "name": "no_such_tool"}
EACH = 30
"""Waivers that each of two processes writes."""
OTHER = ThreadPoolExecutor(1)
WATCH = "window.hits = 0; window.hit = () => { window.hits += 1; };"
LOOK = """() => {
  const odd = /[\\u0000-\\u0008\\u000b-\\u001f\\u007f\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]/;
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  if (window.hits) found.push("a script ran");
  if (document.querySelector("[id^='zz-']")) found.push("markup became an element");
  if (document.querySelector("img:not([src^='/policy/'])")) found.push("an image was asked for");
  while (texts.nextNode()) {
    const node = texts.currentNode;
    const isShown = !node.parentElement.closest("script, textarea, option");
    if (isShown && odd.test(node.data)) found.push(`hidden: ${node.data.slice(0, 40)}`);
  }
  return found;
}"""


def main() -> int:
    """Try, and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with chromium() as browser:
            shown, faults = shown_inert(folder, browser)
            large = large_ones(folder, browser)
        refused, answered = elsewhere(lambda: tried(folder))
        kept = at_once(folder)
    sections = told(shown, large, refused, kept, in_browser=browser is not None)
    for heading, text in sections.items():
        print(f"## {heading}\n\n{text}\n")
        if given.page is not None:
            put_section(given.page, heading, text)
    for line in (*faults, *answered):
        print(line, file=sys.stderr)
    return 1 if faults or answered or kept != 2 * EACH else 0


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; None where there is none."""
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not executable or importlib.util.find_spec("playwright") is None:
        yield None
        return
    with importlib.import_module("playwright.sync_api").sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@contextmanager
def served(app: Any) -> Iterator[str]:
    """An application on a free port of this machine; its address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = server.force_exit = True
    thread.join(10)


class Watched:
    """A page of the browser that notes whatever it should not have done."""

    def __init__(self, browser: Any) -> None:
        self.page = browser.new_page()
        self.faults: list[str] = []
        self.page.add_init_script(WATCH)
        self.page.on("console", lambda said: said.type == "error" and self.faults.append(said.text))
        self.page.on("pageerror", lambda fault: self.faults.append(str(fault)))
        self.page.on("dialog", lambda dialog: self.faults.append(f"dialog {dialog.message}"))

    def open(self, address: str) -> list[str]:
        """What is not inert in a page."""
        self.faults.clear()
        self.page.goto(address)
        self.page.wait_for_selector("html[data-ready]")
        return [*self.faults, *self.page.evaluate(LOOK)]


def shown_inert(folder: Path, browser: Any) -> tuple[list[Row], list[str]]:
    """By field, on how many pages its hostile text stood; and all that was not inert."""
    rows: list[Row] = []
    audited = elsewhere(lambda: audit_pages(folder))
    faults: list[str] = []
    with Log(str(folder / "hostile.db")) as log:
        for where, (app, paths) in (("an audit", audited), ("a service", elsewhere(lambda: service_pages(log)))):
            seen, wrong = _read(app, paths)
            faults += wrong
            if browser is not None:
                with served(app) as home:
                    here = Watched(browser)
                    faults += [f"{path[:60]}: {fault}" for path in paths for fault in here.open(home + path)]
                    here.page.close()
            rows += [(where, field, str(count)) for field, count in sorted(seen.items())]
    return rows, faults


def _read(app: Any, paths: list[str]) -> tuple[Counter[str], list[str]]:
    reader = TestClient(app, base_url=HOME)
    seen, faults = Counter[str](), list[str]()
    texts = {path: elsewhere(lambda path=path: timed(reader, path)[1]) for path in paths}
    names = {name for text in texts.values() for name in MARKER.findall(text)}
    # A text that was cut may end in the beginning of a name.
    whole = {name for name in names if not any(other != name and other.startswith(name) for other in names)}
    whole |= {name for name in names if name in ("zz-result", "zz-agent", "zz-argument")}
    for path, text in texts.items():
        faults += [f"{path[:60]}: {fault}" for fault in faults_of(text)]
        seen.update(name[3:].replace("-", " ") for name in {*MARKER.findall(text)} & whole)
    return seen, faults


def elsewhere(make: Callable[[], Any]) -> Any:
    """What a function returns, run in the one other thread: this one has the browser's event loop."""
    return OTHER.submit(make).result()


def large_ones(folder: Path, browser: Any) -> list[Row]:
    """Conversations that are large in some way: processor time of the page, its size, and until it is ready."""
    app, made = elsewhere(lambda: sizes(folder))
    reader = TestClient(app, base_url=HOME)
    rows: list[Row] = []
    with served(app) as home:
        here = Watched(browser) if browser is not None else None
        for what, path in made.items():
            spent, text = elsewhere(lambda path=path: timed(reader, path))
            ready = ""
            if here is not None:
                began = time.perf_counter()
                wrong = here.open(home + path)
                ready = f"{(time.perf_counter() - began) * 1000:.0f} ms" + (f" ({wrong[0]})" if wrong else "")
            rows.append((what, f"{spent:.0f} ms", f"{len(text) / 1000:.0f} kB", ready))
        if here is not None:
            here.page.close()
    return rows


def at_once(folder: Path) -> int:
    """Two processes triage the same audit at once; how many waivers the file then holds."""
    findings = [row.id for row in open_index(folder / "small").findings(Wanted(), limit=2 * EACH)]
    parts = (findings[:EACH], findings[EACH:])
    processes = [get_context("spawn").Process(target=waive_all, args=(folder, part)) for part in parts]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return len(read_waivers(folder / "both.yaml").in_force)


def waive_all(folder: Path, names: list[str]) -> None:
    """Waive findings one after the other, as one person does in the page."""
    reader = TestClient(view_app(View(folder / "small", waivers=folder / "both.yaml")), base_url=HOME)
    token = reader.get("/findings").text.split('name="token" value="')[1][:64]
    for name in names:
        form = {"token": token, "by": f"person {os.getpid()}", "reason": "agreed", "expires": "2999-01-01"}
        reader.post(f"/finding/{name}/waive", data=form).raise_for_status()


def tried(folder: Path) -> tuple[list[Row], list[str]]:
    """Requests that must be refused and what became of each; and those that were not."""
    write(folder / "logs", seeds=(2,), count=150)
    logs = folder / "logs"
    audit(Request((logs / "logs.jsonl.gz",), "clinic", logs / "clinic.sqlite"), folder / "small")
    served = folder / "served"
    shutil.copytree(load_pack("clinic").root, served, ignore=shutil.ignore_patterns("__pycache__", "simulator"))
    before = files_of(served)
    with Log(str(folder / "decisions.db")) as log:
        rows: list[Row] = []
        wrong: list[str] = []
        for what, make, *holds in (*of_view(folder), *of_service(log, served)):
            answer = make()
            led = f", led to `{answer.headers['location'].partition('?')[0]}`" if answer.status_code == 303 else ""
            words = f", {holds[1]}" if holds else ""
            rows.append((what, f"{answer.status_code}{led}{words}"))
            is_right = holds[0] in answer.text if holds else answer.status_code in REFUSED
            if not is_right:
                wrong.append(f"{what}: {answer.status_code}")
        changed = [each for each in log.approvals("acme") if each.status != "waiting"]
        if changed or log.every_stop("other") or any(each.lift for each in log.every_stop("acme")):
            wrong.append("something was changed at the service")
    if files_of(served) != before:
        wrong.append("something was written to the pack of the service")
    if (folder / "small.yaml").exists():
        wrong.append("something was written for the audit")
    return rows, wrong


Try = tuple[str, Callable[[], Any]] | tuple[str, Callable[[], Any], str, str]
"""What is tried, and how; where it is answered all the same: what the answer must hold, and how that is told."""


def files_of(folder: Path) -> dict[Path, bytes]:
    """Every file of a folder; what Python keeps beside its sources is none of them."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts}


def of_view(folder: Path) -> list[Try]:
    """Tries at the pages of an audit."""
    view = View(folder / "small", waivers=folder / "small.yaml")
    reader = TestClient(view_app(view), base_url=HOME)
    name = view.index.findings(Wanted(), limit=1)[0].id
    token = reader.get("/findings").text.split('name="token" value="')[1].split('"')[0]
    form = {"token": token, "by": "Mara", "reason": "r", "expires": "2999-01-01"}
    stranger = TestClient(view_app(view), base_url=HOME)
    other = stranger.get("/findings").text.split('name="token" value="')[1][:64]
    waive = f"/finding/{name}/waive"

    def sent(**more: Any) -> Callable[[], Any]:
        return lambda: reader.post(waive, **({"data": form} | more))

    def shown(path: str, **headers: str) -> Callable[[], Any]:
        return lambda: reader.get(path, headers=headers)

    return [
        ("a page under another `Host`", shown("/findings", host="evil.example")),
        ("a page under a `Host` that only begins like ours", shown("/", host="127.0.0.1.evil")),
        ("a change with another site's `Origin`", sent(headers={"origin": "https://evil.example"})),
        ("a change with `Origin: null`", sent(headers={"origin": "null"})),
        ("a change that the browser calls cross-site", sent(headers={"sec-fetch-site": "cross-site"})),
        ("a change that the browser calls same-site", sent(headers={"sec-fetch-site": "same-site"})),
        ("a change without a token", sent(data={key: form[key] for key in ("by", "reason", "expires")})),
        ("a change with another session's token", sent(data=form | {"token": other})),
        ("a change sent as JSON", lambda: reader.post(waive, json=form)),
        ("a change sent as text, which needs no leave of the browser", sent(headers={"content-type": "text/plain"})),
        ("a change by a link", lambda: reader.get(waive, params=form)),
        ("a form of 300 kB", sent(data=form | {"reason": "x" * 300_000})),
        ("a change without a name", sent(data=form | {"by": ""})),
        ("a base that climbs out of the folder", shown("/compare?base=../../etc")),
        ("a finding that is not in the audit", shown("/finding/..%2f..%2fetc")),
        ("a file that is no part of the console", shown("/static/0/..%2f..%2fpage.py")),
    ]


def of_service(log: Log, root: Path) -> list[Try]:
    """Tries at the pages of a service, at which a call of the tenant `acme` waits and a tool is stopped."""
    roles = {"ann": "approve", "rob": "review", "vic": "view"}
    keys = {hash_of(name): Key("acme", role, name) for name, role in roles.items()}
    keys |= {hash_of("agent"): Key("acme"), hash_of("bob"): Key("other", "approve", "bob")}
    pack = load_pack(str(root))
    pages = pages_of(log, pack, keys, HOME, b"s" * 32, ("x-user", "10.0.0.5"))
    app = Service(Desk(pack, log), keys, **pages)
    agent = TestClient(app, base_url=HOME, headers={"authorization": "Bearer agent"})
    waits = ask_a_person(agent, "chat-1")
    stop = log.stop("tool", "issue_refund", by="ann", reason="r", until=time.time() + 3600, tenant="acme").id

    def person(key: str = "", **more: Any) -> TestClient:
        client = TestClient(app, base_url=HOME, follow_redirects=False, **more)
        if key:
            client.post("/sign-in", data={"token": token_of(client), "key": key})
        return client

    def token_of(client: TestClient) -> str:
        # Whoever is signed in has it from a page that was made for them.
        pages = (client.get(path).text for path in ("/stops", "/sign-in"))
        return next(text for text in pages if 'name="token"' in text).split('name="token" value="')[1].split('"')[0]

    def send(whose: str, path: str, **fields: str) -> Callable[[], Any]:
        def make() -> Any:
            client = person(whose)
            return client.post(path, data={"token": token_of(client), "by": "Eve", **fields})

        return make

    def get(key: str, path: str, client: tuple[str, int] = ("10.0.0.9", 1), **headers: str) -> Callable[[], Any]:
        return lambda: person(key, client=client).get(path, headers=headers)

    draft = drafts_of(PackStates(root).now(), FEE)[0]
    edited = {"text": draft.text.replace("== due", "!= due"), "digest": draft.digest}
    reading = {"text": draft.text.replace("\n", "\n    open('/etc/passwd').read()\n", 1)}
    answer = {"id": waits, "word": "approve"}
    making = {"what": "all", "span": "2h", "reason": "r"}
    forged = f"bylaw_key={hash_of('ann')}.99999999999.{'0' * 64}"
    return [
        ("the inbox without signing in", get("", "/inbox")),
        ("the inbox with a forged cookie", get("", "/inbox", cookie=forged)),
        ("events of the inbox without signing in", get("", "/inbox/events")),
        ("a live conversation without signing in", get("", "/live/c/chat-1")),
        ("an answer without signing in", send("", "/inbox/answer", **answer)),
        ("a stop without signing in", send("", "/stops/make", **making)),
        ("signing in with an agent's key", send("", "/sign-in", key="agent")),
        ("signing in with a wrong key", send("", "/sign-in", key="anne")),
        ("signing in with a key's hash", send("", "/sign-in", key=hash_of("ann"))),
        ("signing in with no key", send("", "/sign-in", key="")),
        ("an answer with a viewer's key", send("vic", "/inbox/answer", **answer)),
        ("an answer with a reviewer's key", send("rob", "/inbox/answer", **answer)),
        ("a stop with a reviewer's key", send("rob", "/stops/make", **making)),
        ("lifting a stop with a viewer's key", send("vic", "/stops/lift", id=stop, reason="r")),
        (
            "an attestation with a viewer's key",
            send("vic", "/inbox/attest", conversation="chat-1", card="c", reason="r"),
        ),
        ("an answer to another tenant's call", send("bob", "/inbox/answer", **answer)),
        ("another tenant's conversation", get("bob", "/live/c/chat-1")),
        ("lifting another tenant's stop", send("bob", "/stops/lift", id=stop, reason="r")),
        (
            "an attestation in another tenant's",
            send("bob", "/inbox/attest", conversation="chat-1", card="c", reason="r"),
        ),
        ("the stops without signing in", get("", "/stops")),
        ("a stop with a viewer's key", send("vic", "/stops/make", **making)),
        ("a stop without a reason", send("ann", "/stops/make", **making | {"reason": " "})),
        ("a stop of a tool that the pack does not know", send("ann", "/stops/make", **making | UNKNOWN)),
        ("a stop that never ends", send("ann", "/stops/make", **making | {"span": "9999d"})),
        ("lifting a stop with a reviewer's key", send("rob", "/stops/lift", id=stop, reason="r")),
        ("lifting a stop without a reason", send("ann", "/stops/lift", id=stop, reason="")),
        ("trying a check without signing in", get("", f"/try/{FEE}")),
        ("trying a changed check with a viewer's key", send("vic", f"/try/{FEE}", **edited)),
        ("saving a changed check to the service's pack", send("ann", f"/try/{FEE}/save", **edited)),
        ("trying a changed check with a reviewer's key", send("rob", f"/try/{FEE}", **edited), *OFFERED),
        ("trying a check that would read a file", send("rob", f"/try/{FEE}", **reading), *FAULTY),
        ("trying a check on another tenant's conversations", send("bob", f"/try/{FEE}", **edited), *NONE),
        ("a proxy's header from another address", get("", "/inbox", **{"x-user": "ann"})),
        ("a proxy's header with a name that has no line", get("", "/inbox", ("10.0.0.5", 1), **{"x-user": "eve"})),
    ]


def told(shown: list[Row], large: list[Row], refused: list[Row], kept: int, *, in_browser: bool) -> dict[str, str]:
    """The sections of the page."""
    command = "uv run --with playwright python lab/benchmarks/console_tries.py --page lab/results/pages/console.md"
    made = f"Made by `{command}`."
    opened = "read and opened in Chromium" if in_browser else "read"
    inert = [
        made,
        "",
        "Into each of these fields goes markup that would run a script or load an image, a template's braces,",
        f"bidirectional controls, a terminal's escape and a NUL. The pages that show it were {opened}: nothing ran,",
        "nothing was loaded, no markup became an element, and whatever cannot be seen is spelled out.",
        "",
        *table(("in", "field", "pages that show it"), shown),
        "",
        "Large ones, as the page of their conversation: processor time of the server, size, and until it is ready in",
        "Chromium.",
        "",
        *table(("what", "server", "size", "ready"), large),
    ]
    refusals = [
        made,
        "",
        "None of these changed anything, neither a log nor a pack. The last part is at a service with keys of two",
        "tenants, behind a proxy; what is answered with 200 there says why that is safe.",
        "",
        *table(("try", "answer"), refused),
    ]
    each = f"Two processes waived {EACH} findings each of one audit at the same time."
    together = f"{made}\n\n{each} The file then held {kept} of {2 * EACH}."
    return {"Hostile content": "\n".join(inert), "What is refused": "\n".join(refusals), "Two at once": together}


if __name__ == "__main__":
    sys.exit(main())
