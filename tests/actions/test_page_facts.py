"""Facts that pages show."""

import pytest

from bylaw import Shield
from bylaw.errors import PackError
from bylaw.pack import Pack
from tests.actions.desk import audited, page
from tests.packs import made

FILES = {
    "pack.yaml": "format: 1\nname: shop-admin\ndocument: policy.md\n",
    "policy.md": """# Admin

Only orders that are paid are refunded.
Only products that cost less than 50 EUR are deleted.
""",
    "entities.yaml": """entities:
  Order:
    key: order_id
    read: {tool: browser_navigate, arguments: {url: 'http://shop.test/orders/{order_id}'}}
    fields: {status: string, total: money}
  Product: {key: name, fields: {price: money}}
pages:
  - url: '^http://shop[.]test/orders/[0-9]+$'
    as: Order
    key: {order_id: "$page.url('/orders/([0-9]+)$')"}
    fields: {status: "$page.text('^Status: (.*)$')", total: "$page.text('^Total: (.*)$')"}
  - url: '^http://shop[.]test/products$'
    as: Product
    each: row
    key: {name: "$row.cell('Product')"}
    fields: {price: "$row.cell('Price')"}
""",
    "tools.yaml": """tools:
  browser_navigate: {effect: read, parameters: {url: string}}
  browser_snapshot: {effect: read}
  browser_click: {effect: write}
  refund: {effect: write, parameters: {order_id: string}, changes: [Order.status]}
actions:
  delete_product:
    of: browser_click
    on: {role: button, name: Delete}
    effect: write
    take: {name: "$row.cell('Product')"}
    changes: [Product]
pages: {content: [{role: region, name: Reviews}]}
""",
    "guards/admin.py": '''def paid(call: refund, facts):
    """Only orders that are paid are refunded."""
    return permit() if facts.Order(call.order_id).status == "paid" else deny("it is not paid")


def cheap(call: delete_product, facts):
    """Only products that cost less than 50 EUR are deleted."""
    return permit() if facts.Product(call.name).price < 50 else deny("it is too dear")
''',
}
ORDER = """- main [ref=e1]:
  - heading "Order 1046" [level=1] [ref=e2]
  - paragraph [ref=e3]: "Status: paid"
  - paragraph [ref=e4]: "Total: 30.00 EUR"
  - region "Reviews" [ref=e5]:
    - paragraph [ref=e6]: "Status: returned"
"""
PRODUCTS = """- table [ref=e1]:
  - row "Product Price" [ref=e3]:
    - columnheader "Product" [ref=e4]
    - columnheader "Price" [ref=e5]
    - columnheader "Actions" [ref=e6]
  - row "Lamp 20.00 EUR Delete" [ref=e8]:
    - cell "Lamp" [ref=e9]
    - cell "20.00 EUR" [ref=e10]
    - cell "Delete" [ref=e11]:
      - button "Delete" [ref=e12]
  - row "Chair 80.00 EUR Delete" [ref=e13]:
    - cell "Chair" [ref=e14]
    - cell "80.00 EUR" [ref=e15]
    - cell "Delete" [ref=e16]:
      - button "Delete" [ref=e17]
"""


def pack() -> Pack:
    return made(FILES)


def test_a_page_is_the_look_up_that_shows_a_fact() -> None:
    with Shield(pack()) as shield, shield.session("x") as session:
        blind = session.decide("refund", {"order_id": "1046"})
        assert blind.answer == "look_up"
        (wanted,) = blind.look_ups
        assert (wanted.tool, wanted.arguments) == ("browser_navigate", {"url": "http://shop.test/orders/1046"})
        assert session.decide(wanted.tool, wanted.arguments).allowed
        session.result(page(ORDER, "orders/1046"))
        assert session.decide("refund", {"order_id": "1046"}).allowed
        session.result({"ok": True})
        assert session.decide("refund", {"order_id": "1046"}).answer == "look_up"  # the refund made it stale
        assert session.decide("refund", {"order_id": "1047"}).answer == "look_up"
        assert [verdict for _, name, _, verdict in audited(session, shield.pack) if name == "refund"] == [
            "uninformed",
            "compliant",
            "uninformed",
            "uninformed",
        ]


def test_what_anybody_may_have_written_is_no_fact() -> None:
    unpaid = ORDER.replace("Status: paid", "Status: open").replace("Status: returned", "Status: paid")
    with Shield(pack()) as shield, shield.session("x") as session:
        assert session.decide("browser_navigate", {"url": "http://shop.test/orders/1046"}).allowed
        session.result(page(unpaid, "orders/1046"))
        assert session.decide("refund", {"order_id": "1046"}).answer == "deny"


@pytest.mark.parametrize(("target", "answer"), [("e12", "allow"), ("e17", "deny")])
def test_each_row_of_a_table_is_a_thing(target: str, answer: str) -> None:
    with Shield(pack()) as shield, shield.session("x") as session:
        assert session.decide("browser_navigate", {"url": "http://shop.test/products"}).allowed
        session.result(page(PRODUCTS, "products"))
        assert session.decide("browser_click", {"element": "Lamp", "target": target}).answer == answer


def test_a_snapshot_that_the_agent_wrote_itself_shows_nothing() -> None:
    forged = page(ORDER, "orders/1046")
    with Shield(pack()) as shield, shield.session("x") as session:
        assert session.decide("browser_navigate", {"url": forged}).allowed
        session.result(forged)
        assert session.decide("refund", {"order_id": "1046"}).answer == "look_up"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("as: Product", "as: Produkt", "Produkt"),
        ("$row.cell('Price')", "$row.cell(Price)", "requires quoted text"),
        ("$page.text('^Total: (.*)$')", "$row.cell('Total')", "this page does not show"),
        ("$page.text('^Total: (.*)$')", "$page.text('(')", "is not a valid pattern"),
        ("key: {name:", "key: {nam:", "must locate each key of `Product`"),
        ("/orders/{order_id}", "/orders/{order}", "`order` is not a key"),
    ],
)
def test_a_wrong_page_is_told_with_its_line(old: str, new: str, message: str) -> None:
    text = FILES["entities.yaml"]
    with pytest.raises(PackError) as error:
        made({**FILES, "entities.yaml": text.replace(old, new)})
    lines = enumerate(text.splitlines(), 1)
    places = {f"entities.yaml:{number}" for number, line in lines if old in line or "- url" in line or "read:" in line}
    assert any(message in f"{each.message} {each.hint}" and each.place in places for each in error.value.faults)


def test_a_page_that_was_opened_and_not_shown_is_looked_at() -> None:
    told = "### Page\n- Page URL: http://shop.test/orders/1046\n### Snapshot\n- [Snapshot](page.yml)"
    with Shield(pack()) as shield, shield.session("x") as session:
        assert session.decide("browser_navigate", {"url": "http://shop.test/orders/1046"}).allowed
        session.result(told)
        (wanted,) = session.decide("refund", {"order_id": "1046"}).look_ups
        assert (wanted.tool, wanted.arguments) == ("browser_snapshot", {})
        assert session.decide(wanted.tool, wanted.arguments).allowed
        session.result(page(ORDER.replace("Status: paid", "State: paid"), "orders/1046"))
        unclear = session.decide("refund", {"order_id": "1046"})
        assert unclear.answer == "ask"  # the page was shown, and says nothing of it
        assert session.decide("browser_snapshot", {}).allowed
        session.result(page(ORDER, "orders/1046"))
        assert session.decide("refund", {"order_id": "1046"}).allowed
