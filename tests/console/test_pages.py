"""The overview and the conversations of an audit, and what hostile logs and packs make of any page."""

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any, cast

import pytest

from bylaw.console.index import Wanted, open_index
from bylaw.console.page import marked, running
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
    first = open_index(out).first(Wanted())
    assert first is not None
    assert f'class="gravest"><a href="/finding/{first.id}"' in page
    assert "Limits of this audit" in page


NEW = ("Violations", "Broken rules", "Near-misses", "Uninformed")
"""Columns that count new findings."""


def test_overview_ranks_policies_and_tells_agents_and_audits_over_time(out: Path) -> None:
    from bylaw.console.pages import view_app
    from bylaw.console.view import View

    shutil.copytree(out, out.parent / "before")
    reader = Reader(view_app(View(out, waivers=out.parent / "waivers.yaml")))
    row = open_index(out).findings(Wanted(verdict="violation"), limit=1)[0]
    reader.send(f"/finding/{row.id}/waive", reason="agreed", expires="2999-01-01")
    page = reader.get("/")
    ranked = re.findall(r'<tr>\s*<th scope="row"><a href="/policy/([^"]+)">(.*?)</tr>', page, re.DOTALL)
    cells = {name: re.findall(r'<td[^>]*data-label="(.*?)">(.*?)</td>', rest) for name, rest in ranked}
    told = {name: {label: re.sub("<[^>]+>", "", cell) for label, cell in row} for name, row in cells.items()}
    counts = open_index(out).by_policy()
    new = [name for name, cells in told.items() if any(cells.get(label, "–") != "–" for label in NEW)]
    assert f", across {len(new)} policies." in page
    assert told.keys() == counts.keys()
    severities = {name: policy["severity"] for name, policy in json.loads((out / "policies.json").read_text()).items()}
    wrong = ("Violations", "Broken rules")
    high = [cells for name, cells in told.items() if severities[name] == "high"]
    grave = [sum(int(cells[label].replace("–", "0")) for label in wrong) for cells in high]
    assert grave == sorted(grave, reverse=True)
    before = open_index(out).verdicts_by_policy()[row.policy]["violation"]
    assert told[row.policy]["Violations"] == (str(before - 1) if before > 1 else "–")
    assert told[row.policy]["Waived"] == "1"
    assert {name: cells["Undecided"] for name, cells in told.items() if cells["Undecided"] != "–"} == {
        name: str(states["open"]) for name, states in counts.items() if states["open"]
    }
    agents = data_of(page, "bylaw-chart")["overview"]["agents"]
    assert {each["agent"] for each in agents} == {"careful", "forgetful", "hasty", "over-eager", "trusting"}
    rates = [each["violation_rate"] for each in agents]
    assert all(rate["low"] <= rate["value"] <= rate["high"] < 1 for rate in rates)
    assert 'href="/compare?base=before"' in page


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
    assert sentence[1].startswith("1 new ")
    assert gone in reader.get("/findings?state=new")
    assert "no earlier audit" in reader.get("/findings?base=../../etc", status=422)


def test_every_conversation_has_a_page_and_is_found_by_what_was_said(
    reader: Reader, out: Path, audited_once: Path
) -> None:
    with gzip.open(audited_once / "logs.jsonl.gz") as lines:
        logged = {record["id"]: record for record in map(json.loads, lines)}
    rows = {row.name: row for row in open_index(out).conversations(limit=1000)}
    assert rows.keys() == logged.keys()
    kinds = {
        "flagged": next(row for row in rows.values() if row.flagged),
        "compliant": next(row for row in rows.values() if row.calls and not row.flagged),
        "unjudged": next(row for row in rows.values() if not row.calls),
    }
    for kind, row in kinds.items():
        data = data_of(reader.get(f"/c/{row.name}"), "bylaw-conversation")
        assert data["total"] == len(data["conversation"]["events"]) > 0
        assert len(data["findings"]) == row.flagged
        words = next(each["content"] for each in logged[row.name]["messages"] if each["role"] == "user")
        for wanted in ({"q": row.name}, {"q": words, "kind": kind}):
            assert f'href="/c/{row.name}"' in reader.get("/conversations", params=wanted)
        other = next(name for name in kinds if name != kind)
        assert f'href="/c/{row.name}"' not in reader.get("/conversations", params={"q": row.name, "kind": other})
    assert f"{len(logged)} conversations, including those" in reader.get("/conversations")


def test_the_list_says_where_conversations_are_lacking(out: Path, audited_once: Path, tmp_path: Path) -> None:
    from bylaw.console.pages import view_app
    from bylaw.console.view import View

    audited = json.loads((out / "audited.json").read_bytes())
    with gzip.open(audited_once / "logs.jsonl.gz") as lines:
        first = next(lines)
    (tmp_path / "fewer.jsonl").write_bytes(first)
    for logs, told in (("gone.jsonl", "are not available"), (str(tmp_path / "fewer.jsonl"), "have changed")):
        (out / "audited.json").write_text(json.dumps(audited | {"logs": [logs]}))
        (out / "console.db").unlink(missing_ok=True)
        assert told in Reader(view_app(View(out))).get("/conversations")


def test_logs_named_from_the_folder_of_the_audit_are_found_from_another(
    audited_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bylaw.audit.request import Request, conversations_in_logs, write_audited

    monkeypatch.chdir(audited_once)
    write_audited(Request((Path("logs.jsonl.gz"),), "clinic"), tmp_path)
    monkeypatch.chdir(tmp_path)
    assert next(conversations_in_logs(tmp_path))["events"]


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
            return {key: spoil(each, key) for key, each in cast("dict[str, Any]", value).items()}
        if isinstance(value, list):
            return [spoil(each, name) for each in cast("list[Any]", value)]
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
    assert "has no values" in reader.send(f"/finding/{name}/case", status=422, want="deny")


def test_a_time_ago_says_when_that_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1_794_960_000.0)
    assert str(running(3600)) == '<span data-ago="3600" title="2026-11-17 23:00 UTC">60 min</span>'
    assert str(running(600, down=True)) == '<span data-left="600" title="2026-11-18 00:10 UTC">10 min</span>'


def test_a_name_in_a_reason_is_code_and_not_in_backticks() -> None:
    assert marked("no such `Order`, **never**") == "<bdi>no such <code>Order</code>, <strong>never</strong></bdi>"
    assert marked("`<b>\u202e`") == '<bdi><code>&lt;b&gt;<span class="unseen">U+202E</span></code></bdi>'


def test_one_search_finds_policies_findings_and_conversations(reader: Reader, out: Path) -> None:
    index = open_index(out)
    row = index.findings(Wanted(), limit=1)[0]
    page = reader.get(f"/search?q={row.conversation}")
    every = index.findings(Wanted(state="all", q=row.conversation), limit=100)
    assert f"<h2>{len(every)} finding" in page
    assert f'href="/finding/{every[0].id}"' in page
    assert f'href="/c/{row.conversation}"' in page
    page = reader.get("/search?q=REFUND+cap")
    assert 'href="/policy/refund-cap"' in page
    assert "Nothing matches" in reader.get("/search?q=zzzunheardof")
    assert "Nothing matches" not in reader.get("/search")
