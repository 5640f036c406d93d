"""The console as people use it, in real Chromium: find, triage, sign, approve, compare.

    uv run --with playwright pytest tests/console/browser

It needs `chromium` on the path (or its path in CHROMIUM) and, for the accessibility checks, npm (or the path of
axe.min.js in AXE_CORE). Without them these tests skip. A folder named in SCREENSHOTS gets a
picture of every page, at both sizes, light and dark.
"""

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from bylaw.audit.attestation import read_attestations
from bylaw.audit.store import Store
from bylaw.audit.waiver import read_waivers
from bylaw.cli.serve import pages_of
from bylaw.console.index import Wanted, open_index
from bylaw.console.pages import view_app
from bylaw.console.view import View
from bylaw.pack.review import read_signatures
from bylaw.record import Log
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from tests.console.browser.worlds import World, airline_audit, card_pack, of_audit, of_service
from tests.console.test_inbox import waiting
from tests.shield.scenes import shop

Open = Callable[..., Any]
Serve = Callable[[Any], str]


@pytest.fixture
def home(out: Path, pack: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(out.parent)
    shutil.copytree(out, out.parent / "before")
    return serve(view_app(View(out, pack=str(pack))))


def test_a_finding_is_found_opened_and_waived_without_a_mouse(visit: Open, home: str, out: Path) -> None:
    page = visit(home).go("/findings").page
    row = open_index(out).findings(Wanted(), limit=1)[0]
    page.keyboard.press("/")
    page.keyboard.type(row.id)
    page.wait_for_url(f"**q={row.id}*")
    page.locator(".reasons > li").nth(1).wait_for(state="detached")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.locator(".members a").first.wait_for()
    page.keyboard.press("j")
    page.locator(f"#detail[data-finding='{row.id}'] .headline").wait_for()
    page.keyboard.press("w")
    page.keyboard.type("agreed with the desk")
    page.locator("details[data-key=w] input[name=by]").fill("Mara")
    page.locator("details[data-key=w] button.do").click()
    page.locator("#told:focus .told").wait_for()
    assert "waivers.yaml" in page.locator("#told").inner_text()
    page.locator("#states", has_text="Waived").wait_for()
    assert page.locator(f".members a[data-open='{row.id}'] .state").inner_text() == "waived"
    finding = next(found for found in Store(out).findings() if found.id == row.id)
    assert read_waivers(out.parent / "waivers.yaml").waive(finding)


def test_search_finds_what_the_open_finding_shows(visit: Open, home: str, out: Path) -> None:
    page = visit(home).go("/findings").page
    shown = page.locator("#detail .box.call dd").first.inner_text()
    page.locator("#q").fill(shown)
    page.wait_for_url("**q=*")
    page.locator(".reasons .reason").first.wait_for()


def test_a_key_acts_on_the_row_that_is_selected(visit: Open, home: str) -> None:
    page = visit(home).go("/findings").page
    for key in "jjj":
        page.keyboard.press(key)
    row = page.locator("a.reason.selected")
    assert row.evaluate("row => getComputedStyle(row).outlineStyle !== 'none' || row.matches(':focus')")
    reason = row.get_attribute("data-reason")
    page.keyboard.press("w")
    page.locator(f"#detail[data-reason='{reason}'] details[data-key=w][open]").wait_for()


def test_undecided_consents_are_settled_with_two_keys_each(visit: Open, home: str, out: Path) -> None:
    index = open_index(out)
    row = next(row for row in index.findings(Wanted(state="open")) if row.exchange)
    page = visit(home).go(f"/findings?state=open&reason={row.reason}&open={row.id}").page
    page.keyboard.press("y")
    page.keyboard.type("read it")
    page.locator("#settle input[name=by]").fill("Mara")
    page.keyboard.press("Enter")
    second = page.locator(f"#detail:not([data-finding='{row.id}'])")
    second.wait_for()
    name = second.get_attribute("data-finding")
    page.keyboard.press("s")
    third = page.locator(f"#detail:not([data-finding='{row.id}']):not([data-finding='{name}'])")
    third.wait_for()
    skipped, name = name, third.get_attribute("data-finding")
    page.keyboard.press("n")
    page.keyboard.press("Enter")
    page.locator(f"#detail:not([data-finding='{name}'])").wait_for()
    given = {each.finding: each.answer for each in read_attestations(out.parent / "attestations.yaml").values()}
    assert given[row.id] == "fine"
    assert given[name] == "wrong"
    assert skipped not in given


def test_the_drawing_is_the_reports_own(visit: Open, home: str, out: Path) -> None:
    row = open_index(out).findings(Wanted(verdict="near_miss"), limit=1)[0]
    page = visit(home).go(f"/finding/{row.id}").page
    page.locator("bylaw-finding .drawing .lines path.gap").first.wait_for(state="attached")
    page.locator("bylaw-finding a[data-step]").first.click()
    page.locator("bylaw-finding .event:focus").wait_for()


def test_choosing_a_fact_lights_the_step_that_showed_it(visit: Open, home: str, out: Path) -> None:
    index = open_index(out)
    rows = index.findings(Wanted(verdict="near_miss"), limit=50)

    def is_plain(row: Any) -> bool:
        """Whether one policy speaks, and had seen something."""
        flagged = [each for each in index.line(row)["policies"] if each["determined"] != "compliant"]
        return len(flagged) == 1 and bool(flagged[0]["seen"])

    row = next(filter(is_plain, rows))
    page = visit(home).go(f"/c/{row.conversation}#step-{row.step}").page
    assert page.locator(f"#step-{row.step}:focus").count() == 1
    page.locator(".fact-button.seen").first.click()
    assert page.locator(".event.lit.seen").count() == 1
    assert page.locator(".minimap .mark").count() >= 1


def test_a_conversation_in_which_nothing_was_judged_is_found_and_read(visit: Open, home: str) -> None:
    page = visit(home).go("/conversations").page
    page.locator("select[name=kind]").select_option("unjudged")
    page.get_by_role("button", name="Search").click()
    page.wait_for_url("**kind=unjudged*")
    page.locator(".list tbody th a").first.click()
    page.locator(".timeline .event").nth(1).wait_for()
    assert "No call of this conversation was judged" in page.locator(".aside").inner_text()


def test_a_step_names_the_policy_that_its_verdict_is_of(visit: Open, home: str, out: Path) -> None:
    index = open_index(out)
    rows = index.findings(Wanted(verdict="violation"), limit=100)
    row = next(row for row in rows if len(index.line(row)["policies"]) > 1)
    page = visit(home).go(f"/c/{row.conversation}").page
    tag = page.locator(f"#step-{row.step} .tag", has=page.locator(".verdict.violation"))
    assert tag.locator("code").inner_text() == row.policy


def test_the_words_that_decided_a_consent_light_up(visit: Open, home: str, out: Path) -> None:
    index = open_index(out)

    def has_words(row: Any) -> bool:
        """Whether something was put to the user, or answered, that the rule turned on."""
        whys = [each["why"] for each in index.line(row)["predicates"] if each.get("why")]
        return any(whys[0].get(name) is not None for name in ("told_at", "answered_at")) if whys else False

    row = next(filter(has_words, index.findings(Wanted(verdict="broken", state="all"), limit=500)))
    page = visit(home).go(f"/c/{row.conversation}#step-{row.step}").page
    page.locator(".fact-button.exchange").first.click()
    assert page.locator(".event.lit.seen.message").count() == 1


def test_a_step_has_a_link_and_the_minimap_leads_to_judged_ones(visit: Open, home: str, out: Path) -> None:
    row = open_index(out).findings(Wanted(), limit=1)[0]
    page = visit(home).go(f"/c/{row.conversation}").page
    judged = page.locator(".timeline .event.judged details")
    assert judged.count() == page.locator(".timeline .event details[open]").count() >= 1
    assert page.locator(".timeline .event:is(.call, .result) details:not([open])").count() > 1
    page.locator("#step-1 a.step").click()
    assert page.url.endswith("#step-1")
    assert page.locator("#step-1:focus").count() == 1
    page.locator(f".minimap .mark[href='#step-{row.step}']").first.click()
    page.locator(f"#step-{row.step}:focus").wait_for()


def test_keys_work_on_every_page(visit: Open, home: str) -> None:
    page = visit(home).go("/").page
    page.keyboard.press("?")
    assert page.locator("#keys[open]").count() == 1
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.wait_for_url("**/search#q")
    page.locator("#q:focus").wait_for()
    page.keyboard.type("refund")
    page.wait_for_url("**/search?q=refund")
    page.locator("#results a[href='/policy/refund-cap']").wait_for()
    page = visit(home).go("/conversations").page
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    first = page.locator(".list tbody th a").first
    assert first.evaluate("link => link === document.activeElement")
    page.keyboard.press("Enter")
    page.locator("bylaw-conversation .event").first.wait_for()


def test_a_rule_has_pictures(visit: Open, home: str) -> None:
    page = visit(home).go("/policy/confirm-before-change").page
    for picture in page.locator(".picture").all():
        picture.locator("summary").click()
        image = picture.locator("img")
        image.scroll_into_view_if_needed()
        page.wait_for_function("image => image.complete && image.naturalWidth > 100", arg=image.element_handle())
    assert page.locator(".picture").count() == 2


def test_a_policy_is_read_and_signed(visit: Open, home: str, pack: Path) -> None:
    page = visit(home).go("/policy").page
    page.locator(".margin a", has_text="refund-cap").first.click()
    page.locator("form.signing input[name=by]").first.fill("Mara")
    page.locator("button[value=accepted]").click()
    page.locator(".told").wait_for()
    assert read_signatures(pack)["refund-cap"].by == "Mara (unverified)"


def test_a_change_is_tried_while_it_is_typed_and_then_saved(visit: Open, home: str, pack: Path) -> None:
    page = visit(home).go("/policy/reschedule-notice").page
    page.get_by_text("Try a change").click()
    check = page.locator("#check")
    text = check.input_value()
    check.fill(text.replace("hours(24)", "hours(600)"))
    page.locator("#cases .fails").first.wait_for()
    page.locator("#past td .verdict").first.wait_for()
    check.fill(text.replace("hours(24)", "hours(")[:200])
    page.locator("#cases .told.wrong").first.wait_for()
    check.fill(text.replace("hours(24)", "hours(25)"))
    page.locator("#patch summary").wait_for()
    page.locator("#editing input[name=by]").fill("Mara")
    page.locator("#editing button.do").click()
    page.locator("#told .told.wrong", has_text="nothing was written").wait_for()
    page.locator("#cases input[name=despite]").check()
    page.locator("#editing button.do").click()
    page.locator("#told .told:not(.wrong)").wait_for()
    page.locator(".told.stale", has_text="bylaw audit").wait_for()
    assert "hours(25)" in (pack / "guards" / "appointments.py").read_text()


def test_a_shift_lead_approves_on_a_phone(visit: Open, serve: Serve, tmp_path: Path) -> None:
    with Log(str(tmp_path / "decisions.db")) as log:
        app = Service(Desk(shop(), log), {}, **pages_of(log, shop(), {}, "", b"s" * 32))
        here = visit(serve(app), "phone").go("/inbox")
        assert "No requests" in here.page.locator("#cards").inner_text()
        # In a thread of its own: this one has the browser's event loop.
        with ThreadPoolExecutor(1) as elsewhere:
            elsewhere.submit(waiting, app, "chat-1").result()
        here.page.locator(".card").wait_for()
        assert here.has_no_sideways_scroll()
        here.page.locator(".card input[name=by]").fill("Lee")
        # A button that has only just come under the pointer is not pressed.
        here.page.wait_for_timeout(500)
        here.page.locator(".card button[value=approve]").click()
        here.page.locator("text=No requests").wait_for()
        (answered,) = log.approvals("default")
        assert answered.status == "approved"
        here.page.close()


def test_an_agent_is_stopped_and_a_word_is_left_on_a_phone(visit: Open, serve: Serve, tmp_path: Path) -> None:
    with Log(str(tmp_path / "decisions.db")) as log:
        with ThreadPoolExecutor(1) as elsewhere:
            world = elsewhere.submit(of_service, log, card_pack(tmp_path / "pack")).result()
        here = visit(serve(world.app), "phone")
        here.sign_in(world.sign_in)
        card = here.page.locator(".card.put").first
        card.locator("summary").click()
        card.locator("input[name=reason]").fill("by phone at noon")
        card.locator("button").click()
        here.page.locator(".card.put .standing").wait_for()
        here.page.get_by_role("link", name="Stops").click()
        form = here.page.locator("form.stopping")
        form.locator("select[name=what]").select_option("policy")
        form.locator("input[name=name]").fill("late-cancel-fee")
        form.locator("input[name=reason]").fill("fees are wrong")
        form.locator("button.do").click()
        here.page.locator("#told .told").wait_for()
        stop = here.page.locator("article.card", has_text="late-cancel-fee")
        stop.locator("input[name=reason]").fill("mended")
        stop.locator("button").click()
        here.page.locator("#told", has_text="no longer stopped").wait_for()
        assert here.has_no_sideways_scroll()
        here.page.close()
        found = {each.stop.name: each.lift for each in log.every_stop("acme")}
        assert found["waive_invoice"] is None
        assert found["late-cancel-fee"] is not None


def test_two_audits_are_compared(visit: Open, home: str, out: Path) -> None:
    lines = (out.parent / "before" / "calls.jsonl").read_text().splitlines(keepends=True)
    row = next(row for row in open_index(out).findings(Wanted(verdict="violation"), limit=1))
    (out.parent / "before" / "calls.jsonl").write_text("".join(line for line in lines if row.id not in line))
    page = visit(home).go("/").page
    page.get_by_role("link", name="Compare").click()
    page.get_by_role("button", name="Compare").click()
    page.get_by_text("Compared with before").wait_for()
    page.locator(".numbers a").first.click()
    page.locator(f"#detail[data-finding='{row.id}']").wait_for()
    assert page.locator(".reasons > li").count() == 1


def test_a_service_tries_a_change_and_offers_the_patch(visit: Open, serve: Serve, tmp_path: Path) -> None:
    with Log(str(tmp_path / "decisions.db")) as log:
        with ThreadPoolExecutor(1) as elsewhere:
            world = elsewhere.submit(of_service, log, card_pack(tmp_path / "pack")).result()
        here = visit(serve(world.app))
        here.sign_in(world.sign_in)
        here.page.get_by_role("link", name="Policy").click()
        here.page.locator(".margin a", has_text="late-cancel-fee").first.click()
        check = here.page.locator("#check")
        check.fill(check.input_value().replace("== due", "!= due"))
        here.page.locator("#patch pre", has_text="!= due").wait_for()
        here.page.locator("#past a", has_text="cancel_appointment").first.click()
        here.page.locator(".decided").first.wait_for()
        here.page.close()


@pytest.mark.parametrize("size", ["phone", "desktop"])
def test_a_decision_appears_as_it_is_made_and_opens_its_conversation(
    visit: Open, serve: Serve, axe: str, tmp_path: Path, size: str
) -> None:
    with Log(str(tmp_path / "decisions.db")) as log:
        app = Service(Desk(shop(), log), {}, **pages_of(log, shop(), {}, "", b"s" * 32))
        here = visit(serve(app), size).go("/live")
        assert "No decisions yet" in here.page.locator("#decisions").inner_text()
        with ThreadPoolExecutor(1) as elsewhere:
            elsewhere.submit(waiting, app, "chat-1").result()
        here.page.locator("#decisions .answer.ask").wait_for()
        assert here.serious(axe) == []
        assert here.has_no_sideways_scroll()
        here.page.locator("#decisions th a").first.click()
        here.page.locator(".decided .answer.ask").wait_for()
        assert here.serious(axe) == []
        assert here.has_no_sideways_scroll()
        here.page.close()


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.chdir(tmp_path)
    match request.param:
        case "clinic":
            out, pack = request.getfixturevalue("out"), request.getfixturevalue("pack")
            yield of_audit(request.param, out, pack, ["reschedule-notice", "confirm-before-change"])
        case "airline":
            out, pack = airline_audit(tmp_path)
            yield of_audit(request.param, out, pack, ["cancel-ground", "confirm-before-change"])
        case _:
            with Log(str(tmp_path / "decisions.db")) as log:
                # In a thread of its own: this one has the browser's event loop.
                with ThreadPoolExecutor(1) as elsewhere:
                    made = elsewhere.submit(of_service, log, card_pack(tmp_path / "pack")).result()
                yield made


@pytest.mark.parametrize("world", ["clinic", "airline", "service"], indirect=True)
def test_axe_finds_nothing_serious_and_nothing_scrolls_sideways(
    visit: Open, axe: str, serve: Serve, world: World
) -> None:
    home = serve(world.app)
    found: dict[str, list[str]] = {}
    for size, scheme in [("narrow", "light"), *product(("phone", "desktop"), ("light", "dark"))]:
        here = visit(home, size, scheme)
        for path in world.paths:
            if path == world.paths[1] and world.sign_in:
                here.sign_in(world.sign_in)
            here.go(path)
            here.photograph(f"{world.name}{path}-{size}-{scheme}")
            if size != "narrow" and (faults := here.serious(axe)):
                found[f"{path} {size} {scheme}"] = faults
            assert here.has_no_sideways_scroll(), path
        here.page.close()
    assert found == {}
