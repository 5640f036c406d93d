"""A yes to an action is for all that its call says, not only for the values taken from it."""

from collections.abc import Mapping
from typing import Any

import pytest

from bylaw import Shield
from bylaw.record import Log
from bylaw.shield import LiveSession
from tests.actions.desk import CHECKOUT, FILES, page
from tests.packs import made

RULES = """predicates:
  acting: {tool: [delete_rows, place_order, choose, send, fill_in_form]}
  agreed: {consented: card}
rules:
  - {id: confirmed, formula: ALWAYS (acting IMPLIES agreed)}
limits:
  - {id: few-refunds, tool: refund, most: 2, within: 1h}
"""
TOOLS = FILES["tools.yaml"].replace(
    "  bash:",
    "  browser_select_option, browser_fill_form: {effect: write}\n"
    "  http: {effect: write, parameters: {url: string, body: string?}}\n  bash:",
).replace(
    "  read_rows:",
    """  choose: {of: browser_select_option, on: {role: combobox}, effect: write, take: {field: $element.name}}
  fill_in_form: {of: browser_fill_form, on: {role: textbox}, effect: write, take: {field: $element.name}}
  send:
    of: http
    reads: {argument: url, as: url}
    effect: write
    take: {host: $url.host}
    changes: []
  read_rows:""",
)  # fmt: skip
DESK = {**FILES, "tools.yaml": TOOLS, "rules.yaml": RULES}
PAGE = CHECKOUT + '- combobox "Plan" [ref=e30]\n- textbox "Name" [ref=e31]\n'


def opened(session: LiveSession, url: str = "http://shop.test/checkout") -> None:
    assert session.decide("browser_navigate", {"url": url}).allowed
    session.result(page(PAGE).replace("http://shop.test/checkout", url))


def field(value: str) -> dict[str, Any]:
    return {"fields": [{"name": "n", "type": "textbox", "target": "e31", "value": value}]}


@pytest.mark.parametrize(
    ("tool", "agreed", "other", "shown"),
    [
        (
            "execute_sql",
            {"query": "DELETE FROM orders WHERE id = 7"},
            {"query": "DELETE FROM orders WHERE customer = 'ACME'"},
            "WHERE id = 7",
        ),
        ("execute_sql", {"query": "DELETE FROM t WHERE a = 1 -- x\n AND b = 2"},
         {"query": "DELETE FROM t WHERE a = 1 -- x AND b = 2"}, "AND b = 2"),
        ("browser_select_option", {"target": "e30", "values": ["Free"]},
         {"target": "e30", "values": ["Subscribe"]}, "Free"),
        ("browser_fill_form", field("Ann"), field("Bob"), "Ann"),
        ("http", {"url": "https://a.test/x", "body": "small"}, {"url": "https://a.test/x", "body": "large"}, "small"),
        ("http", {"url": "https://a.test/x", "body": "b"}, {"url": "https://a.test/y", "body": "b"}, "a.test/x"),
    ],
)  # fmt: skip
def test_a_yes_is_for_the_whole_call(
    tool: str, agreed: Mapping[str, Any], other: Mapping[str, Any], shown: str
) -> None:
    with Shield(made(DESK)) as shield, shield.session("x") as session:
        session.user("Please do it.")
        opened(session)
        card = session.decide(tool, dict(agreed)).card
        assert card is not None
        assert shown in card.text
        session.confirm(card.id, yes=True)
        assert session.decide(tool, dict(other)).answer != "allow"
        assert session.decide(tool, dict(agreed)).allowed


SAME = '- main [ref=e1]:\n  - paragraph [ref=e2]: "Total: 5 EUR"\n  - button "Place order" [ref=e7]\n'


@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("http://shop.test/checkout?step=2", SAME),
        ("http://evil.test/checkout", SAME),
        ("http://shop.test/checkout", SAME.replace("5 EUR", "9 EUR")),
        (
            "http://shop.test/checkout",
            SAME.replace("e7]", "e8]").replace('"Place', '"Cancel" [ref=e7]\n  - button "Place'),
        ),
        ("http://shop.test/checkout", SAME + '- textbox "Note" [ref=e9]: Leave it at the neighbour\'s.\n'),
        ("http://shop.test/checkout", SAME.replace("- main [ref=e1]", "- iframe [ref=e1]")),
        ("http://shop.test/checkout", SAME.replace("- main [ref=e1]", '- dialog "Order all again" [ref=e1]')),
    ],
)
def test_a_yes_to_a_button_is_for_its_page_as_shown(url: str, body: str) -> None:
    press = FILES["tools.yaml"].replace(
        "on: {page: '/checkout$', role: button, name: Place order}", "on: {role: button}"
    )
    press = press.replace("value: \"$page.text('^Total: ([0-9.]+) EUR$')\", type: number", "value: $element.role")
    press = press.replace("\"$page.text('^Deliver to: (.*)')\"", "$element.name")
    files = {**FILES, "tools.yaml": press, "rules.yaml": RULES.replace(", choose, send, fill_in_form", "")}
    del files["guards/shop.py"]
    with Shield(made(files)) as shield, shield.session("x") as session:
        session.user("Please do it.")

        def show(url: str, body: str) -> None:
            assert session.decide("browser_navigate", {"url": url}).allowed
            session.result(page(body).replace("http://shop.test/checkout", url))

        show("http://shop.test/checkout", SAME)
        card = session.decide("browser_click", {"target": "e7"}).card
        assert card is not None
        session.confirm(card.id, yes=True)
        show(url, body)
        assert not session.decide("browser_click", {"target": "e7"}).allowed
        show("http://shop.test/checkout", SAME.replace('order"', 'order" [active] [cursor=pointer]'))
        assert session.decide("browser_click", {"target": "e7"}).allowed


def test_a_yes_to_an_action_by_itself_is_none_to_it_among_others() -> None:
    with Shield(made(DESK)) as shield, shield.session("x") as session:
        session.user("Please do it.")
        opened(session)
        card = session.decide("browser_click", {"target": "e7"}).card
        assert card is not None
        session.confirm(card.id, yes=True)
        assert not session.decide("browser_click", {"target": "e5", "ref": "e7"}).allowed
        assert session.decide("browser_click", {"target": "e7"}).allowed


def test_an_approval_is_for_the_page_as_well() -> None:
    limits = FILES["rules.yaml"].replace("most: 2", "most: 1, over: ask")
    order = '- main [ref=e1]:\n  - heading "Order 1046" [ref=e2]\n  - paragraph [ref=e4]: "Order 1046"\n'
    order += '  - button "Refund this order" [ref=e3]\n'
    with Log(":memory:") as log, Shield(made({**FILES, "rules.yaml": limits}), log=log) as shield:
        session = shield.session("c")

        def show(url: str) -> None:
            assert session.decide("browser_navigate", {"url": url}).allowed
            session.result(page(order).replace("http://shop.test/checkout", url))

        show("http://shop.test/orders/1046")
        session.decide("browser_click", {"target": "e3"})
        session.result("done")
        show("http://shop.test/orders/1046")
        asked = session.decide("browser_click", {"target": "e3"})
        log.approve(asked.approval, by="ann")
        show("http://evil.test/orders/1046")
        assert not session.decide("browser_click", {"target": "e3"}).allowed
        show("http://shop.test/orders/1046")
        assert session.decide("browser_click", {"target": "e3"}).allowed
