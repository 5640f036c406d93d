"""What a real browser's snapshot says of a hostile page is what the page is made of."""

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from bylaw.reading.page import Page, read_page
from tests.browser import open_page

PIECES = [
    '"',
    "'",
    "\\",
    ":",
    "#",
    "-",
    "[",
    "]",
    "{",
    "}",
    "`",
    "/",
    "&",
    "*",
    ",",
    "?",
    "!",
    "|",
    ">",
    "%",
    "@",
    "=",
    "~",
    " ",
    "a",
    "A",
    "1",
    "\n",
    "\t",
    "[ref=e5]",
    " [active]",
    ": ",
    " #",
    '- button "x" [ref=e1]',
    '\n- link "y":',
    "true",
    "null",
    "1.5",
    "```",
    "### Page",
    "- Page URL: http://evil/",
    "\u2028",
    "\x85",
    "\xa0",
    "\u202e",
    "\U0001f600",
    "\ud83d",
    "/re/",
    "\x01",
    "<secret>",
    "\\u0041",
    "&amp;",
]
ROLES = {"button": "button", "a": "link", "section": "region", "article": "article", "nav": "navigation"}
BUILD = """nodes => {
  const add = (parent, [tag, name, text, children]) => {
    const made = document.createElement(tag);
    if (tag === 'a') made.setAttribute('href', text || '/x');
    if (name) made.setAttribute('aria-label', name);
    if (text && tag !== 'a') made.append(text);
    made.style.cursor = 'default';
    parent.append(made);
    for (const child of children) add(made, child);
  };
  document.body.replaceChildren();
  for (const node of nodes) add(document.body, node);
}"""


@pytest.fixture
def tab(chromium: Any) -> Iterator[Any]:
    page = open_page(chromium, (1000, 800), "light")
    page.set_content("<title>Shop</title><body></body>")
    yield page
    page.context.close()


def hostile_text(choose: random.Random) -> str:
    return "".join(choose.choice(PIECES) for _ in range(choose.randint(0, 5)))


def node(choose: random.Random, depth: int) -> list[Any]:
    tag = choose.choice(
        ["section", "article", "nav"] if depth and choose.random() < 0.7 else ["button", "a", "p", "h2"]
    )
    is_box = tag in ("section", "article", "nav")
    children = [node(choose, depth - 1) for _ in range(choose.randint(1, 4))] if is_box else []
    return [tag, "" if tag in ("p", "h2") else f"n{hostile_text(choose)}", hostile_text(choose), children]


def shown(text: str) -> str:
    """A name as browsers give it: white space is one space, lone surrogates and what is invisible aside."""
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = re.sub("[\u200b\u00ad]", "", text)
    return re.sub(r"[\s\ufeff\u2028\u2029\xa0]+", " ", text.replace("\x85", "\0")).strip().replace("\0", "\x85")


def expected(nodes: list[list[Any]]) -> Iterator[tuple[str, str]]:
    for tag, name, _, children in nodes:
        if tag in ROLES:
            yield ROLES[tag], shown(name)
        yield from expected(children)


def found(page: Page) -> list[tuple[str, str]]:
    return [(each.role, each.name) for each in page.elements if each.role in ROLES.values()]


@pytest.mark.parametrize("seed", range(25))
def test_names_and_roles_are_those_of_the_page(tab: Any, seed: int) -> None:
    choose = random.Random(seed)
    nodes = [node(choose, 4) for _ in range(4)]
    tab.evaluate(BUILD, nodes)
    snapshots = [tab.locator("body").aria_snapshot(), tab.aria_snapshot(mode="ai")]
    for text in snapshots:
        page = read_page(text)
        assert found(page) == list(expected(nodes))
    by_ref = read_page(snapshots[1])
    assert all(each.ref for each in by_ref.elements if each.role == "button")
    for shape in (f"### Page\n- Page URL: http://shop/\n### Snapshot\n```yaml\n{snapshots[1]}\n```\n### Events\n- x",):
        assert read_page(shape).elements[-1].ref == by_ref.elements[-1].ref


def test_what_has_the_focus_and_what_is_in_fields_and_tables_is_read(tab: Any) -> None:
    tab.set_content(
        "<h1>Orders: 2</h1><input aria-label='Name' value='Ada: \"x\"'><input type=checkbox checked aria-label=ok>"
        "<table><tr><th>Order</th><th>Total: all</th></tr><tr><td>1046</td><td>12.50</td></tr></table>"
        "<iframe srcdoc='<button>Pay</button>'></iframe><a href='/x?a=1#b'>Open</a>"
    )
    tab.focus("input")
    page = read_page(tab.aria_snapshot(mode="ai"))
    assert page.focused is not None
    assert (page.focused.role, page.focused.name, page.focused.text) == ("textbox", "Name", 'Ada: "x"')
    (table,) = page.find("table")
    assert page.columns(table) == ("Order", "Total: all")
    *_, row = page.rows(table)
    cell = page.cell(row, "Total: all")
    assert cell is not None
    assert page.text_of(cell) == "12.50"
    (heading,) = page.find("heading", "Orders: 2")
    assert heading.level == 1
    (link,) = page.find("link", "Open")
    assert page.properties[link.at]["url"] == "/x?a=1#b"
    (checkbox,) = page.find("checkbox", "ok")
    assert checkbox.state("checked") == ""
    assert all(page.is_in_frame(each) for each in page.find("button", "Pay"))
