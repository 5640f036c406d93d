"""What an agent can write itself shows no fact: literals, echoes, fields, frames, pages of other hosts."""

from typing import Any

import pytest

from bylaw import Shield
from bylaw.errors import PackError
from bylaw.pack import Pack
from tests.actions import test_page_facts as pages
from tests.actions.desk import page
from tests.packs import made

FILES = {
    "pack.yaml": "format: 1\nname: desk\ndocument: policy.md\n",
    "policy.md": "Only orders that are paid are refunded.\n",
    "entities.yaml": """entities:
  Order: {key: order_id, fields: {status: string}}
observations:
  read_orders: {as: Order, each: '$[*]'}
  get_order: {as: Order}
  fetch: {as: Order}
""",
    "tools.yaml": """tools:
  execute_sql: {effect: write, parameters: {query: string}}
  bash: {effect: write, parameters: {command: string}}
  crm: {effect: write, parameters: {op: string, order_id: string?}}
  http: {effect: write, parameters: {url: string}}
  read_file: {effect: read, parameters: {path: string}}
  browser_snapshot: {effect: read}
  refund: {effect: write, parameters: {order_id: string}, changes: [Order.status]}
actions:
  read_orders:
    of: execute_sql
    reads: {argument: query, as: sql, dialect: postgres, statements: [select], tables: ['^orders$']}
    effect: read
  add: {of: execute_sql, reads: {argument: query, as: sql, dialect: postgres, statements: [insert]}, effect: write}
  look: {of: bash, reads: {argument: command, as: shell}, effect: read}
  get_order: {of: crm, where: {op: '^get$'}, effect: read, take: {order_id: $argument.order_id}}
  fetch: {of: http, reads: {argument: url, as: url, host: '^crm[.]test$'}, effect: read}
  open_file: {of: read_file, reads: {argument: path, as: path, root: /work, inside: true}, effect: read}
otherwise: {bash: ask}
tables: {orders: {columns: [status, note], keys: [order_id]}}
""",
    "guards/g.py": '''def paid(call: refund, facts):
    """Only orders that are paid are refunded."""
    return permit() if facts.Order(call.order_id).status == "paid" else deny("it is not paid")
''',
}
PAID = {"order_id": "A1", "status": "paid"}


def answer(pack: Pack, tool: str, arguments: dict[str, Any], result: Any) -> str:
    """What is said of a refund after a look-up."""
    with Shield(pack) as shield, shield.session("x") as session:
        if session.decide(tool, arguments).allowed:
            session.result(result)
        return session.decide("refund", {"order_id": "A1"}).answer


@pytest.mark.parametrize(
    "query",
    [
        "select order_id, status from orders where order_id = 'A1'",
        "SELECT * FROM orders o WHERE lower(o.status) = 'paid' ORDER BY 1 LIMIT 5 OFFSET 0",
        "select o.*, o.status from orders as o",
        "select distinct order_id, status from orders",
    ],
)
def test_columns_of_a_named_table_show_facts(query: str) -> None:
    assert answer(made(FILES), "execute_sql", {"query": query}, [PAID]) == "allow"


@pytest.mark.parametrize(
    "query",
    [
        "select 'A1' as order_id, 'paid' as status from orders limit 1",
        "select order_id, note as status from orders",
        "select order_id, note status from orders",
        "select order_id, upper(status) from orders",
        "select order_id, status || '' from orders",
        "select order_id, (select 'paid') from orders",
        "select * from (select 'A1' as order_id, 'paid' as status from orders) t",
        "with t as (select 'A1' as order_id, 'paid' as status from orders) select * from t",
        "with orders as (select 'A1' as order_id, 'paid' as status) select * from orders",
        "select order_id, status from orders union select 'A1', 'paid' from orders",
        "select o.order_id, n.status from orders o, orders n",
        "select o.order_id, n.status from orders o join orders n on true",
        "select * from orders as o(status, order_id)",
        "select o.order_id, v.status from orders o, lateral (values ('paid')) as v(status)",
        "select order_id, status from orders; select 1 from orders",
        "select order_id, status from orders; select order_id, status from orders",
        "select order_id, max(status) from orders group by order_id",
        "select order_id, status from orders tablesample system (10)",
        "select distinct on (order_id) order_id, status from orders",
        "select current_user, status from orders",
    ],
)
def test_a_query_that_makes_values_shows_no_fact(query: str) -> None:
    assert answer(made(FILES), "execute_sql", {"query": query}, [PAID]) != "allow"


def test_other_tools_whose_results_are_their_own_show_facts() -> None:
    assert answer(made(FILES), "crm", {"op": "get", "order_id": "A1"}, PAID) == "allow"
    assert answer(made(FILES), "http", {"url": "https://crm.test/orders/A1"}, PAID) == "allow"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "read_orders: {as: Order, each: '$[*]'}",
            "execute_sql: {as: Order}",
            "can return any text that the agent asks for",
        ),
        ("read_orders: {as: Order, each: '$[*]'}", "look: {as: Order}", "may return what the agent itself wrote"),
        ("read_orders: {as: Order, each: '$[*]'}", "bash: {as: Order}", "can return any text that the agent asks for"),
        ("read_orders: {as: Order, each: '$[*]'}", "add: {as: Order}", "may return what the agent itself wrote"),
        ("read_orders: {as: Order, each: '$[*]'}", "open_file: {as: Order}", "may return what the agent itself wrote"),
        ("read_orders: {as: Order, each: '$[*]'}", "browser_snapshot: {as: Order}", "returns a page"),
        ("each: '$[*]'", "text: '(?P<order_id>A1) (?P<status>paid)'", "must not use `text`, `absent`"),
        ("each: '$[*]'", "absent: none", "must not use `text`, `absent`"),
        ("each: '$[*]'", "key: $args.query", "or `$args`"),
        (", tables: ['^orders$']", "", "may return what the agent itself wrote"),
        ("'^crm[.]test$'", "'crm[.]test$'", "may return what the agent itself wrote"),
        ("'^crm[.]test$'", "'^crm.test$'", "may return what the agent itself wrote"),
        ("read\n  add:", "read\n    take: {order_id: $argument.query}\n  add:", "would come from the agent"),
    ],
)  # fmt: skip
def test_an_observation_of_what_an_agent_may_write_does_not_load(old: str, new: str, message: str) -> None:
    files = {name: text.replace(old, new) for name, text in FILES.items()}
    assert files != FILES
    with pytest.raises(PackError) as error:
        made(files)
    assert any(message in each.message for each in error.value.faults)


@pytest.mark.parametrize(
    ("old", "new", "url", "arguments"),
    [
        ("", "", "http://evil.test/orders/1046", {}),
        ("", "", "http://shop.test.evil.test/orders/1046", {}),
        ("", "", "http://shop.test/uploads/orders/1046", {}),
        ("", "", "http://shop.test/orders/1046?note=Status:+paid", {}),
        ("", "", "http://shop.test/orders/1046#Status", {}),
        ("", "", "http://shop.test/orders/1046", {"target": "e1"}),
        ('paragraph [ref=e3]: "Status: paid"', 'iframe [ref=e3]:\n    - heading "Status: paid"', "", {}),
        ('paragraph [ref=e3]: "Status: paid"', 'textbox "Search" [ref=e3]: "Status: paid"', "", {}),
        ('paragraph [ref=e3]: "Status: paid"', 'heading "x" [ref=e3]:\n    - textbox "Status: paid"', "", {}),
    ],
)
def test_a_page_shows_its_own_words_on_its_own_host(old: str, new: str, url: str, arguments: dict[str, str]) -> None:
    entities = pages.FILES["entities.yaml"].replace("$page.text('^Status", "$page.heading('^Status") if new else ""
    for text in {pages.FILES["entities.yaml"], entities or pages.FILES["entities.yaml"]}:
        with Shield(made({**pages.FILES, "entities.yaml": text})) as shield, shield.session("x") as session:
            assert session.decide("browser_snapshot", arguments).allowed
            shown = page(pages.ORDER.replace(old, new) if old else pages.ORDER, "orders/1046")
            session.result(shown.replace("http://shop.test/orders/1046", url) if url else shown)
            assert session.decide("refund", {"order_id": "1046"}).answer in ("look_up", "ask")


@pytest.mark.parametrize(
    "url",
    [
        "/orders/[0-9]+$", "shop[.]test/orders", "^http://shop.test/orders", "^http://.*/orders", "^https?://shop[.]test",
        "^http://shop[.]test/?", "^http://shop[.]test(/orders)?", "^http://shop[.]test/a|/b", "(?i)^http://shop[.]test/",
        "^http://[a-z]+[.]test/", "^http://shop[.]test.*/orders", "",
    ],
)  # fmt: skip
def test_a_page_that_shows_facts_names_its_host(url: str) -> None:
    entities = pages.FILES["entities.yaml"].replace("'^http://shop[.]test/products$'", f"'{url}'")
    with pytest.raises(PackError) as error:
        made({**pages.FILES, "entities.yaml": entities})
    assert any("matches pages on any host" in each.message for each in error.value.faults)


def test_what_was_typed_into_a_field_is_no_fact() -> None:
    entities = pages.FILES["entities.yaml"].replace("$page.text('^Status: (.*)$')", "$page.field('Status')")
    with pytest.raises(PackError) as error:
        made({**pages.FILES, "entities.yaml": entities})
    assert any("is typed text" in each.message for each in error.value.faults)
