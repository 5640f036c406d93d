"""One audit in every output: the counts are the same, and a number leads to a list of its length."""

import base64
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bylaw.audit.store import Store
from tests.command import bylaw
from tests.suite import Demo

pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")
pytest.importorskip("starlette")
pytest.importorskip("jinja2")
CALLS = ("violations", "near_misses", "uninformed", "undecided")


@pytest.fixture(scope="module")
def folder(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's conversations, audited once into every format."""
    place = tmp_path_factory.mktemp("counts")
    given = [str(demo.folder / "bylaw-demo" / name) for name in ("logs.jsonl.gz", "clinic.sqlite")]
    options = ["--pack", "clinic", "--world", given[1], "--format", "both", "--report", "--jobs", "1"]
    done = bylaw(place, "audit", given[0], *options)
    assert done.returncode == 0, done.stderr
    (place / "terminal.txt").write_text(done.stdout)
    return place


@pytest.fixture(scope="module")
def counts(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "out" / "summary.json").read_bytes())["counts"]
    assert all(found[name] for name in ("violations", "near_misses", "undecided", "broken_rules"))
    assert found["refused"]["violations"]
    return found


@pytest.fixture(scope="module")
def pages(folder: Path) -> Any:
    from bylaw.console.pages import view_app
    from bylaw.console.view import View
    from tests.console.conftest import Reader

    return Reader(view_app(View(folder / "out")))


def test_the_lines_hold_as_many_findings_as_the_summary_counts(folder: Path, counts: dict[str, Any]) -> None:
    store = Store(folder / "out")
    findings = list(store.findings())
    for refused, want in ((False, counts), (True, counts["refused"])):
        own = [each for each in findings if each.kind == "call" and (each.executed is False) is refused]
        verdicts = [each.verdict for each in own]
        assert [verdicts.count(name) for name in ("violation", "near_miss", "uninformed")] == [
            want[name] for name in CALLS[:3]
        ]
    assert sum(each.kind == "rule" for each in findings) == counts["broken_rules"]


def test_the_terminal_prints_the_counts(folder: Path, counts: dict[str, Any]) -> None:
    told = " ".join((folder / "terminal.txt").read_text().split())
    refused = counts["refused"]
    assert told.startswith(
        f"{counts['violations']} violations, {counts['near_misses']} near-misses, {counts['undecided']} undecided in "
        f"{counts['calls']} executed calls of {counts['conversations']} conversations. "
        f"Rules were broken {counts['broken_rules']} times. Refused by the tool, not counted above: "
        f"{refused['violations']} violations, {refused['near_misses']} near-misses, {refused['undecided']} undecided."
    )
    assert f"Undecided: {counts['undecided']} calls to review" in told


def test_a_query_counts_the_same(folder: Path, counts: dict[str, Any]) -> None:
    done = bylaw(folder, "sql", "out", "counts", "--to", "jsonl")
    executed, refused = map(json.loads, done.stdout.splitlines())
    names = ("calls", *CALLS)
    assert {name: executed[name] for name in (*names, "broken_rules")} == {
        name: counts[name] for name in (*names, "broken_rules")
    }
    assert {name: refused[name] for name in names} == {name: counts["refused"][name] for name in names}


def test_a_query_counts_broken_rules_where_no_call_was_made(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    talk = {"id": "one", "messages": [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}]}
    (tmp_path / "logs.jsonl").write_text(json.dumps(talk) + "\n")
    bylaw(tmp_path, "audit", "logs.jsonl", "--pack", "clinic", "--format", "both")
    executed, refused = map(json.loads, bylaw(tmp_path, "sql", "out", "counts", "--to", "jsonl").stdout.splitlines())
    assert (executed["calls"], executed["broken_rules"], refused["calls"]) == (0, 0, 0)


def report_data(folder: Path) -> dict[str, Any]:
    page = (folder / "out" / "report.html").read_text()
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def rows_of(folder: Path) -> Iterator[dict[str, Any]]:
    """The rows of the report's list, as its script reads them."""
    data = report_data(folder)
    words = data["words"]
    for row in data["findings"]:
        yield {
            "tool": words[row[4]],
            "executed": row[5] != 0,
            "verdict": words[row[6]],
            "policies": [words[each] for each in row[8]],
            "facts": [[words[each] for each in fact] for fact in row[9]],
        }


def test_the_report_lists_what_its_bars_count(folder: Path, counts: dict[str, Any]) -> None:
    rows = [row for row in rows_of(folder) if row["executed"]]
    overview, calls = report_data(folder)["overview"], [row for row in rows if row["verdict"] != "broken"]
    assert report_data(folder)["counts"] == counts
    for verdict, name in (("violation", "violations"), ("near_miss", "near_misses"), ("broken", "broken_rules")):
        assert sum(row["verdict"] == verdict for row in rows) == counts[name]
    for tool in overview["by_tool"]:
        bar = sum(count for verdict, count in tool["verdicts"] if verdict != "compliant")
        assert sum(row["tool"] == tool["name"] for row in calls) == bar
    for policy in overview["by_policy"]:
        bar = sum(count for verdict, count in policy["verdicts"] if verdict != "compliant")
        assert sum(policy["name"] in row["policies"] for row in calls) == bar
    for rule in overview["by_rule"]:
        assert sum(row["tool"] == rule["name"] for row in rows if row["verdict"] == "broken") == rule["broken"]
    missed = [row for row in calls if row["verdict"] in ("near_miss", "uninformed")]
    for lookup in overview["by_lookup"]:
        assert sum(lookup["name"] in {fact[2] for fact in row["facts"]} for row in missed) == lookup["lacked"]
    for reason, count in overview["by_reason"]:
        assert sum(reason in {fact[1] for fact in row["facts"]} for row in missed) == count
    assert report_data(folder)["open"]["calls"] == counts["undecided"] == len(report_data(folder)["open"]["list"])


def test_the_console_counts_and_lists_the_same(pages: Any, counts: dict[str, Any]) -> None:
    overview = pages.get("/")
    for label, count in (
        ("Violations", counts["violations"]),
        ("Near-misses", counts["near_misses"]),
        ("Broken rules", counts["broken_rules"]),
        ("Undecided", counts["undecided"]),
        ("Refused by the tool", sum(counts["refused"][name] for name in CALLS)),
    ):
        assert re.search(rf"<dt>{label}</dt><dd[^>]*><a [^>]*>{count}</a>", overview), label


def test_every_number_of_the_overview_leads_to_a_list_of_that_length(pages: Any) -> None:
    overview = pages.get("/")
    links = re.findall(r'<a (?:class="bad" )?href="(/findings[^"]*)"[^>]*>(?:<b>)?([\d,]+)(?:</b>)?</a>', overview)
    assert len(links) > 20
    for address, count in links:
        page = pages.get(address.replace("&amp;", "&"))
        listed = re.findall(r'<b class="count">([\d,]+)</b>', page)
        assert sum(int(each.replace(",", "")) for each in listed) == int(count.replace(",", "")), address


def test_a_policy_has_the_counts_of_the_summary(folder: Path, pages: Any) -> None:
    summary = Store(folder / "out").summary
    overview = pages.get("/")
    for name, row in summary["by_policy"].items():
        for verdict in ("violation", "near_miss"):
            count = row[summary["criterion"]][verdict]
            link = rf'href="/findings\?policy={name}&amp;verdict={verdict}"[^>]*><b>(\d+)</b>'
            found = re.search(link, overview)
            assert (int(found[1]) if found else 0) == count, (name, verdict)


def test_blocks_of_the_report_unpack(folder: Path) -> None:
    page = (folder / "out" / "report.html").read_text()
    blocks = re.findall(r'id="findings-\d+">([^<]+)<', page)
    held = [each for block in blocks for each in json.loads(zlib.decompress(base64.b64decode(block)))]
    assert len(held) == len(report_data(folder)["findings"])
