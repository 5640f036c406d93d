"""The report as a reader meets it, in real Chromium.

    uv run --with playwright pytest tests/report/browser

It needs `chromium` on the path (or its path in CHROMIUM) and, for the accessibility checks, npm (or the path of
axe.min.js in AXE_CORE). Without them these tests skip.
"""

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bylaw.audit.report import write_report
from tests.report import audit_folders

Open = Callable[..., Any]
HEADINGS = """[...document.querySelectorAll("h1, h2, h3, h4, h5, h6")]
  .filter((each) => each.offsetParent).map((each) => each.tagName)"""
SIZES = ("phone", "desktop")
SECTIONS = ("opening", "agents", "tools", "lookups", "policies", "findings", "limits", "terms")


@pytest.mark.parametrize("size", SIZES)
def test_page_opens_on_the_drawing(visit: Open, clinic: Path, size: str) -> None:
    here = visit(clinic, size)
    opening = here.page.locator("#opening")
    assert re.fullmatch(
        r"The membership of Patient \S+ was only claimed by the user\.", opening.locator("h1").inner_text()
    )
    assert "It took the user’s word for it." in opening.locator(".story").inner_text()
    assert "turned out to be allowed" in opening.inner_text()
    gap = opening.locator(".lacked")
    assert "membership" in gap.inner_text()
    assert "No tool result showed it" in gap.inner_text()
    assert "Gold member" in gap.locator("q").inner_text()
    assert "get_patient(patient_id" in gap.inner_text()
    assert opening.locator(".had").count() == 2
    assert "waived for Gold members only" in opening.locator("blockquote").inner_text()
    box = opening.locator(".call").bounding_box()
    assert box["y"] + 100 < here.page.viewport_size["height"]


def test_drawing_joins_the_call_to_its_facts_and_leaves_the_gap_open(visit: Open, clinic: Path) -> None:
    lines = visit(clinic).page.locator("#opening .lines")
    assert lines.locator("path.need").count() == 3
    assert lines.locator("path.seen").count() == 2
    assert (
        lines.locator("path.gap").count()
        == lines.locator("path.cross").count()
        == lines.locator("path.claimed").count()
        == 1
    )


@pytest.mark.parametrize("size", SIZES)
def test_every_section_is_there_and_nothing_scrolls_sideways(visit: Open, clinic: Path, size: str) -> None:
    here = visit(clinic, size)
    for section in SECTIONS:
        here.page.locator(f"#{section}").scroll_into_view_if_needed()
        assert here.page.locator(f"#{section} :is(h1, h2)").first.inner_text()
    for details in here.page.locator("details").all():
        details.locator("summary").click()
    assert here.has_no_sideways_scroll()
    assert here.page.locator("details table").count() >= 5


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(visit: Open, axe: str, clinic: Path, size: str, scheme: str) -> None:
    here = visit(clinic, size, scheme)
    for details in here.page.locator("details").all():
        details.locator("summary").click()
    assert here.serious(axe) == []
    here.page.locator("#list a").nth(3).click()
    here.page.locator("#detail .events").wait_for()
    assert here.serious(axe) == []


def test_axe_finds_nothing_serious_in_a_hostile_or_large_page(
    visit: Open, axe: str, hostile: Path, large: Path
) -> None:
    for report in (hostile, large):
        assert visit(report).serious(axe) == []


def test_the_page_names_a_criterion_only_where_it_is_the_papers(visit: Open, tmp_path: Path) -> None:
    out = audit_folders.clinic(tmp_path / "clinic")
    whole = visit(write_report(out)).page.locator("body").inner_text().lower()
    assert "strict" not in whole
    assert "determined" not in whole
    summary = json.loads((out / "summary.json").read_text()) | {"criterion": "strict"}
    (out / "summary.json").write_text(json.dumps(summary))
    assert "strict" in visit(write_report(out)).page.locator("#terms").inner_text()


def test_switch_changes_colours_and_is_remembered(visit: Open, clinic: Path) -> None:
    page = visit(clinic).page
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.get_by_role("button", name="Switch to dark colours").click()
    assert page.evaluate(paper) != light
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.evaluate(paper) != light


@pytest.mark.parametrize("size", SIZES)
def test_hostile_content_stays_inert(visit: Open, hostile: Path, size: str) -> None:
    here = visit(hostile, size)
    page = here.page
    for at in range(4):
        if size == "phone" and at:
            page.locator(".back button").click()
        page.locator("#list a").nth(at).click()
        page.locator("#detail .events").wait_for()
    page.locator("#detail .more").first.click()
    assert page.evaluate("window.pwned") is None
    assert page.evaluate("({}).polluted") is None
    assert page.locator("main img, main iframe, main svg[onload], main script").count() == 0
    assert "U+202E" in page.locator("#detail").inner_text()
    assert "U+D800" in page.locator("#detail").inner_text()
    assert "\u202e" not in page.locator("body").inner_text()
    assert (
        page.locator("#detail .event .prose").first.inner_text().startswith("</script><script>window.pwned=1</script>")
    )
    assert here.has_no_sideways_scroll()


def test_injected_markup_would_be_stopped_by_the_security_policy(visit: Open, clinic: Path) -> None:
    here = visit(clinic)
    stopped: list[str] = []
    here.page.on("requestfailed", lambda request: stopped.append(f"{request.url} {request.failure}"))
    for attempt in (
        "const s = document.createElement('script'); s.textContent = 'window.pwned = 1'; document.body.append(s);",
        "const a = document.createElement('a'); a.setAttribute('onclick', 'window.pwned = 2'); a.click();",
        "document.body.innerHTML = '<img src=x onerror=window.pwned=3>';",
        "document.body.append(Object.assign(document.createElement('img'), {src: 'http://localhost:9/x.png'}));",
    ):
        here.page.evaluate("attempt => { try { (0, eval)(attempt); } catch { } }", attempt)
    here.page.wait_for_timeout(100)
    assert here.page.evaluate("window.pwned") is None
    assert here.page.locator("h1").is_visible()
    assert stopped == ["http://localhost:9/x.png csp"]
    assert here.faults
    here.faults.clear()


def test_print_shows_the_tables_and_hides_the_controls(visit: Open, clinic: Path) -> None:
    page = visit(clinic).page
    assert len(page.pdf()) > 10_000
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#agents table").is_visible()
    assert not page.locator("#filters").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0


def test_a_printed_page_keeps_its_charts(visit: Open, clinic: Path) -> None:
    page = visit(clinic).page
    shown = page.locator("#agents .panel svg, #agents .panel .dot").count()
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#agents .panel").first.is_visible()
    assert page.locator("#agents .panel svg, #agents .panel .dot").count() == shown >= 1


def test_headings_come_in_order(visit: Open, clinic: Path) -> None:
    page = visit(clinic).page
    levels = [int(name[1]) for name in page.evaluate(HEADINGS)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_the_address_of_the_findings_lands_on_them(visit: Open, clinic: Path) -> None:
    page = visit(clinic, address="#findings").page
    place = page.locator("#findings").bounding_box()
    assert place["y"] < page.viewport_size["height"] / 2
    assert place["y"] + place["height"] > 0


@pytest.mark.parametrize("size", SIZES)
def test_report_of_a_real_audit_reads_well(visit: Open, axe: str, audited: Path, size: str) -> None:
    here = visit(audited, size)
    page = here.page
    assert re.fullmatch(r"The .* was only claimed by the user\.", page.locator("#opening h1").inner_text())
    assert page.locator("#opening .claim q").inner_text()
    for at in range(0, 40, 8):
        if page.locator(".back button").is_visible():
            page.locator(".back button").click()
        page.locator("#list a").nth(at).click()
        page.locator("#detail .event.judged").wait_for()
        assert here.has_no_sideways_scroll()
    assert here.serious(axe) == []


def test_page_of_an_audit_that_found_nothing_draws_without_fault(visit: Open, tmp_path: Path) -> None:
    out = audit_folders.dentist(tmp_path / "dentist")
    for name in ("calls.jsonl", "findings.jsonl"):
        (out / name).write_text("")
    page = visit(write_report(out)).page
    assert page.locator("h1").inner_text() == "No findings."


@pytest.mark.parametrize("size", SIZES)
def test_a_small_audit_without_outcomes_reads_well(visit: Open, axe: str, tmp_path: Path, size: str) -> None:
    here = visit(write_report(audit_folders.dentist(tmp_path / "dentist")), size)
    opening = here.page.locator("#opening")
    assert re.fullmatch(r"The patient PT-\d owes 240\.", opening.locator("h1").inner_text())
    assert "called book. It broke the policy, although it could have known." in opening.locator(".story").inner_text()
    assert "2 violations" in opening.locator(".tally").inner_text()
    assert "Refused by the tool, not counted above: 1 violation." in opening.locator(".tally").inner_text()
    assert "Who owes may book only a checkup." in opening.locator("blockquote").inner_text()
    assert "example-book" in opening.locator(".rule").inner_text()
    failed = here.page.locator("#agents .panel").last
    assert failed.inner_text().split("\n")[-1] == "No outcome recorded."
    assert failed.locator(".axis").count() == 0
    assert here.has_no_sideways_scroll()
    assert here.serious(axe) == []


def test_a_missing_clock_is_told_as_the_hosts(visit: Open, tmp_path: Path) -> None:
    report = write_report(audit_folders.dentist(tmp_path / "dentist", verdicts=[("inconclusive", True)]))
    page = visit(report).page
    page.locator("#list a.inconclusive").click()
    page.locator("#detail .headline", has_text="Depends on a fact that only the host knows").wait_for()
    shown = page.locator("#detail .facts").inner_text()
    assert "the log has no readable time and the pack has no `now:`" in shown
    assert "only the user" not in shown
