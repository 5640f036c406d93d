"""The findings of a report and what leads to each, in real Chromium; see `test_report_in_chromium`."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bylaw.audit.report import write_report
from tests.report import audit_folders

Open = Callable[..., Any]
SIZES = ("phone", "desktop")


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
    headline = detail.locator(".headline").inner_text()
    assert "the act changes something; not true: the caller has just said yes" in headline.lower()
    assert "Ask before you change anything, and wait." in detail.locator("blockquote").inner_text()
    assert detail.locator(".drawing").count() == 0
    assert here.has_no_sideways_scroll()
    assert here.serious(axe) == []


def test_calls_of_a_tool_without_guards_are_not_shown_as_compliant(visit: Open, tmp_path: Path) -> None:
    out = audit_folders.clinic(tmp_path / "clinic", conversations=40)
    summary = json.loads((out / "summary.json").read_text())
    tool = sorted(summary["by_tool"])[0]
    summary["unguarded_tools"] = [tool]
    (out / "summary.json").write_text(json.dumps(summary))
    page = visit(write_report(out)).page
    page.locator("#tools summary").click()
    row = page.locator("#tools tbody tr").filter(has_text=tool).inner_text()
    assert row.split("\t")[4:9] == ["–"] * 5
    assert row.endswith(": no guard")
    assert "no guard" in page.locator("#tools .bars").inner_text()
    assert tool in page.locator("#limits").inner_text()
    assert "blind" not in page.locator("#tools h2").inner_text()


def test_an_audit_of_broken_rules_alone_does_not_say_that_nothing_was_flagged(visit: Open, tmp_path: Path) -> None:
    out = audit_folders.clinic(tmp_path / "clinic", conversations=5)
    (out / "calls.jsonl").write_text("")
    page = visit(write_report(out)).page
    assert "the act changes something" in page.locator("#opening h1").inner_text().lower()
    assert "Ask before you change anything" in page.locator("#opening blockquote").inner_text()


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
def test_five_thousand_findings_stay_usable(visit: Open, large: Path, size: str) -> None:
    began = time.perf_counter()
    here = visit(large, size)
    assert time.perf_counter() - began < 4
    page = here.page
    loaded = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    assert loaded < 2000
    page.locator("#filter-call").select_option("")
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
