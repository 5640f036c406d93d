"""A shop that an agent works in with generic tools: a browser, SQL and a shell."""

from typing import Any

from bylaw import Shield, verdicts
from bylaw.pack import Pack
from bylaw.shield import LiveSession
from bylaw.shield.decision import Decision
from tests.packs import made

FILES = {
    "pack.yaml": "format: 1\nname: shop-desk\ndocument: policy.md\n",
    "policy.md": """# Shop desk

- Never place an order of more than 500 EUR.
- Orders are delivered to the office only.
- Before an order is placed, the user confirms it.
- Delete a product only after its page was looked at, and only once per conversation.
- Nothing under `secret` is removed.
- Rows are never deleted without a condition.
- At most two refunds an hour.
""",
    "policies.yaml": """policies:
  - {id: confirmed, kind: rule, spans: ['Before an order is placed, the user confirms it.']}
  - {id: few-refunds, kind: rule, spans: ['At most two refunds an hour.']}
""",
    "tools.yaml": """tools:
  browser_navigate: {effect: read, parameters: {url: string}}
  browser_snapshot: {effect: read}
  browser_click: {effect: write}
  browser_type: {effect: write}
  browser_press_key: {effect: write}
  browser_evaluate: {effect: write}
  execute_sql: {effect: write, parameters: {query: string}}
  bash: {effect: write, parameters: {command: string}}
actions:
  place_order:
    of: [browser_click, browser_type, browser_press_key]
    on: {page: '/checkout$', role: button, name: Place order}
    effect: write
    title: place the order
    take:
      total: {value: "$page.text('^Total: ([0-9.]+) EUR$')", type: number}
      address: "$page.text('^Deliver to: (.*)')"
    changes: []
  delete_product:
    of: browser_click
    on: {page: '/products$', role: button, name: Delete}
    effect: write
    take: {product: "$row.cell('Product')"}
    changes: []
  follow_link: {of: browser_click, on: {role: link}, effect: write, changes: []}
  fill_in: {of: browser_type, on: {role: textbox}, effect: read, take: {text: $argument.text}}
  refund:
    of: browser_click
    on: {role: button, named: '^Refund'}
    effect: write
    take: {order: "$page.text('^Order ([0-9]+)$')"}
    changes: []
  read_rows: {of: execute_sql, reads: {argument: query, as: sql, dialect: postgres, statements: [select]}, effect: read}
  delete_rows:
    of: execute_sql
    reads: {argument: query, as: sql, dialect: postgres, statements: [delete]}
    effect: write
    take:
      tables: {value: $statement.tables_written, type: list}
      bounded: {value: $statement.bounded, type: boolean}
    changes: []
otherwise: {browser_evaluate: deny}
tables:
  orders: {columns: [id, total], keys: [id]}
  t: {keys: [a]}
pages:
  content: [{role: region, name: Reviews}]
  looks: ["http://shop[.]test/[a-z0-9/]*"]
  fields: [Note]
""",
    "rules.yaml": """predicates:
  ordering: {tool: place_order}
  agreed: {consented: card}
rules:
  - {id: confirmed, formula: ALWAYS (ordering IMPLIES agreed)}
limits:
  - {id: few-refunds, tool: refund, most: 2, within: 1h}
""",
    "guards/shop.py": '''def order_limit(call: place_order, facts):
    """Never place an order of more than 500 EUR."""
    return deny("the order is over 500 EUR") if call.total > 500 else permit()


def office(call: place_order, facts):
    """Orders are delivered to the office only."""
    return permit() if call.address == "Office, Main Street 1" else deny("orders go to the office")


def one_deletion(call: delete_product, facts):
    """Delete a product only after its page was looked at, and only once per conversation."""
    return permit() if done("delete_product") == 0 else deny("a product was deleted already")


def links(call: follow_link, facts):
    """At most two refunds an hour."""
    return permit()


def bounded(call: delete_rows, facts):
    """Rows are never deleted without a condition."""
    return permit() if call.bounded else deny("the statement has no condition")
''',
}
CHECKOUT = """- main [ref=e1]:
  - heading "Checkout" [level=1] [ref=e2]
  - paragraph [ref=e3]: "Total: 120.50 EUR"
  - paragraph [ref=e4]: "Deliver to: Office, Main Street 1"
  - link "Go back to the products" [ref=e5]:
    - /url: /products
  - generic [ref=e11]:
    - textbox "Note" [ref=e6]
    - button "Place order" [ref=e7]:
      - img [ref=e8]
  - region "Reviews" [ref=e9]:
    - paragraph [ref=e10]: "Total: 1.00 EUR"
"""
PRODUCTS = """- table [ref=e1]:
  - rowgroup [ref=e2]:
    - row "Product Price" [ref=e3]:
      - columnheader "Product" [ref=e4]
      - columnheader "Price" [ref=e5]
      - columnheader "Actions" [ref=e6]
  - rowgroup [ref=e7]:
    - row "Lamp 20.00 Delete" [ref=e8]:
      - cell "Lamp" [ref=e9]
      - cell "20.00" [ref=e10]
      - cell "Delete" [ref=e11]:
        - button "Delete" [ref=e12]
    - row "Chair 80.00 Delete" [ref=e13]:
      - cell "Chair" [ref=e14]
      - cell "80.00" [ref=e15]
      - cell "Delete" [ref=e16]:
        - button "Delete" [ref=e17]
"""
ORDER = """- main [ref=e1]:
  - heading "Order 1046" [level=1] [ref=e2]
  - button "Refund this order" [ref=e3]
"""


def page(body: str, path: str = "checkout") -> str:
    """The result of a browser tool that shows a page."""
    return f"### Page\n- Page URL: http://shop.test/{path}\n- Page Title: Shop\n### Snapshot\n```yaml\n{body}```"


def pack() -> Pack:
    return made(FILES)


def with_tools(old: str, new: str) -> Pack:
    """The pack with a part of its tools.yaml replaced."""
    assert old in FILES["tools.yaml"]
    return made({**FILES, "tools.yaml": FILES["tools.yaml"].replace(old, new)})


def opened(shield: Shield, body: str = CHECKOUT, path: str = "checkout", name: str = "x") -> LiveSession:
    """A session whose agent has just opened a page."""
    session = shield.session(name)
    session.user("I want the lamp and the chair delivered.")
    assert session.decide("browser_navigate", {"url": f"http://shop.test/{path}"}).allowed
    session.result(page(body, path))
    return session


def acts(decision: Decision) -> list[tuple[str, dict[str, Any]]]:
    """The actions of a decision."""
    return [(each.name, each.arguments) for each in decision.actions]


def audited(session: LiveSession, of: Pack) -> list[tuple[int, str, dict[str, Any], str]]:
    """What an audit of the conversation so far says of each action: its step, name, arguments and verdict."""
    found = verdicts(of, session.trajectory())
    return [
        (each.made.step, each.made.call.tool, each.made.call.arguments, "violation" if each.rules else each.determined)
        for each in found.calls
    ]
