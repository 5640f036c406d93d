"""What was settled for an action holds for that action alone: pauses, approvals, stops."""

import time

import pytest

from bylaw import Shield
from bylaw.record import Log
from bylaw.shield import LiveSession
from tests.packs import made

PAYING = {
    "pack.yaml": "format: 1\nname: desk\ndocument: policy.md\n",
    "policy.md": "At most one payment an hour.\n",
    "policies.yaml": "policies: [{id: few, kind: rule, spans: [At most one payment an hour.]}]\n",
    "rules.yaml": "limits: [{id: few, tool: pay, most: 1, within: 1h, over: ask}]\n",
    "tools.yaml": """tools:
  browser_navigate: {effect: read, parameters: {url: string}}
  browser_snapshot: {effect: read}
  browser_click: {effect: read}
actions:
  pay:
    of: browser_click
    on: {role: button, name: Pay}
    effect: write
    take: {total: {value: "$page.text('^Total: ([0-9.]+) EUR$')", type: number}}
    changes: []
  follow_link: {of: browser_click, on: {role: link}, effect: read}
""",
}
CLICK = {"target": "e3"}


def show(session: LiveSession, total: int, element: str = 'button "Pay"', url: str = "http://shop.test/pay") -> None:
    """The agent opens a page with a total and one element."""
    id = f"show-{session.position}-{total}"
    assert session.decide("browser_navigate", {"url": url}, id=id).allowed
    shown = f'- paragraph [ref=e1]: "Total: {total} EUR"\n- {element} [ref=e3]'
    shown = f"### Page\n- Page URL: {url}\n### Snapshot\n```yaml\n{shown}\n```"
    session.result(shown, id=id)


@pytest.mark.parametrize(
    ("element", "total", "goes_on"),
    [('button "Pay"', 10, True), ('button "Pay"', 4000, False), ('link "Pay"', 10, False)],
)
def test_a_paused_call_goes_on_only_as_the_same_action(element: str, total: int, goes_on: bool) -> None:
    with Log(":memory:") as log, Shield(made(PAYING), log=log) as shield:
        session = shield.session("c")
        show(session, 10, element)
        session.interrupt("a", session.decide("browser_click", CLICK, id="a"))
        show(session, total)
        resumed = session.resume("a", "browser_click", CLICK)
        assert (resumed is not None) == goes_on


def test_a_no_to_an_action_ends_the_paused_call_that_performs_it() -> None:
    with Log(":memory:") as log, Shield(made(PAYING), log=log) as shield:
        session = shield.session("c")
        show(session, 10)
        assert session.decide("browser_click", CLICK, id="first").allowed
        session.result("done", id="first")
        show(session, 10)
        log.approve(session.decide("browser_click", CLICK, id="asked").approval, by="ann")
        session.interrupt("a", session.decide("browser_click", CLICK, id="a"))
        show(session, 10)
        log.reject(session.decide("browser_click", CLICK, id="again").approval, by="bo")
        assert session.resume("a", "browser_click", CLICK) is None


def test_a_stop_of_a_tool_that_reads_stops_the_writes_it_performs() -> None:
    with Log(":memory:") as log, Shield(made(PAYING), log=log) as shield:
        session = shield.session("c")
        show(session, 10)
        log.stop("tool", "browser_click", by="ann", reason="r", until=time.time() + 60)
        assert session.decide("browser_click", CLICK).answer == "deny"


def test_an_approval_of_an_undeclared_click_counts_on_its_page_alone() -> None:
    with Log(":memory:") as log, Shield(made(PAYING), log=log) as shield:
        session = shield.session("c")
        show(session, 10, 'button "Buy"')
        log.approve(session.decide("browser_click", CLICK).approval, by="ann")
        show(session, 9999, 'button "Buy"', "http://shop.test/pay?cart=2")
        assert not session.decide("browser_click", CLICK).allowed
