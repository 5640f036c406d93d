"""The report as a reader meets it, in real Chromium.

    uv run --with playwright pytest tests/report/browser

It needs `chromium` on the path (or its path in CHROMIUM) and, for the accessibility checks, npm (or the path of
axe.min.js in AXE_CORE). Without them these tests skip.
"""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import audit_folders
import pytest

from bylaw.audit.report import write_report

Open = Callable[..., Any]
SIZES = ("phone", "desktop")
SECTIONS = ("opening", "agents", "tools", "lookups", "policies", "findings", "limits", "terms")


def serious(page: Any, axe: str) -> list[str]:
    """What axe finds that is serious or critical, one line each."""
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary'][:200]}"
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"][:5]
    ]


@pytest.mark.parametrize("size", SIZES)
def test_page_opens_on_the_drawing(visit: Open, clinic: Path, size: str) -> None:
    here = visit(clinic, size)
    opening = here.page.locator("#opening")
    assert opening.locator("h1").inner_text() == "It took the user’s word for it."
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
    assert serious(here.page, axe) == []
    here.page.locator("#list a").nth(3).click()
    here.page.locator("#detail .events").wait_for()
    assert serious(here.page, axe) == []


def test_axe_finds_nothing_serious_in_a_hostile_or_large_page(
    visit: Open, axe: str, hostile: Path, large: Path
) -> None:
    for report in (hostile, large):
        assert serious(visit(report).page, axe) == []


@pytest.mark.parametrize("size", SIZES)
def test_finding_opens_with_its_conversation_and_the_steps_that_matter(visit: Open, clinic: Path, size: str) -> None:
    here = visit(clinic, size)
    here.page.locator("#list a").first.click()
    detail = here.page.locator("#detail")
    detail.locator(".event.judged").wait_for()
    assert "charge_fee" in detail.locator(".event.judged").inner_text()
    assert "Gold member" in detail.locator(".event.claimed").inner_text()
    assert detail.locator(".event.seen").count() == 1
    assert "breaks the rule confirm-before-change" in detail.locator(".event.judged").inner_text()
    detail.locator(".tag.claimed a").click()
    assert here.page.evaluate("document.activeElement.classList.contains('judged')")
    assert here.page.url.split("#")[1].startswith("finding/")
    assert here.has_no_sideways_scroll()
    if size == "phone":
        assert not here.page.locator("#list").is_visible()
        detail.locator(".back button").click()
        assert here.page.locator("#list").is_visible()


def test_step_of_the_opening_leads_into_the_conversation(visit: Open, clinic: Path) -> None:
    page = visit(clinic).page
    page.locator("#opening .claim a.step").click()
    page.wait_for_function("document.activeElement.classList.contains('claimed')")


def test_address_of_a_finding_opens_it(visit: Open, clinic: Path) -> None:
    first = visit(clinic)
    link = first.page.locator("#list a").nth(7)
    address, where = link.get_attribute("href"), link.locator(".where").inner_text()
    page = visit(clinic, "phone", address=address).page
    page.locator("#detail .events").wait_for()
    assert where.split(" · ")[1] in page.locator("#detail").inner_text()


def test_filters_narrow_the_list(visit: Open, clinic: Path) -> None:
    page = visit(clinic).page
    shown = page.locator("#shown")
    every = int(re.match(r"(\d+) findings", shown.inner_text()).group(1))
    for name, option in (
        ("verdict", "violation"),
        ("reason", "stale"),
        ("agent", "hasty-2"),
        ("tool", "charge_fee"),
        ("policy", "cancel-window"),
    ):
        page.locator(f"#filter-{name}").select_option(option)
        some = int(shown.inner_text().split()[0])
        assert 0 < some < every, name
        counted = page.locator(f"#filter-{name} option:checked").inner_text()
        assert counted.endswith(f"({some})")
        page.get_by_role("button", name="Clear").click()
        assert shown.inner_text().startswith(f"{every} findings")
    page.locator("#filter-text").fill("membership clinic-0004")
    assert shown.inner_text().startswith("1 finding of")
    page.locator("#filter-text").fill("no such thing at all")
    assert shown.inner_text() == "No finding matches these filters."
    assert page.locator("#list a").count() == 0


def test_bars_lead_to_their_findings(visit: Open, clinic: Path) -> None:
    page = visit(clinic).page
    page.locator("#tools").get_by_role("button", name="book_appointment").click()
    assert page.locator("#filter-tool").input_value() == "book_appointment"
    assert set(page.locator("#list .top code").all_inner_texts()) == {"book_appointment"}
    page.locator("#lookups").get_by_role("button", name="out of date").click()
    assert page.locator("#filter-reason").input_value() == "stale"
    assert page.locator("#filter-tool").input_value() == ""


def test_reasons_are_filtered_over_all_missing_facts(visit: Open, audited: Path) -> None:
    page = visit(audited).page
    for reason in ("claimed", "stale", "never_seen"):
        option = page.locator(f"#filter-reason option[value={reason}]")
        if option.count():
            counted = option.inner_text().rsplit("(", 1)[1].rstrip(")")
            page.locator("#filter-reason").select_option(reason)
            assert page.locator("#shown").inner_text().split()[0] == counted


def test_rules_that_were_broken_have_their_chart(visit: Open, clinic: Path) -> None:
    assert "confirm-before-change" in visit(clinic).page.locator("#policies .bars").last.inner_text()


@pytest.mark.parametrize("size", SIZES)
def test_a_conversation_that_only_broke_a_rule_has_a_row_its_sentence_and_its_steps(
    visit: Open, axe: str, clinic: Path, size: str
) -> None:
    here = visit(clinic, size)
    page = here.page
    page.locator("#policies").get_by_role("button", name="confirm-before-change").click()
    assert page.locator("#filter-policy").input_value() == "confirm-before-change"
    assert page.locator("#shown").inner_text().startswith("260 findings")
    calls = [json.loads(line) for line in (clinic.parent / "calls.jsonl").read_text().splitlines()]
    flagged = {call["trajectory"] for call in calls if call["finding"]}
    rows = page.locator("#list a")
    only = next(at for at in range(40) if rows.nth(at).locator(".where bdi").nth(1).inner_text() not in flagged)
    assert "Ask before you change anything" in rows.nth(only).inner_text()
    rows.nth(only).click()
    detail = page.locator("#detail")
    detail.locator(".event.broken").wait_for()
    assert (
        "the act changes something; it is not so that the caller has just said yes"
        in detail.locator(".story").inner_text()
    )
    assert "Ask before you change anything, and wait." in detail.locator("blockquote").inner_text()
    assert detail.locator(".drawing").count() == 0
    assert here.has_no_sideways_scroll()
    assert serious(page, axe) == []


def test_calls_of_a_tool_without_guards_are_not_shown_as_compliant(visit: Open, tmp_path: Path) -> None:
    out = audit_folders.clinic(tmp_path / "clinic", conversations=40)
    summary = json.loads((out / "summary.json").read_text())
    tool = sorted(summary["by_tool"])[0]
    summary["unguarded_tools"] = [tool]
    (out / "summary.json").write_text(json.dumps(summary))
    page = visit(write_report(out)).page
    page.locator("#tools summary").click()
    row = page.locator("#tools tbody tr").filter(has_text=tool).inner_text()
    assert row.split("\t")[3:8] == ["–"] * 5
    assert row.endswith(": no guard")
    assert "no guard" in page.locator("#tools .bars").inner_text()
    assert tool in page.locator("#limits").inner_text()
    assert "blind" not in page.locator("#tools h2").inner_text()


def test_an_audit_of_broken_rules_alone_does_not_say_that_nothing_was_flagged(visit: Open, tmp_path: Path) -> None:
    out = audit_folders.clinic(tmp_path / "clinic", conversations=5)
    (out / "calls.jsonl").write_text("")
    page = visit(write_report(out)).page
    assert page.locator("#opening h1").inner_text() == "It broke a rule of the conversation."
    assert "Ask before you change anything" in page.locator("#opening blockquote").inner_text()


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


def test_keyboard_alone_reaches_everything(visit: Open, clinic: Path) -> None:
    page = visit(clinic).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('#list') !== null"):
            break
    current = "document.querySelector('#list [aria-current]').dataset.finding"
    focused = "document.activeElement.dataset.finding"
    first = page.evaluate(focused)
    for key in ("ArrowDown", "j", "j", "k", "ArrowUp"):
        page.keyboard.press(key)
        assert page.evaluate(current) == page.evaluate(focused)
    assert page.evaluate(current) != first or page.evaluate(focused) == first
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "filter-text"
    page.keyboard.type("jk")
    assert page.locator("#filter-text").input_value() == "jk"


def test_keys_walk_over_the_end_of_a_page_of_the_list(visit: Open, clinic: Path) -> None:
    page = visit(clinic).page
    page.locator("#list a").last.focus()
    page.locator("#list a").last.click()
    page.locator("#list a").last.focus()
    page.keyboard.press("j")
    assert "page 2" in page.locator("#pager").inner_text()
    assert page.evaluate("document.activeElement === document.querySelector('#list a')")


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


@pytest.mark.parametrize("size", SIZES)
def test_five_thousand_findings_stay_usable(visit: Open, large: Path, size: str) -> None:
    began = time.perf_counter()
    here = visit(large, size)
    assert time.perf_counter() - began < 4
    page = here.page
    loaded = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    assert loaded < 2000
    assert page.locator("#shown").inner_text().startswith("5,000 findings")
    assert page.evaluate("document.querySelectorAll('*').length") < 5000
    took = page.evaluate(
        "() => { const box = document.getElementById('filter-text'); const began = performance.now();"
        " box.value = 'referral';"
        " box.dispatchEvent(new Event('input', {bubbles: true})); return performance.now() - began; }"
    )
    assert took < 200
    page.locator("#pager").get_by_role("button", name="Later").click()
    page.locator("#list a").nth(5).click()
    page.locator("#detail .event.judged").wait_for()
    assert here.has_no_sideways_scroll()


def test_print_shows_the_tables_and_hides_the_controls(visit: Open, clinic: Path) -> None:
    page = visit(clinic).page
    assert len(page.pdf()) > 10_000
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#agents table").is_visible()
    assert not page.locator("#filters").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0


@pytest.mark.parametrize("size", SIZES)
def test_report_of_a_real_audit_reads_well(visit: Open, axe: str, audited: Path, size: str) -> None:
    here = visit(audited, size)
    page = here.page
    assert page.locator("#opening h1").inner_text() == "It took the user’s word for it."
    assert page.locator("#opening .claim q").inner_text()
    for at in range(0, 40, 8):
        if page.locator(".back button").is_visible():
            page.locator(".back button").click()
        page.locator("#list a").nth(at).click()
        page.locator("#detail .event.judged").wait_for()
        assert here.has_no_sideways_scroll()
    assert serious(page, axe) == []


def test_page_of_a_bare_folder_draws_without_fault(visit: Open, tmp_path: Path) -> None:
    (tmp_path / "calls.jsonl").write_text('{"strict": "near_miss"}\n{"determined": "violation", "policies": [{}]}\n')
    page = visit(write_report(tmp_path)).page
    page.locator("#list a").nth(1).click()
    assert "not in the page" in page.locator("#detail .transcript").inner_text()
    (tmp_path / "calls.jsonl").write_text("")
    page = visit(write_report(tmp_path)).page
    assert page.locator("h1").inner_text() == "Nothing was flagged."


@pytest.mark.parametrize("size", SIZES)
def test_a_small_audit_without_outcomes_reads_well(visit: Open, axe: str, tmp_path: Path, size: str) -> None:
    here = visit(write_report(audit_folders.dentist(tmp_path / "dentist")), size)
    opening = here.page.locator("#opening")
    assert re.search(r"called book\. The patient PT-\d owes 240\. The policy", opening.locator(".story").inner_text())
    assert "2 violations" in opening.locator(".tally").inner_text()
    assert "The list below has 1 more violation, which the tool refused." in opening.locator(".tally").inner_text()
    assert "Who owes may book only a checkup." in opening.locator("blockquote").inner_text()
    assert audit_folders.EXAMPLE in opening.locator(".rule").inner_text()
    failed = here.page.locator("#agents .panel").last
    assert failed.inner_text().split("\n")[-1] == "No outcome recorded."
    assert failed.locator(".axis").count() == 0
    assert here.has_no_sideways_scroll()
    assert serious(here.page, axe) == []


def test_a_missing_clock_is_told_as_the_hosts(visit: Open, tmp_path: Path) -> None:
    report = write_report(audit_folders.dentist(tmp_path / "dentist", verdicts=[("inconclusive", True)]))
    page = visit(report).page
    page.locator("#list a.inconclusive").click()
    page.locator("#detail .story", has_text="Depends on what the host supplies").wait_for()
    shown = page.locator("#detail .facts").inner_text()
    assert "the log carries no time and the pack no `now:`" in shown
    assert "only the user" not in shown
