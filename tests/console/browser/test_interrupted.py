"""What happens to people at a browser: double clicks, the back button, a second tab, a server that goes away."""

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bylaw.audit.waiver import read_waivers
from bylaw.cli.serve import pages_of
from bylaw.console.pages import view_app
from bylaw.console.view import View
from bylaw.pack import Pack
from bylaw.record import Log
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from tests.console.browser.worlds import KEYS, call_the_desk, card_pack

Open = Callable[..., Any]
Serve = Callable[[Any], str]


class Restarting:
    """A server whose application can be exchanged, as a restart does."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)


@pytest.fixture
def server(out: Path, pack: Path, monkeypatch: pytest.MonkeyPatch) -> Restarting:
    monkeypatch.chdir(out.parent)
    return Restarting(view_app(View(out, pack=str(pack))))


@pytest.fixture
def home(server: Restarting, serve: Serve) -> str:
    return serve(server)


def waive(page: Any, why: str) -> None:
    """Fill in the form that waives the open finding, and send it."""
    page.locator("#detail .headline").first.wait_for()
    page.keyboard.press("w")
    page.locator("details[data-key=w] input[name=reason]").fill(why)
    page.locator("details[data-key=w] input[name=by]").fill("Mara")
    page.locator("details[data-key=w] button.do").click()


def test_a_page_reached_by_the_back_button_works_like_any_other(visit: Open, home: str) -> None:
    page = visit(home).go("/findings").page
    page.locator(".reasons a.reason").first.click()
    page.locator(".members a").first.click()
    page.wait_for_url("**open=*")
    opened = page.locator("#detail").get_attribute("data-finding")
    waive(page, "agreed")
    page.locator("#told .told").wait_for()
    page.go_back()
    page.wait_for_url(f"**open={opened}")
    page.wait_for_selector("html[data-ready]")
    page.locator(f"#detail[data-finding='{opened}'] .standing", has_text="Waived by Mara").wait_for()
    page.locator("#theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.locator("#show-keys").click()
    page.locator("#keys[open]").wait_for()
    page.keyboard.press("Escape")
    page.go_forward()
    page.locator(f"#detail:not([data-finding='{opened}']) .headline").first.wait_for()


def test_of_two_tabs_the_second_is_told_what_the_first_decided(visit: Open, home: str, out: Path) -> None:
    page = visit(home).go("/findings").page
    page.locator("#detail .headline").first.wait_for()
    other = visit(home).go(f"/finding/{page.locator('#detail').get_attribute('data-finding')}").page
    waive(other, "agreed")
    other.locator("#told .told").wait_for()
    waive(page, "I say so, too")
    page.locator("#told .told.wrong", has_text="already waived this finding").wait_for()
    assert len(read_waivers(out.parent / "waivers.yaml").in_force) == 1


def test_a_comment_is_kept_once_however_often_it_is_clicked_or_the_page_is_reloaded(visit: Open, home: str) -> None:
    page = visit(home).go("/policy/refund-cap").page
    form = page.locator("form.signing", has=page.locator("input[name=text]"))
    form.locator("input[name=text]").fill("is this still so?")
    form.locator("input[name=by]").fill("Mara")
    form.get_by_role("button").dblclick()
    page.locator("#told .told").wait_for()
    assert page.url.endswith("/policy/refund-cap")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.locator(".comment").count() == 1


def test_what_is_typed_to_waive_a_finding_outlives_a_reload_until_it_is_sent(visit: Open, home: str) -> None:
    page = visit(home).go("/findings").page
    page.locator(".reasons a.reason").first.click()
    page.locator(".members a").first.click()
    page.wait_for_url("**open=*")
    page.locator("#detail .headline").first.wait_for()
    page.keyboard.press("w")
    why = page.locator("details[data-key=w] input[name=reason]")
    why.fill("the caller was a test")
    page.reload()
    assert why.input_value() == "the caller was a test"
    assert page.locator("details[data-key=w]").get_attribute("open") is not None
    page.locator("details[data-key=w] input[name=by]").fill("Mara")
    opened = page.locator("#detail").get_attribute("data-finding")
    page.locator("details[data-key=w] button.do").click()
    page.locator("#told .told", has_text="waived, in").wait_for()
    page.goto(f"{home}/finding/{opened}")
    page.locator(".standing", has_text="the caller was a test").wait_for()
    page.locator("details[data-key=w] summary").click()
    page.locator("details[data-key=w] input[name=by]").fill("Mara")
    page.locator("details[data-key=w] button.do").click()
    page.locator("details[data-key=w] input[name=reason]").wait_for(state="attached")
    assert why.input_value() == ""


def test_who_follows_a_link_to_a_finding_sees_its_row(visit: Open, home: str) -> None:
    page = visit(home).go("/findings").page
    page.locator(".reasons a.reason").first.click()
    page.locator(".members a").last.click()
    page.wait_for_url("**open=*")
    link = page.url.removeprefix(home)
    row = visit(home).go("/findings").page
    row.set_viewport_size({"width": 1280, "height": 360})
    row.goto(home + link)
    row.wait_for_selector("html[data-ready]")
    place = row.evaluate("document.querySelector('.members a[aria-current]').getBoundingClientRect().toJSON()")
    assert 0 <= place["top"] < place["bottom"] <= 360


def test_what_is_typed_in_a_try_outlives_a_reload(visit: Open, home: str, pack: Path) -> None:
    page = visit(home).go("/try/reschedule-notice").page
    saved = page.locator("#check").input_value()
    page.locator("#check").fill(saved.replace("hours(24)", "hours(600)"))
    page.locator("#cases .fails").first.wait_for()
    page.reload()
    page.locator("#told .told", has_text="Your unsaved text was restored").wait_for()
    page.locator("#cases .fails").first.wait_for()
    assert "hours(600)" in page.locator("#check").input_value()
    # The file changes beneath it: nothing is overwritten, and what was typed is still there.
    guards = pack / "guards" / "appointments.py"
    guards.write_text(guards.read_text().replace("hours(24)", "hours(26)"))
    page.locator("#editing input[name=by]").fill("Mara")
    page.locator("#editing button.do").click()
    page.locator("#told .told.wrong", has_text="changed after you loaded the page").wait_for()
    assert "hours(600)" in page.locator("#check").input_value()
    page.reload()
    page.locator("#told", has_text="The saved check has changed since").wait_for()
    page.get_by_role("button", name="Start from the saved check").click()
    page.wait_for_function("document.getElementById('check').value.includes('hours(26)')")
    assert "hours(26)" in guards.read_text()


def test_a_form_outlives_a_server_that_is_started_again(
    visit: Open, home: str, server: Restarting, out: Path, pack: Path
) -> None:
    here = visit(home).go("/findings")
    here.expected = ("Failed to load resource", "htmx:sendError", "htmx:afterRequest")
    page = here.page
    page.context.set_offline(True)
    waive(page, "typed before a restart")
    page.locator("#told .told.wrong", has_text="does not answer").wait_for()
    page.context.set_offline(False)
    server.app = view_app(View(out, pack=str(pack)))
    page.locator("details[data-key=w] button.do").click()
    page.locator("#told .told.wrong", has_text="Send the form again").wait_for()
    assert page.locator("details[data-key=w] input[name=reason]").input_value() == "typed before a restart"
    page.locator("details[data-key=w] button.do").click()
    page.locator("#told .told", has_text="waived, in").wait_for()


def test_an_audit_that_is_moved_away_takes_nothing_that_was_typed(visit: Open, home: str, out: Path) -> None:
    here = visit(home).go("/findings")
    here.expected = ("Failed to load resource",)
    page = here.page
    shutil.move(out, out.with_name("elsewhere"))
    waive(page, "agreed")
    page.locator("#told .told.wrong", has_text="Nothing was written").wait_for()
    assert page.locator("details[data-key=w] input[name=reason]").input_value() == "agreed"
    page.goto(home + "/findings")
    page.get_by_text("cannot be read at the moment").wait_for()
    shutil.move(out.with_name("elsewhere"), out)
    # The page asks again by itself.
    page.locator("#detail .headline").first.wait_for()


@pytest.fixture
def cards(tmp_path: Path) -> Pack:
    return card_pack(tmp_path / "pack")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log(str(tmp_path / "decisions.db")) as opened:
        yield opened


def serving(log: Log, pack: Pack, secret: bytes = b"s" * 32) -> Service:
    return Service(Desk(pack, log), KEYS, **pages_of(log, pack, KEYS, "", secret))


def ask(app: Service, *names: str) -> None:
    """Calls that come to wait, made in a thread of their own: this one has the browser's event loop."""
    with ThreadPoolExecutor(1) as elsewhere:
        for name in names:
            elsewhere.submit(call_the_desk, app, name, membership={"membership_id": "M878"}).result()


def test_a_double_click_approves_one_call(visit: Open, serve: Serve, log: Log, cards: Pack) -> None:
    app = serving(log, cards)
    ask(app, "one", "two")
    here = visit(serve(app), "phone")
    here.sign_in("ann")
    button = here.page.locator(".card button[value=approve]").first
    button.scroll_into_view_if_needed()
    box = button.bounding_box()
    here.page.mouse.move(box["x"] + 20, box["y"] + 10)
    here.page.mouse.down()
    here.page.mouse.up()
    # As slow as a hand: by then the next card has come, and on some screens its button is under the pointer.
    here.page.locator("#told", has_text="approved").wait_for()
    button.scroll_into_view_if_needed()
    box = button.bounding_box()
    here.page.mouse.move(box["x"] + 20, box["y"] + 10)
    here.page.mouse.down(click_count=2)
    here.page.mouse.up(click_count=2)
    here.page.wait_for_timeout(1500)
    assert [each.status for each in log.approvals("acme")].count("waiting") == 1
    assert "approved" in here.page.locator("#told").inner_text()
    assert here.page.title().startswith("(1)")
    here.page.close()


def test_what_somebody_reads_or_writes_stays_as_others_arrive(visit: Open, serve: Serve, log: Log, cards: Pack) -> None:
    app = serving(log, cards)
    ask(app, "one")
    here = visit(serve(app))
    here.sign_in("ann")
    here.page.locator(".card details summary", has_text="The decision in full").click()
    ask(app, "two")
    here.page.locator(".card", has_text="two").first.wait_for()
    assert here.page.locator(".card details[open]", has_text="The decision in full").count() == 1
    here.page.locator(".card input[name=note]").first.fill("I am writing")
    ask(app, "three")
    here.page.locator("#news").wait_for()
    assert here.page.locator(".card input[name=note]").first.input_value() == "I am writing"
    here.page.close()


def test_a_note_outlives_a_sign_in(visit: Open, serve: Serve, log: Log, cards: Pack) -> None:
    app = serving(log, cards)
    ask(app, "one")
    here = visit(serve(app))
    here.sign_in("ann")
    here.expected = ("Failed to load resource",)
    page = here.page
    page.locator(".card input[name=note]").first.fill("spoke to the ward")
    page.context.clear_cookies(name="bylaw_key")
    page.locator(".card button[value=approve]").first.click()
    page.locator("#told .told.wrong", has_text="not signed in").wait_for()
    with page.context.expect_page() as opening:
        page.get_by_role("link", name="Sign in in another tab").click()
    opening.value.locator("input[name=key]").fill("ann")
    opening.value.locator("form button.do").click()
    opening.value.wait_for_url("**/inbox")
    opening.value.close()
    page.locator(".card button[value=approve]").first.click()
    page.locator("#told", has_text="approved").wait_for()
    (answered,) = log.approvals("acme")
    assert answered.answer is not None
    assert answered.answer.note == "spoke to the ward"
    page.close()


@pytest.mark.parametrize("path", ["/inbox", "/live"])
def test_a_page_that_follows_a_service_outlives_a_restart(
    visit: Open, serve: Serve, log: Log, cards: Pack, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bylaw.console.service_log.STREAM", 1.0)
    server = Restarting(serving(log, cards))
    here = visit(serve(server))
    here.sign_in("ann")
    here.expected = ("Failed to load resource",)
    here.go(path)
    here.page.context.set_offline(True)
    here.page.locator("#notice", has_text="does not answer").wait_for()
    server.app = serving(log, cards)
    ask(server.app, "after")
    here.page.context.set_offline(False)
    here.page.locator("main", has_text="after").wait_for()
    assert here.page.locator("#notice").inner_text() == ""
    # Under another secret the service knows nobody any more: the page must not stay silent.
    server.app = serving(log, cards, b"t" * 32)
    here.page.locator("#notice", has_text="You are signed out").wait_for()
    here.page.get_by_role("link", name="Sign in again").click()
    here.page.locator("input[name=key]").fill("ann")
    here.page.locator("form button.do").click()
    here.page.wait_for_url(f"**{path}")
    here.page.close()
