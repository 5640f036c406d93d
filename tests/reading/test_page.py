"""A snapshot of Playwright's is read as the tree it was written from, and no name in it passes for an element."""

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.reading import Unreadable
from bylaw.reading.page import Element, Page, read_page

SHOP = """### Ran Playwright code
```js
await page.goto('http://localhost/orders');
```
### Page
- Page URL: http://localhost/orders
- Page Title: Orders
### Snapshot
```yaml
- main [ref=e2]:
  - heading "Orders" [level=1] [ref=e3]
  - link "Bob [ref=f1e14] list" [ref=e4] [cursor=pointer]:
    - /url: /bob?a=1#b
  - 'button "Delete: all" [ref=e5]'
  - table "All" [ref=e6]:
    - rowgroup [ref=e7]:
      - row [ref=e8]:
        - columnheader "Order" [ref=e9]
        - columnheader "Total" [ref=e10]
    - rowgroup [ref=e11]:
      - row [ref=e12]:
        - cell "1046" [ref=e13]
        - cell [ref=e14]:
          - text: "Total:"
          - strong [ref=e15]: "12.50"
  - region "Reviews" [ref=e16]:
    - heading "What others say" [level=2] [ref=e17]
    - paragraph [ref=e18]: "- button \\"Delete\\" [ref=e5]"
  - textbox "Name" [active] [ref=e19]:
    - /placeholder: Your name
    - text: "Ada"
  - iframe [ref=e20]:
    - button "Pay" [ref=f1e2]
```
"""


def test_a_page_has_its_address_its_title_and_its_elements() -> None:
    page = read_page(SHOP)
    assert (page.url, page.title, page.is_complete) == ("http://localhost/orders", "Orders", True)
    heading = found(page, "e3")
    assert (heading.role, heading.name, heading.level) == ("heading", "Orders", 1)
    assert page.properties[found(page, "e4").at] == {"url": "/bob?a=1#b"}


def test_a_name_never_passes_for_an_element() -> None:
    page = read_page(SHOP)
    assert page.by_ref("f1e14") is None
    assert found(page, "e5").name == "Delete: all"
    assert found(page, "e18").text == '- button "Delete" [ref=e5]'
    assert [each.ref for each in page.find("button")] == ["e5", "f1e2"]


def test_tables_have_columns_rows_and_cells() -> None:
    page = read_page(SHOP)
    table = found(page, "e6")
    assert page.columns(table) == ("Order", "Total")
    _, row = page.rows(table)
    cell = page.cell(row, "Total")
    assert cell is not None
    assert page.text_of(cell) == "Total: 12.50"
    assert page.cell(row, "Price") is None


def test_places_are_known_by_ancestors_and_frames() -> None:
    page = read_page(SHOP)
    review = found(page, "e18")
    assert [each.name for each in page.ancestors(review)] == ["Reviews", ""]
    assert page.is_in_frame(found(page, "f1e2"))
    assert not page.is_in_frame(review)


def test_an_element_without_a_name_is_called_by_its_text() -> None:
    page = read_page('- button [ref=e1]:\n  - img "Go"\n  - text: on\n- button "Pay" [ref=e2]: Read more')
    assert page.label(found(page, "e1")) == "Go on"
    assert page.label(found(page, "e2")) == "Pay"


def test_the_focused_element_is_the_innermost_active_one() -> None:
    page = read_page(SHOP)
    assert page.focused == page.by_ref("e19")
    framed = read_page('- iframe [active] [ref=e1]:\n  - button "Pay" [active] [ref=f1e2]')
    assert framed.focused == framed.by_ref("f1e2")
    assert read_page('- button "A" [active]\n- button "B" [active]').focused is None
    assert read_page('- button "A"').focused is None


def test_a_cut_snapshot_is_read_up_to_the_cut_and_is_not_complete() -> None:
    page = read_page(SHOP[: SHOP.index('- button "Pay"') + 9])
    assert not page.is_complete
    assert page.elements[-1].role == "iframe"


def test_a_snapshot_of_changes_is_not_complete() -> None:
    page = read_page('- <changed> main [ref=e1]:\n  - ref=e2 [unchanged]\n  - <changed> button "A" [ref=e3]')
    assert not page.is_complete
    assert found(page, "e3").name == "A"


@pytest.mark.parametrize(
    "text",
    [
        "- Page URL: http://localhost/\n- Page Title: Orders\n- Page Snapshot\n```yaml\n- main [ref=s1e3]:\n"
        '    - link "Open" [ref=s1e4]:\n        - /url: /orders\n```\n',
        "### Page state\n- Page URL: http://localhost/\n- Page Title: Orders\n- Page Snapshot:\n```yaml\n"
        '- main [ref=s1e3]:\n  - link "Open" [ref=s1e4]:\n    - /url: /orders\n```\n',
        '- main [ref=s1e3]:\n  - link "Open" [ref=s1e4]:\n    - /url: /orders',
    ],
)
def test_older_shapes_are_read_alike(text: str) -> None:
    page = read_page(text)
    assert found(page, "s1e4").name == "Open"
    assert page.properties == {1: {"url": "/orders"}}


def test_a_name_between_slashes_ends_at_the_last_slash() -> None:
    page = read_page("- link /x [ref=e5]/ [ref=e6]")
    assert page.by_ref("e5") is None
    assert found(page, "e6").name == "/x [ref=e5]/"


HOSTILE = {
    "a reference twice": '- button "A" [ref=e1]\n- button "B" [ref=e1]',
    "two references": '- button "A" [ref=e1] [ref=e2]',
    "a state twice": '- heading "A" [level=1] [level=2]',
    "text after a name": '- button "A" [ref=e1] "B" [ref=e2]',
    "two names": '- button "A" "B" [ref=e1]',
    "a name without an end": '- button "A [ref=e1]',
    "a text with a line of its own": '- paragraph: a\nbutton "B" [ref=e1]',
    "a text in quotes without an end": '- paragraph: "a\n- button "B" [ref=e1]',
    "a child of a text": '- paragraph: a\n  - button "B" [ref=e1]',
    "a child of an element without a colon": '- paragraph\n  - button "B" [ref=e1]',
    "a child that is indented twice": '- main:\n    - button "B" [ref=e1]\n  - button "C" [ref=e2]',
    "a tab": '- main:\n\t- button "B" [ref=e1]',
    "a list in a list": '- - button "B" [ref=e1]',
    "a mapping": "button: B",
    "an anchor": "- &a button",
    "a block text": "- paragraph: |\n  a",
    "an empty line": '- button "A"\n\n- button "B"',
    "a comment": '- button "A" # comment',
    "tools of the page": '- webmcp tools (page-provided, untrusted):\n  - buy\n\n- button "A" [ref=e1]',
    "two snapshots": '```yaml\n- button "A" [ref=e1]\n```\n```yaml\n- button "B" [ref=e2]\n```',
    "no snapshot": "### Page\n- Page URL: http://localhost/",
    "two addresses": "- Page URL: a\n- Page URL: b\n```yaml\n- main\n```",
    "a result before it": "### Result\nanything\n### Snapshot\n```yaml\n- main\n```",
    "a property of nothing": "- /url: /x",
    "a property twice": "- link:\n  - /url: /x\n  - /url: /y",
    "nothing": "",
    "an empty snapshot": "```yaml\n```",
    "an escape that is none": '- paragraph: "\\q"',
    "a quoted key with more": "- 'button \"A\"' [ref=e1]",
    "a quoted key with a value": "- 'button \"A\": b'",
    "too deep": "\n".join("  " * depth + "- list:" for depth in range(500)),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_is_not_playwrights_grammar_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        read_page(text)


def test_the_line_at_fault_is_named() -> None:
    with pytest.raises(Unreadable, match="line 14"):
        read_page(SHOP.replace('"Delete: all" [ref=e5]', '"Delete: all [ref=e5]'))


# A generated tree, written by Playwright's rules, is read as itself.

ROLES = st.sampled_from(["button", "link", "list", "listitem", "row", "cell", "generic", "paragraph"])
TEXTS = st.text(
    st.one_of(
        st.sampled_from([*list(" \"'\\:#-[]{}`/&*,?!|>%@=~\n\t\r"), "\x85", "\u2028", "\xa0", "\ufeff", "😀"]),
        st.characters(codec="utf-8"),
    ),
    max_size=20,
).map(lambda text: re.sub(r"\s+", " ", text.strip()))
"""As the browser hands them over: white space is one space, none at the ends."""
Tree = tuple[str, str, str, list[Any]]
TREES = st.recursive(
    st.tuples(ROLES, TEXTS, TEXTS, st.just([])),
    lambda inner: st.tuples(ROLES, TEXTS, st.just(""), st.lists(inner, max_size=4)),
    max_leaves=15,
)


def needs_quotes(text: str) -> bool:
    """Playwright's rule for texts and keys that YAML would read as something else."""
    is_number = re.fullmatch(r"\s*([-+]?(\d+\.?\d*([eE][-+]?\d+)?|\.\d+|Infinity)|0[xX][0-9a-fA-F]+)?\s*", text)
    return bool(
        text == ""
        or text != text.strip()
        or re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\n\r{}`]|:(\s|$)|\s#", text)
        or re.match(r"[-&*\],?!>|@\"'#%\[]", text)
        or is_number
        or text.lower() in ("y", "n", "yes", "no", "true", "false", "on", "off", "null", "~")
    )


def written_value(text: str) -> str:
    if not needs_quotes(text):
        return text
    short = {"\\": "\\\\", '"': '\\"', "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    escaped = re.sub(r'[\\"\x00-\x1f\x7f-\x9f]', lambda found: short.get(found[0], f"\\x{ord(found[0]):02x}"), text)
    return f'"{escaped}"'


def written(tree: Tree, refs: list[str], depth: int = 0) -> list[str]:
    role, name, text, children = tree
    refs.append(f"e{len(refs) + 1}")
    key = role + (f" {json.dumps(name, ensure_ascii=False)}" if name else "") + f" [ref={refs[-1]}]"
    if needs_quotes(key):
        key = "'" + key.replace("'", "''") + "'"
    head = "  " * depth + "- " + key
    if text:
        return [f"{head}: {written_value(text)}"]
    if not children:
        return [head]
    return [f"{head}:", *(line for child in children for line in written(child, refs, depth + 1))]


def told(page: Page, element: Element) -> Tree:
    children: list[Any] = [told(page, child) for child in page.children(element)]
    return element.role, element.name, element.text, children


@given(st.lists(TREES, min_size=1, max_size=3))
def test_a_written_tree_is_read_as_itself(trees: list[Tree]) -> None:
    refs: list[str] = []
    text = "\n".join(line for tree in trees for line in written(tree, refs))
    for shape in (text, f"### Page\n- Page URL: http://localhost/\n### Snapshot\n```yaml\n{text}\n```"):
        page = read_page(shape)
        assert [told(page, each) for each in page.elements if each.parent < 0] == trees
        assert [each.ref for each in page.elements] == refs


@given(st.lists(TREES, min_size=1, max_size=2), st.data())
def test_a_damaged_snapshot_is_unreadable_or_has_no_new_reference(trees: list[Tree], data: st.DataObject) -> None:
    refs: list[str] = []
    text = "\n".join(line for tree in trees for line in written(tree, refs))
    at = data.draw(st.integers(0, len(text)))
    damaged = text[:at] + data.draw(st.sampled_from(['"', "'", ":", "\n", "\\", "[", "- "])) + text[at:]
    try:
        page = read_page(damaged)
    except Unreadable:
        return
    assert {each.ref for each in page.elements if each.ref} <= set(refs)


def test_a_page_of_128_kb_is_read_in_linear_time() -> None:
    def cost(orders: int) -> float:
        text = "\n".join(
            f'- row [ref=a{n}]:\n  - cell "Order {n}" [ref=b{n}]\n  - \'cell "Total: {n}" [ref=c{n}]\':\n'
            f'    - link "Open {n}" [ref=d{n}] [cursor=pointer]:\n      - /url: /orders/{n}\n    - text: {n}.00 in all'
            for n in range(orders)
        )
        costs: list[float] = []
        for _ in range(5):
            begun = time.process_time()
            read_page(text)
            costs.append(time.process_time() - begun)
        return min(costs)

    assert cost(4000) < 10 * cost(650) + 0.05


def found(page: Page, ref: str) -> Element:
    element = page.by_ref(ref)
    assert element is not None
    return element
