"""The overview and the conversations of an audit, and what hostile logs and packs make of any page."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from bylaw.console.index import Wanted, open_index
from tests.console.conftest import Reader

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>'\"{{7*7}}\u202egnp\u0000\u001b[31m"


def data_of(page: str, element: str) -> Any:
    """What an element of a page is fed."""
    found = re.search(rf'<{element}[^>]*><script type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_overview_begins_with_what_there_is_to_know(reader: Reader, out: Path) -> None:
    page = reader.get("/")
    counts = open_index(out).verdicts(Wanted())
    sentence = re.search(r'<h1 class="sentence">(.*?)</h1>', page)
    assert sentence is not None
    assert f"{counts['violation']} violations" in sentence[1]
    assert f"{counts['broken']} broken rules" in sentence[1]
    first = open_index(out).findings(Wanted(), limit=1)[0]
    assert f'class="gravest"><a href="/finding/{first.id}"' in page
    assert "What this audit could not see" in page


def test_overview_against_an_earlier_audit_counts_what_is_new(out: Path, pack: Path) -> None:
    from bylaw.console.pages import view_app
    from bylaw.console.view import View

    before = out.parent / "before"
    shutil.copytree(out, before)
    lines = (before / "calls.jsonl").read_text().splitlines(keepends=True)
    gone = next(json.loads(line)["finding"] for line in lines if json.loads(line).get("finding"))
    (before / "calls.jsonl").write_text("".join(line for line in lines if gone not in line))
    (before / "console.db").unlink(missing_ok=True)
    reader = Reader(view_app(View(out, base=before)))
    sentence = re.search(r'<h1 class="sentence">(.*?)</h1>', reader.get("/"))
    assert sentence is not None
    assert sentence[1].startswith("New 1 ")
    assert gone in reader.get("/findings?state=new")
    assert "no earlier audit" in reader.get("/findings?base=../../etc", status=422)


def test_every_judged_conversation_has_a_page(reader: Reader, out: Path) -> None:
    rows = open_index(out).conversations(limit=1000)
    assert any(row.place is None for row in rows), "a compliant one, which the audit did not keep"
    for row in [next(row for row in rows if row.place is None), next(row for row in rows if row.flagged)]:
        data = data_of(reader.get(f"/c/{row.name}"), "bylaw-conversation")
        assert data["total"] == len(data["conversation"]["events"]) > 0
        assert len(data["findings"]) == row.flagged
        assert row.name in reader.get("/conversations", params={"q": row.name})


def test_a_conversation_of_thousands_of_steps_is_shown_in_parts(reader: Reader, out: Path) -> None:
    from bylaw.console.pages import view_app
    from bylaw.console.view import View

    told = json.loads((out / "conversations.jsonl").read_text().splitlines()[0])
    told["events"] = told["events"] + [{"type": "message", "by": "user", "text": "x" * 3000}] * 5000
    rest = (out / "conversations.jsonl").read_text().splitlines(keepends=True)[1:]
    (out / "conversations.jsonl").write_text(json.dumps(told) + "\n" + "".join(rest))
    page = Reader(view_app(View(out))).get(f"/c/{told['trajectory']}?from=4800")
    data = data_of(page, "bylaw-conversation")
    assert data["from"] == 4800
    assert len(data["conversation"]["events"]) == len(told["events"]) - 4800
    assert len(page) < 2_000_000


@pytest.fixture
def hostile(out: Path, pack: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """The same audit with markup, escapes and a megabyte in every text that came from a log or a pack."""
    from bylaw.console.pages import view_app
    from bylaw.console.view import View

    def spoil(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: spoil(each, key) for key, each in value.items()}
        if isinstance(value, list):
            return [spoil(each, name) for each in value]
        free = ("text", "because", "agent", "tool", "claim", "value", "question", "rule", "sentence", "heading")
        return f"{value}{HOSTILE}" if isinstance(value, str) and name in (*free, "definition", "file") else value

    for name in ("calls.jsonl", "findings.jsonl", "conversations.jsonl"):
        lines = [spoil(json.loads(line)) for line in (out / name).read_text().splitlines()]
        if name == "conversations.jsonl":
            lines[0]["events"][0]["text"] = HOSTILE + "y" * 1_000_000
        (out / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name in ("policies.json", "summary.json"):
        (out / name).write_text(json.dumps(spoil(json.loads((out / name).read_text()))))
    monkeypatch.chdir(out.parent)
    return Reader(view_app(View(out, pack=str(pack))))


def pages_of(out: Path) -> list[str]:
    index = open_index(out)
    kinds = [index.findings(Wanted(state="all", verdict=verdict), limit=1) for verdict in ("violation", "broken")]
    rows = [row for found in kinds for row in found]
    told = json.loads((out / "conversations.jsonl").read_text().splitlines()[0])["trajectory"]
    return [
        "/",
        "/findings",
        "/findings?state=all&reason=" + rows[0].reason,
        "/findings?state=open",
        *(f"/finding/{row.id}" for row in rows),
        "/conversations",
        f"/c/{told}",
    ]


def test_hostile_text_is_shown_inert(hostile: Reader, out: Path) -> None:
    for path in pages_of(out):
        page = hostile.get(path)
        assert "<script>alert" not in page, path
        assert "<img" not in page, path
        # What an option of a filter sends is what the log says; what it shows is not.
        shown = re.sub(r"(?s)<script.*?</script>|=\"[^\"]*\"", "", page)
        assert "\u202e" not in shown, path
        assert "\u001b" not in shown, path
        assert "49gnp" not in page, path
        scripts = re.findall(r"<script(?![^>]*(?:src=|application/json))", page)
        assert scripts == [], path
        assert not re.search(r"<[^>]*\son\w+\s*=", re.sub(r"<bdi>.*?</bdi>", "", shown)), path
        assert len(page) < 2_000_000, path


def test_a_redacted_audit_shows_no_word_of_its_logs(audited_once: Path, tmp_path: Path, pack: Path) -> None:
    from msgspec.structs import replace

    from bylaw.audit.redaction import redaction_key
    from bylaw.audit.request import Request
    from bylaw.audit.run import audit
    from bylaw.console.pages import view_app
    from bylaw.console.view import View

    request = Request((audited_once / "logs.jsonl.gz",), "clinic", audited_once / "clinic.sqlite")
    audit(replace(request, key=redaction_key("a key for the tests")), tmp_path / "out")
    plain = json.loads((audited_once / "out" / "conversations.jsonl").read_text().splitlines()[0])
    said = next(event["text"] for event in plain["events"] if event["type"] == "message")
    reader = Reader(view_app(View(tmp_path / "out", pack=str(pack))))
    for path in pages_of(tmp_path / "out"):
        page = reader.get(path)
        assert said not in page
        assert plain["trajectory"] not in page
        assert "logs.jsonl.gz" not in page
    name = open_index(tmp_path / "out").findings(Wanted(), limit=1)[0].id
    assert "holds no values" in reader.send(f"/finding/{name}/case", status=422, want="deny")
