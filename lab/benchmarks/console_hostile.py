"""Puts hostile text into every field that other people fill, and checks how the console shows it.

    uv run python lab/benchmarks/console_hostile.py [--page lab/results/pages/console.md]

The exit status is 1 if anything in a page could run, load, or change the text direction. `--page` writes the table to
its section of that page.
"""

import argparse
import gzip
import json
import re
import shutil
import sys
import tempfile
import unicodedata
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

from console_page import put_section, table
from starlette.testclient import TestClient

from bylaw.audit.request import Request, write_audited
from bylaw.audit.run import audit
from bylaw.cli.serve import pages_of
from bylaw.console.index import Wanted, open_index
from bylaw.console.pages import view_app
from bylaw.console.view import View
from bylaw.pack import load_pack
from bylaw.policy.folder import find_folder
from bylaw.record import Log
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from bylaw_lab.clinic.simulator.generate import write

HOME = "http://127.0.0.1"
BIDI = "\u202e\u2066\u200f"
MARKER = re.compile(r"zz-([a-z-]+[a-z])")
FIELDS = set[str]()
"""The fields that got hostile text. A page may also show the beginning of a marker."""
PAGE = """Made by `uv run python lab/benchmarks/console_hostile.py --page lab/results/pages/console.md`.

Into each of these fields goes markup that would run a script or load an image, a template's braces, bidirectional
controls, a terminal escape and a NUL. The HTML of each page is parsed: anything in it that could run, load, or change
the text direction is a fault.
"""
_OURS = ("/", "?", "#", "data:image/svg+xml")
_NEVER = frozenset(("iframe", "object", "embed", "base", "svg-script", "style"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Log(f"{folder}/decisions.sqlite") as log:
        desks = {"an audit": audit_pages(Path(folder)), "a service": service_pages(log)}
        shown, faults = read_pages(desks)
    rows = [(desk, field, str(count)) for (desk, field), count in sorted(shown.items())]
    text = "\n".join((PAGE, *table(("in", "field", "pages that show it"), rows), "", f"Faults: {len(faults)}."))
    print(text, *faults, sep="\n")
    if given.page is not None:
        put_section(given.page, "Hostile content", text)
    return 1 if faults else 0


def read_pages(desks: dict[str, tuple[Any, list[str]]]) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Count the pages that show each hostile field, and return every fault."""
    shown, faults = Counter[tuple[str, str]](), list[str]()
    for desk, (app, paths) in desks.items():
        reader = TestClient(app, base_url=HOME)
        for path in paths:
            answer = reader.get(path)
            assert answer.status_code == 200, (path, answer.text[:500])
            found = {field.replace("-", " ") for field in MARKER.findall(answer.text)}
            shown.update((desk, field) for field in found & FIELDS)
            faults += [f"{desk} {path}: {fault}" for fault in faults_of(answer.text)]
    return shown, faults


def hostile(field: str, *, slash: str = "/") -> str:
    """Return markup that would call `hit`, template braces, bidirectional controls, a terminal escape and a NUL."""
    FIELDS.add(field)
    name = f"zz-{field.replace(' ', '-')}"
    return (
        f"{name} <img src=x onerror=hit()><b id='{name}'>\"'><{slash}script><script>hit()<{slash}script>"
        f"{{{{7*7}}}}{BIDI}gnp\x1b[31m\x00"
    )


class Inert(HTMLParser):
    """Parses a page and records everything in it that would run, load, or change the text direction."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.faults: list[str] = []
        self._script = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._script = given.get("type") or given.get("src", "inline") if tag == "script" else ""
        ours = self._script == "application/json" or self._script.startswith("/static/")
        if tag in _NEVER or (tag == "script" and not ours) or given.get("id", "").startswith("zz-"):
            self.faults.append(f"<{tag}>")
        if tag == "img" and not given.get("src", "").startswith("/policy/"):
            self.faults.append("<img>")
        for name, value in given.items():
            if name.startswith("on") or (name in ("href", "src", "action") and not value.startswith(_OURS)):
                self.faults.append(f"{name}={value[:40]}")

    def handle_data(self, data: str) -> None:
        if self._script:
            self.faults += ["< in JSON"] if self._script == "application/json" and "<" in data else []
        elif any(is_hidden(each) for each in data):
            self.faults.append(f"hidden characters in {data[:40]!r}")

    def handle_endtag(self, tag: str) -> None:
        self._script = ""


def is_hidden(character: str) -> bool:
    """Whether a character is invisible or changes the text direction. Possible line breaks are ignored."""
    return unicodedata.category(character) in ("Cc", "Cf") and character not in "\n\t\u00ad\u200b"


def faults_of(text: str) -> list[str]:
    """Return everything in a page that could run, load, or change the text direction."""
    reader = Inert()
    reader.feed(text)
    return reader.faults


def spoiled_logs(folder: Path) -> Path:
    """Return simulated conversations with hostile text in every field of a log."""
    write(folder / "plain", seeds=(1,), count=40)
    with gzip.open(folder / "plain" / "logs.jsonl.gz") as lines:
        records = [json.loads(line) for line in lines]
    path = folder / f"{hostile('log file', slash='').replace(chr(0), '')}.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number, record in enumerate(records):
            record["id"] += f" {hostile('conversation name')}"
            record["agent"] += f" {hostile('agent')}"
            for message in record["messages"]:
                _spoil(message, is_odd=number % 2 == 1)
            call = {"id": "odd", "type": "function", "function": {"name": hostile("tool"), "arguments": "{}"}}
            record["messages"].append({"role": "assistant", "content": None, "tool_calls": [call]})
            file.write(json.dumps(record) + "\n")
    return path


def _spoil(message: dict[str, Any], *, is_odd: bool) -> None:
    match message["role"]:
        case "user":
            message["content"] += f" {hostile('user message')}"
        case "assistant":
            if message.get("content"):
                message["content"] += f" {hostile('agent message')}"
            for call in message.get("tool_calls") or () if is_odd else ():
                add(call["function"], "arguments", {hostile("argument name"): hostile("argument")})
        case "tool":
            add(message, "content", {hostile("result name"): hostile("result")})
        case _:
            pass


def add(record: dict[str, Any], name: str, more: dict[str, Any]) -> None:
    """Add a field to an object in the JSON text of a record. Some logs contain other text on purpose."""
    try:
        given = json.loads(record[name])
    except ValueError:
        return
    if isinstance(given, dict):
        record[name] = json.dumps(given | more)


def spoiled_pack(folder: Path) -> Path:
    """Return the clinic pack with hostile text in its document, definitions, reasons and cases."""
    made = folder / "pack"
    shutil.copytree(find_folder("clinic"), made, ignore=shutil.ignore_patterns("__pycache__", "simulator", "tasks"))

    def change(name: str, old: str, new: str) -> None:
        path = made / name
        text = path.read_text(encoding="utf-8")
        assert old in text, (name, old)
        path.write_text(text.replace(old, new), encoding="utf-8")

    said = "An appointment is moved or cancelled only when it is the patient's own"
    worse = hostile("sentence", slash="").replace("\x00", "").replace("\x1b", "")
    change("policy.md", said, f"{said} {worse}")
    text = (made / "policies.yaml").read_text(encoding="utf-8")
    text = text.replace(f'"{said}."', json.dumps(f"{said} {worse}."))
    own = "Only the patient's own appointment is moved or cancelled."
    text = text.replace(f'"{own}"', json.dumps(f"{own} {hostile('definition')}"))
    (made / "policies.yaml").write_text(text, encoding="utf-8")
    reason = json.dumps(f"the appointment is somebody else's {hostile('reason of a guard')}")
    change("guards/appointments.py", '"the appointment is somebody else\'s"', reason)
    note = "note: somebody else's is not, however close the caller is"
    name = next(path for path in (made / "cases").glob("*.yaml") if note in path.read_text(encoding="utf-8"))
    change(f"cases/{name.name}", note, f"note: {json.dumps(hostile('note of a case'))}")
    return made


def audit_pages(folder: Path) -> tuple[Any, list[str]]:
    """Return the hostile audit in the console, and the addresses of its pages. Notes by reviewers are hostile too."""
    pack = spoiled_pack(folder)
    request = Request((spoiled_logs(folder),), str(pack))
    audit(request, folder / "out")
    write_audited(request, folder / "out")
    app = view_app(View(folder / "out", pack=str(pack), waivers=folder / "waivers.yaml"))
    index = open_index(folder / "out")
    rows = index.findings(Wanted(state="all"), limit=500)
    owner = next(row for row in rows if row.policy == "appointment-owner")
    other, opened = rows[0], next(row for row in rows if row.verdict == "inconclusive")
    reader = TestClient(app, base_url=HOME)

    def send(path: str, **fields: str) -> None:
        token = reader.get("/findings").text.split('name="token" value="')[1][:64]
        answer = reader.post(path, data={"token": token, "by": hostile("name of a person"), **fields})
        assert answer.status_code == 200, answer.text[:2000]

    send(f"/finding/{quote(other.id)}/waive", reason=hostile("reason of a waiver"), expires="2999-01-01", of="finding")
    send(f"/finding/{quote(opened.id)}/attest", reason=hostile("reason of an attestation"), answer="fine")
    send("/policy/appointment-owner/comment", text=hostile("comment"))
    send("/policy/appointment-owner/sign", word="rejected", note=hostile("note of a signature"), digest=digest(reader))
    chosen = (owner, other, opened, next(row for row in rows if row.verdict == "broken"))
    paths = ["/", "/findings", "/findings?state=all", "/findings?state=open", f"/findings?q={quote(hostile('search'))}"]
    paths += [f"/findings?state=all&reason={row.reason}&open={quote(row.id)}" for row in chosen]
    paths += [f"/finding/{quote(row.id)}" for row in chosen]
    paths += [f"/c/{quote(row.conversation)}" for row in chosen]
    paths += ["/conversations", f"/conversations?q={quote(hostile('search'))}", "/policy", "/policy/appointment-owner"]
    return app, [*paths, "/try/appointment-owner", "/compare"]


def digest(reader: TestClient) -> str:
    """Return the form fields that sign the hostile policy."""
    found = re.search(r'name="digest" value="([0-9a-f]+)"', reader.get("/policy/appointment-owner").text)
    assert found is not None
    return found[1]


def service_pages(log: Log) -> tuple[Any, list[str]]:
    """Return a service with hostile conversations, and the addresses of its pages."""
    pack = load_pack("clinic")
    app = Service(Desk(pack, log), {}, **pages_of(log, pack, {}, "", b"s" * 32))
    client = TestClient(app, base_url=HOME)
    name = hostile("conversation name").replace("\x00", "")
    answered, _ = ask_a_person(client, f"1 {name}"), ask_a_person(client, f"2 {name}")

    def send(path: str, **fields: str) -> None:
        token = client.get("/stops").text.split('name="token" value="')[1][:64]
        answer = client.post(path, data={"token": token, "by": hostile("name of a person"), **fields})
        assert answer.status_code == 200, answer.text[:2000]

    agent, why = hostile("agent").replace("\x00", ""), hostile("reason of a stop")
    send("/stops/make", what="agent", name=agent, span="2h", reason=why, answer="ask")
    send("/inbox/answer", id=answered, word="reject", note=hostile("note of an answer"))
    return app, ["/inbox", "/live", f"/live?q={quote(hostile('search'))}", f"/live/c/{quote(f'1 {name}')}", "/stops"]


def ask_a_person(client: TestClient, name: str) -> str:
    """Add a conversation in which a call waits for a person, and return the approval."""

    def decide(tool: str, arguments: dict[str, Any], id: str, *events: dict[str, Any], **more: Any) -> Any:
        call = {"conversation": name, "tool": tool, "arguments": arguments, "id": id, "events": list(events), **more}
        answer = client.post("/v1/decide", json=call)
        assert answer.status_code == 200, answer.text
        return answer.json()["decisions"][0]

    said = [{"user": hostile("user message")}, {"agent": hostile("agent message")}]
    told = {"context": {hostile("name in the context"): hostile("context")}, "agent": hostile("agent")}
    more = {hostile("result name"): hostile("result")}
    patient = {"patient_id": "P121", "status": "active", "membership_id": "M878", "late_waivers_used": 0, **more}
    booked = {"appointment_id": "A0362", "patient_id": "P121", "status": "booked", "specialist": False}
    decide(hostile("tool"), {hostile("argument name"): hostile("argument")}, "z", *said, **told)
    decide("get_patient", {"patient_id": "P121"}, "a")
    decide("get_appointment", {"appointment_id": "A0362"}, "b", {"result": patient, "call": "a"})
    shown = {"result": {**booked, "starts_at": "2025-03-12T16:00:00", **more}, "call": "b"}
    decide("get_membership", {"membership_id": "M878"}, "c", shown)
    # The membership record shows no tier, so a person is asked.
    cancel = {"patient_id": "P121", "appointment_id": "A0362", "late_fee": "0.00", "reason": "illness"}
    asked = {"agent": "I'm about to cancel A0362 for P121, for illness, with a fee of 0.00. Shall I go ahead?"}
    waits = decide("cancel_appointment", cancel, "d", {"result": more, "call": "c"}, asked, {"user": "Yes, please."})
    assert waits["approval"], waits
    return waits["approval"]


if __name__ == "__main__":
    sys.exit(main())
