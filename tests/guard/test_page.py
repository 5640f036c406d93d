"""The examples of the guard language page load and mean what the page says."""

import re
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from bylaw.facts.entity import Entity, Fact, Field
from bylaw.guard import Vocabulary, evaluate, parse_guards, parse_lookups, run_lookup
from bylaw.guard.language import BUILT_INS, DATE_METHODS, DATE_PARTS, TEXT_METHODS

from .twin import Table

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "guard-language.md").read_text()
BLOCKS = re.findall(r"```python(.*?)\n(.*?)```", PAGE, re.DOTALL)

ORDER = Entity(
    "Order",
    ("order_id",),
    {
        "status": Field("status", "enum", ("open", "paid", "returned")),
        "paid_at": Field("paid_at", "datetime"),
        "total": Field("total", "money"),
        "has_receipt": Field("has_receipt", "boolean"),
        "customer_id": Field("customer_id"),
        "lines": Field("lines", "list"),
    },
)
CUSTOMER = Entity("Customer", ("customer_id",), {"level": Field("level", "enum", ("none", "silver", "gold"))})
VOCABULARY = Vocabulary(
    {"Order": ORDER, "Customer": CUSTOMER}, frozenset(("order_id", "amount", "note")), frozenset(("refund",))
)
FACTS: dict[str, Any] = {
    "status": "paid",
    "paid_at": datetime(2024, 5, 1),
    "total": Decimal("40"),
    "has_receipt": False,
    "customer_id": "C1",
    "lines": [{"kind": "book", "price": 12.5, "number": 2}],
    "exists": True,
}


def source(level: str | None = "gold", **changed: Any) -> Table:
    values = {Fact("Order", ("A",), name): value for name, value in {**FACTS, **changed}.items()}
    return Table(values | ({} if level is None else {Fact("Customer", ("C1",), "level"): level}))


def example(name: str) -> Any:
    text = next(text for _, text in BLOCKS if f"def {name}(" in text)
    guards, faults = parse_guards(text, file="guard-language.md", vocabulary=VOCABULARY)
    assert faults == []
    return guards[name]


@pytest.mark.parametrize(
    ("name", "facts", "amount", "outcome", "because"),
    [
        ("refund_window", source(), 30, "permit", ""),
        ("refund_window", source("none"), 30, "deny", "without a receipt only members get a refund"),
        ("refund_window", source(None), 30, "undetermined", ""),
        ("refund_window", source(status="returned"), 30, "deny", "the order was returned already"),
        ("refund_window", source(), 41, "deny", "at most 40 can be refunded"),
        (
            "refund_window",
            source(paid_at=datetime(2024, 3, 1)),
            30,
            "deny",
            "the order was paid on 2024-03-01, more than 30 days ago",
        ),
        ("small_gift", source(), 49.99, "permit", ""),
        ("small_gift", source("silver"), 25.01, "deny", "a gift for silver is at most 25"),
        ("small_gift", source(lines=[]), 1, "deny", "gifts start at 20.00"),
        # The order names its customer, so there is one, and every level allows 10.00.
        ("small_gift", source(None), 10, "permit", ""),
        ("small_gift", source(None), 10.01, "undetermined", ""),
        # Words that may stand for nobody name nobody.
        ("small_gift", source(None, customer_id="none"), 10, "undetermined", ""),
        ("small_gift", source(None, customer_id=""), 10, "undetermined", ""),
        ("small_gift", source(None, customer_id="0"), 10, "undetermined", ""),
        ("gift_card", source(), 1, "deny", "gift cards are for 14 days"),
        ("gift_card", source(paid_at=datetime(2024, 5, 3)), 1, "permit", ""),
        ("gift_card", source(None, paid_at=datetime(2024, 5, 3)), 1, "undetermined", ""),
        ("exchange", source(None), 1, "permit", ""),
        ("exchange", source("none", paid_at=datetime(2024, 3, 1)), 1, "deny", "for members only"),
    ],
)
def test_examples_of_the_page(name: str, facts: Table, amount: Any, outcome: str, because: str) -> None:
    arguments = {"order_id": "A", "amount": amount, "note": "for you"}
    (completion,) = evaluate(example(name), arguments, facts, now=datetime(2024, 5, 15, 12))
    assert (completion.outcome, completion.because) == (outcome, because)


def test_the_look_up_example_of_the_page() -> None:
    text = next(text for kind, text in BLOCKS if "lookup" in kind)
    lookups, faults = parse_lookups(text, file="guard-language.md", vocabulary=VOCABULARY)
    assert faults == []

    class Log:
        def results(self, tool: str, match: Any) -> Any:
            return [{"arguments": {}, "value": [{"id": "A", "total": 4.5}], "step": 2}]

    assert run_lookup(lookups["find_Order_total"], ("A",), Log()) == Decimal("4.5")


def test_the_page_names_everything_there_is() -> None:
    for name in (*BUILT_INS, *TEXT_METHODS, *DATE_METHODS, *DATE_PARTS):
        assert re.search(rf"\b{name}\b", PAGE), name


@pytest.mark.parametrize(
    "condition",
    [
        "order.total > order.paid and order.paid > order.limit and order.limit > order.total",
        "order.total * 2 > 10 and order.total < 1",
        "abs(order.balance) < 0",
        "order.total + order.fee > 10 and order.total < 1 and order.fee < 1",
        "len(order.lines) == 0 and any(line.price > 5 for line in order.lines)",
    ],
)
def test_impossible_conditions_over_several_facts_stay_undetermined(condition: str) -> None:
    """None of them can hold; the page says that only comparisons of one fact with constants are exact."""
    numbers = {name: Field(name, "money") for name in ("total", "paid", "limit", "balance", "fee")}
    entity = Entity("Order", ("order_id",), {**numbers, "lines": Field("lines", "list")})
    vocabulary = Vocabulary({"Order": entity}, frozenset(("order_id",)))
    answer = f"return deny('no') if {condition} else permit()"
    text = f"def g(call, facts):\n    order = facts.Order(call.order_id)\n    {answer}\n"
    guards, faults = parse_guards(text, file="g.py", vocabulary=vocabulary)
    assert faults == []
    (found,) = evaluate(guards["g"], {"order_id": "A"}, Table({Fact("Order", ("A",), "exists"): True}))
    assert found.outcome == "undetermined"
