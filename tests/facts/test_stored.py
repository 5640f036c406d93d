"""Databases whose shape differs from the entities, read by a mapping: the same answers as from a world of our shape."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from bylaw.errors import PackError, WorldError
from bylaw.facts.database import open_snapshot
from bylaw.facts.entity import ABSENT, UNSEEN
from bylaw.pack import Pack, load_pack
from tests.policy.shop import FILES, faults, load, write_pack

DATA: dict[str, Any] = {
    "orders": {
        "O1": {"payment": {"done": True}, "by": "C1", "lines": [{"sku": "a", "n": 2}]},
        "O2": {"payment": {"done": False}, "by": "C2", "lines": []},
    },
    "products": {"p1": {"name": "lamp", "variants": {"a": {"price": "3.50"}, "b": {"price": "4"}}}},
}
ENTITIES = FILES["entities.yaml"].replace(
    "observations:",
    """\
  Variant:
    key: sku
    fields: {price: money, product: string, label: string}
  Other:
    key: other_id
    fields: {x: string}
observations:""",
)
JSON = """\
world:
  Order: {each: $.orders.*, key: $key, fields: {paid: $.payment.done, owner: $.by}}
  Variant: {of: $.products.*, each: $.variants.*, key: $key, fields: {label: $of.name}}
"""
TABLES = """\
world:
  Order: {table: purchases, key: $.id, fields: {paid: $.payment.done, owner: $.by}}
  Variant: {table: products, each: "$[*]", key: $.sku, fields: {label: $.name}}
"""


def pack(tmp_path: Path, world: str) -> Any:
    return load(tmp_path / "pack", {"entities.yaml": ENTITIES + world})


def database(tmp_path: Path) -> Path:
    path = tmp_path / "db.sqlite"
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE purchases (id TEXT, payment TEXT, by TEXT)")
    base.execute("CREATE TABLE products (sku TEXT, name TEXT, price TEXT)")
    for name, order in DATA["orders"].items():
        base.execute("INSERT INTO purchases VALUES (?, ?, ?)", (name, json.dumps(order["payment"]), order["by"]))
    base.executemany("INSERT INTO products VALUES (?, ?, ?)", [("a", "lamp", "3.50"), ("b", "lamp", "4")])
    base.commit()
    base.close()
    return path


def document(tmp_path: Path, data: Any = DATA) -> Path:
    path = tmp_path / "db.json"
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize("kind", ["json", "sqlite"])
def test_things_are_found_where_the_pack_says(tmp_path: Path, kind: str) -> None:
    file = document(tmp_path) if kind == "json" else database(tmp_path)
    world = open_snapshot(file, pack(tmp_path, JSON if kind == "json" else TABLES).schema)
    assert world.record("Order", ("O1",)) == {"order_id": "O1", "paid": True, "owner": "C1"}
    assert world.record("Order", ("O3",)) is ABSENT
    assert world.record("Variant", ("a",)) == {"sku": "a", "price": "3.50", "label": "lamp"}
    assert world.members("Order", {"owner": "C2"}) == [("O2",)]
    assert world.record("Other", ("x",)) is UNSEEN


LISTED = ENTITIES.replace(
    "  Other:\n", "  Customer:\n    key: customer_id\n    fields: {orders: list, name: string}\n  Other:\n"
)
CUSTOMERS = {
    **DATA,
    "people": {"C1": {"name": "Ann"}, "C2": {"name": "Ben"}, "C3": {"name": "Cleo"}},
    "sales": [{"no": 1, "by": "C1"}, {"no": 2, "by": "C2"}, {"no": 3, "by": "C1"}, {"no": 4, "by": None}],
}
PEOPLE = "{each: $.people.*, key: $key}"
SALES = '{each: "$.sales[*]", key: $.by, list: orders}'


@pytest.mark.parametrize("places", [f"[{PEOPLE}, {SALES}]", f"[{SALES}, {PEOPLE}]"])
def test_items_that_name_a_thing_are_a_list_of_it(tmp_path: Path, places: str) -> None:
    made = load(tmp_path / "pack", {"entities.yaml": f"{LISTED}world:\n  Customer: {places}\n"})
    world = open_snapshot(document(tmp_path, CUSTOMERS), made.schema)
    orders = [{"no": 1, "by": "C1"}, {"no": 3, "by": "C1"}]
    assert world.record("Customer", ("C1",)) == {"customer_id": "C1", "name": "Ann", "orders": orders}
    assert world.record("Customer", ("C3",)) == {"customer_id": "C3", "name": "Cleo", "orders": []}
    assert world.record("Customer", ("C9",)) is ABSENT


def test_rows_that_name_a_thing_are_a_list_of_it(tmp_path: Path) -> None:
    file = database(tmp_path)
    base = sqlite3.connect(file)
    base.execute("CREATE TABLE people (customer_id TEXT, name TEXT)")
    base.executemany("INSERT INTO people VALUES (?, ?)", [("C1", "Ann"), ("C3", "Cleo")])
    base.commit()
    base.close()
    places = "[{table: people}, {table: purchases, key: $.by, list: orders, when: {path: $.payment.done, is: true}}]"
    made = load(tmp_path / "pack", {"entities.yaml": f"{LISTED}world:\n  Customer: {places}\n"})
    world = open_snapshot(file, made.schema)
    one, other = world.record("Customer", ("C1",)), world.record("Customer", ("C3",))
    assert isinstance(one, dict)
    assert [row["id"] for row in one["orders"]] == ["O1"]
    assert other == {"customer_id": "C3", "name": "Cleo", "orders": []}


@pytest.mark.parametrize(
    ("places", "said"),
    [
        (SALES, "BY404 entities.yaml:26: the location of `Customer` records is missing"),
        (
            f"[{PEOPLE}, {SALES.replace('orders', 'name')}]",
            "BY404 entities.yaml:26: `name` is not a list of `Customer`",
        ),
        (f"[{PEOPLE}, {SALES.replace('orders', 'sales')}]", "BY404 entities.yaml:26: `sales` is not a list of"),
        (f"[{PEOPLE}, {SALES.replace('list:', 'fields: {name: $.no}, list:')}]", "BY404 entities.yaml:26: list items"),
    ],
)
def test_a_list_that_cannot_be_meant_is_a_fault(tmp_path: Path, places: str, said: str) -> None:
    found = faults(tmp_path, {"entities.yaml": f"{LISTED}world:\n  Customer: {places}\n"})
    assert [fault for fault in found if fault.startswith(said)], found


def test_two_items_of_one_key_that_differ_are_told(tmp_path: Path) -> None:
    when = "when: {path: $.no, in: [1, 2, 3]}"
    place = f'{{each: "$.sales[*]", key: $.by, fields: {{name: $.no}}, {when}}}'
    made = load(tmp_path / "pack", {"entities.yaml": f"{LISTED}world:\n  Customer: {place}\n"})
    with pytest.raises(WorldError, match="two items of `Customer` have the key `C1` but differ; give each its own key"):
        open_snapshot(document(tmp_path, CUSTOMERS), made.schema)


def test_faults_of_a_mapping_and_of_a_database_have_their_place(tmp_path: Path) -> None:
    schema = pack(tmp_path, JSON).schema
    with pytest.raises(WorldError, match=r"`\$.orders`, the location of `Order`, does not exist"):
        open_snapshot(document(tmp_path, {"products": {}}), schema)
    assert open_snapshot(document(tmp_path, {"orders": {}, "products": {}}), schema).record("Order", ("O1",)) is ABSENT
    with pytest.raises(WorldError, match="a JSON file has no tables, so `purchases` cannot be read"):
        open_snapshot(document(tmp_path), pack(tmp_path / "t", TABLES).schema)
    tables = pack(tmp_path / "u", TABLES.replace("purchases", "buys")).schema
    with pytest.raises(WorldError, match="there is no table `buys`; the database has `products`, `purchases`"):
        open_snapshot(database(tmp_path), tables)
    for wrong in ("Ordr: {each: $.x.*}", "Order: {each: orders}", "Order: {of: $.x.*}", "Order: {fields: {payd: $.x}}"):
        with pytest.raises(PackError) as caught:
            load_pack(write_pack(tmp_path / "bad", {"entities.yaml": ENTITIES + f"world:\n  {wrong}\n"}))
        assert "entities.yaml:2" in str(caught.value.faults[0]), wrong


def test_what_holds_an_item_is_named_only_in_a_database(tmp_path: Path) -> None:
    wrong = FILES["entities.yaml"].replace("owner: $args.owner", "owner: $of.owner")
    with pytest.raises(PackError, match="is allowed only under `world:`"):
        load_pack(write_pack(tmp_path, {"entities.yaml": wrong}))


PLAIN: dict[str, Any] = {"orders": {"O1": {"paid": True}, "O2": {"order_id": "other", "paid": False}}}


@pytest.mark.parametrize(
    ("data", "paid"),
    [
        (PLAIN, {"O1": True, "other": False, "O2": ABSENT}),
        ({"order": [{"order_id": "O1", "paid": True}]}, {"O1": True, "O2": ABSENT}),
        ({"Order": [], "orders": PLAIN["orders"]}, {"O1": ABSENT}),
        ({"others": {"x": {}}, "orders": [{"paid": True}]}, {"O1": UNSEEN}),
        ({"others": {"x": {}}, "orders": {"O1": 3}}, {"O1": UNSEEN}),
    ],
)
def test_records_under_a_name_like_the_entitys_need_no_mapping(
    data: dict[str, Any], paid: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "db.json").write_text(json.dumps(data))
    schema = pack(tmp_path, "").schema
    world = open_snapshot(tmp_path / "db.json", schema)
    found = {key: world.record("Order", (key,)) for key in paid}
    assert {key: each["paid"] if isinstance(each, dict) else each for key, each in found.items()} == paid


def test_what_is_mapped_is_read_by_its_mapping_alone(tmp_path: Path) -> None:
    (tmp_path / "db.json").write_text(json.dumps({**DATA, "others": {"x1": {"x": "y"}}}))
    world = open_snapshot(tmp_path / "db.json", pack(tmp_path, JSON).schema)
    assert world.record("Order", ("O1",)) == {"order_id": "O1", "paid": True, "owner": "C1"}
    assert world.record("Other", ("x1",)) == {"other_id": "x1", "x": "y"}


@pytest.mark.parametrize(
    ("entity", "name"),
    [
        ("Class", "classes"),
        ("GymVisit", "gym_visits"),
        ("Stay", "stays"),
        ("Story", "stories"),
        ("GymVisit", "GymVisits"),
        ("GymVisit", "GYM_VISITS"),
        ("Stay", "STAY"),
        ("Stay", "Stays"),
    ],
)
def test_any_plural_of_the_entitys_name_is_its_own(entity: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "db.json").write_text(json.dumps({name: {"K1": {"x": "y"}}}))
    schema = load(tmp_path / "pack", {"entities.yaml": ENTITIES.replace("Other:", f"{entity}:")}).schema
    assert open_snapshot(tmp_path / "db.json", schema).record(entity, ("K1",)) == {"other_id": "K1", "x": "y"}


SHOP = """\
entities:
  Customer:
    key: user_id
    read: get_user
    fields: {city: string, cards: object, orders: list}
  Card: {key: card_id, fields: {user_id: string, balance: money}}
  Order: {key: order_id, read: get_order, fields: {paid: boolean, user_id: string}}
  Caller: {key: [], origin: conversation, fields: {user_id: string}}
observations:
  get_user:
    - {as: Customer, fields: {city: $.address.city}}
    - {each: $.cards.*, as: Card, key: $.id, fields: {user_id: $args.user_id}}
    - {each: "$.orders[*]", as: Order, key: $, fields: {user_id: $result.user_id}, only: true}
    - {as: Caller}
  get_order: {as: Order}
"""
SHOP_TOOLS = """\
tools:
  get_user: {effect: read, parameters: {type: object, properties: {user_id: {type: string}}}}
  get_order: {effect: read, parameters: {type: object, properties: {order_id: {type: string}}}}
"""
BY_HAND = """\
world:
  Customer: {each: $.users.*, key: $key, fields: {city: $.address.city}}
  Card: {of: $.users.*, each: $.cards.*, key: $key, fields: {user_id: $of.user_id}}
"""
USERS: dict[str, Any] = {
    "U1": {
        "user_id": "U1",
        "address": {"city": "Bergen"},
        "cards": {"K1": {"id": "K1", "balance": "3.00"}, "K2": {"id": "K2"}},
        "orders": ["O1"],
    },
    "U2": {"user_id": "U2", "address": {"city": "Oslo"}, "cards": {}, "orders": []},
}


def shop(world: str = "") -> Any:
    manifest = "format: 1\nname: shop\ndocument: policy.md\n"
    files = {
        "pack.yaml": manifest,
        "policy.md": "# Shop\n\nNothing yet.\n",
        "tools.yaml": SHOP_TOOLS,
        "entities.yaml": SHOP + world,
    }
    return Pack.from_files(files).schema


def test_a_record_is_what_its_tool_returns_and_shows_what_stands_inside(tmp_path: Path) -> None:
    """The same world as the one that a mapping by hand describes."""
    order = {"order_id": "O1", "paid": True, "user_id": "U2"}
    file = document(tmp_path, {"users": USERS, "orders": {"O1": order}})
    found, twin = open_snapshot(file, shop()), open_snapshot(file, shop(BY_HAND))
    for key in ("U1", "U2", "U3"):
        ours: Any = found.record("Customer", (key,))
        theirs: Any = twin.record("Customer", (key,))
        assert ours == theirs if key == "U3" else theirs.items() <= ours.items()
    for key in ("K1", "K2", "K3"):
        assert found.record("Card", (key,)) == twin.record("Card", (key,))
    assert found.record("Card", ("K1",)) == {"card_id": "K1", "user_id": "U1", "balance": "3.00"}
    assert found.record("Order", ("O1",)) == order, "its own table has the say"
    assert found.record("Caller", ()) is UNSEEN, "only a conversation makes it"
    assert list(found.members("Card", {"user_id": "U1"}) or ()) == [("K1",), ("K2",)]


def test_what_records_only_mention_may_be_more_than_they_tell(tmp_path: Path) -> None:
    found = open_snapshot(document(tmp_path, {"users": USERS}), shop())
    assert found.record("Order", ("O1",)) == {"order_id": "O1", "user_id": "U1"}
    assert found.record("Order", ("O9",)) is UNSEEN
    assert found.members("Order", {}) is None


def test_a_table_of_another_name_is_known_by_the_key_that_names_its_records(tmp_path: Path) -> None:
    def known(**tables: Any) -> Any:
        return open_snapshot(document(tmp_path, {**tables, "orders": {"O1": {}}}), shop()).record("Customer", ("U9",))

    assert known(people=USERS, more={}) is ABSENT
    assert known(people=USERS, users=USERS) is UNSEEN, "either may be meant"
    assert known(people={"U1": {"user_id": "other"}}) is UNSEEN
