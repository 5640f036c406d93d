"""A small shop, and a model whose answers are written down: what is done with answers is tested, not their quality."""

import json
import re
from collections.abc import Callable, Sequence
from functools import cache

from bylaw.compile.assemble import assemble
from bylaw.compile.card import Card
from bylaw.compile.pipeline import Source, Work, compile_pack
from bylaw.llm import Answer, Request
from bylaw.policy.document import Document

POLICY = """# Shop

## Refunds

A refund is made within 30 days after delivery.
Gold customers are refunded up to $500.00 at once, everybody else up to $200.00.
"Today" is the day of the call.
We are glad that you are here.

## Manner

Before any refund, tell the customer what you will do and wait for a yes.
"""

CARDS = {
    card.name: card
    for card in (
        Card("get_order", "Read an order.", {"order_id": {"type": "string"}}, ("order_id",), "read"),
        Card("get_customer", "Read a customer.", {"customer_id": {"type": "string"}}, ("customer_id",), "read"),
        Card(
            "refund",
            "Pay money back for an order.",
            {name: {"type": "string"} for name in ("order_id", "customer_id", "amount")},
            ("order_id", "customer_id", "amount"),
        ),
    )
}

THINGS = """
entities:
  Order: {key: order_id, read: get_order, fields: {customer_id: string, delivered_on: date, refunded: money}}
  Customer: {key: customer_id, read: get_customer, fields: {level: [none, gold]}}
observations:
  get_order: {as: Order, absent: no order}
  get_customer: {as: Customer}
tools:
  get_order: {effect: read}
  get_customer: {effect: read}
  refund: {effect: write, changes: [Order.refunded]}
"""

EXTRACTED = {
    "policies": [
        {
            "id": "refund-window",
            "definition": "A refund is made at most 30 days after delivery.",
            "scope": "refunds",
            "description": "",
            "quotes": ["A refund is made within 30 days after delivery."],
        },
        {
            "id": "refund-limit",
            "definition": "Gold customers get up to 500.00 at once, others up to 200.00.",
            "scope": "refunds",
            "description": "",
            "quotes": ["Gold customers are refunded up to $500.00 at once, everybody else up to $200.00."],
        },
        {
            "id": "confirm-refunds",
            "definition": "A refund is told and agreed to before it is made.",
            "scope": "refunds",
            "description": "",
            "quotes": ["Before any refund, tell the customer what you will do and wait for a yes."],
        },
    ]
}

COVERED = {
    "policies": [
        {
            "id": "today",
            "definition": "Today is the day of the call.",
            "scope": "all",
            "description": "",
            "quotes": ['"Today" is the day of the call.'],
        }
    ],
    "others": [{"number": 2, "why": "a greeting"}],
}

KINDS = {"refund-window": "guard", "refund-limit": "guard", "confirm-refunds": "rule", "today": "knowledge"}

CASES = """
- {note: on the last day, policy: refund-window, call: {refund: {order_id: A1, customer_id: C1, amount: "20.00"}},
   facts: {"Order[A1]": {delivered_on: 2025-01-16}}, now: 2025-02-15T09:00:00, want: permit}
- {note: a day late, policy: refund-window, call: {refund: {order_id: A1, customer_id: C1, amount: "20.00"}},
   facts: {"Order[A1]": {delivered_on: 2025-01-16}}, now: 2025-02-16T09:00:00, want: deny}
- {note: up to the limit, policy: refund-limit, call: {refund: {order_id: A1, customer_id: C1, amount: "200.00"}},
   facts: {"Customer[C1]": {level: none}}, want: permit}
- {note: a cent over, policy: refund-limit, call: {refund: {order_id: A1, customer_id: C1, amount: "200.01"}},
   facts: {"Customer[C1]": {level: none}}, want: deny}
- {note: gold, policy: refund-limit, call: {refund: {order_id: A1, customer_id: C1, amount: "500.00"}},
   facts: {"Customer[C1]": {level: gold}}, want: permit}
- {note: gold and a cent over, policy: refund-limit, call: {refund: {order_id: A1, customer_id: C1, amount: "500.01"}},
   facts: {"Customer[C1]": {level: gold}}, want: deny}
"""

WINDOW = """
def refund_window(call, facts):
    if date(now()) - facts.Order(call.order_id).delivered_on > days(30):
        return deny("more than 30 days ago")
    return permit()
"""

LIMIT = """
def refund_limit(call, facts):
    amount = money(call.amount)
    if amount <= money("200.00"):
        return permit()
    if amount > money("500.00") or facts.Customer(call.customer_id).level != "gold":
        return deny("more than may be refunded at once")
    return permit()
"""

RULES = """
predicates:
  refunds: {tool: refund}
  agreed: {consented: told}
rules:
  - {id: confirm-refunds, formula: ALWAYS (refunds IMPLIES agreed)}
"""

CARD = (
    "Please confirm: refund - order id: A1 - customer id: C1 - amount: 20.00 Shall I do this? Please answer yes or no."
)
"""As an agent shows it before a refund."""

RULE_CASES = f"""
- note: told and agreed
  rule: confirm-refunds
  events:
    - user: Please refund 20.00 for order A1, I am C1.
    - agent: "{CARD}"
    - user: Yes, please.
    - {{call: refund, args: {{order_id: A1, customer_id: C1, amount: "20.00"}}, result: {{ok: true}}}}
  want: kept
- note: not asked
  rule: confirm-refunds
  events:
    - user: Hello.
    - {{call: refund, args: {{order_id: A1, customer_id: C1, amount: "20.00"}}, result: {{ok: true}}}}
  want: broken
"""


@cache
def compiled() -> tuple[Work, dict[str, str]]:
    """What right answers make of the shop, and the files of its pack."""
    work, _ = compile_pack(source(), Scripted())
    return work, assemble(source(), work, name="shop")


def source() -> Source:
    """What the shop's pack is made of."""
    return Source(Document(POLICY), "Shop", CARDS)


def tools_file() -> str:
    """The shop's catalogue, as a file has it."""
    tools = [
        {"name": card.name, "description": card.description, "effect": card.effect}
        | {"parameters": {"type": "object", "properties": card.parameters, "required": list(card.required)}}
        for card in CARDS.values()
    ]
    return json.dumps(tools)


def sorted_answer(request: Request) -> str:
    """Kinds for the policies that a request asks about."""
    asked = re.findall(r"^([a-z][a-z0-9-]*)$", request.messages[1].content, re.MULTILINE)
    return json.dumps(
        {
            "policies": [
                {
                    "id": name,
                    "kind": KINDS[name],
                    "tools": ["refund"] if KINDS[name] == "guard" else [],
                    "severity": "medium",
                    "general": KINDS[name] == "knowledge",
                    "user_facts": [],
                    "why": "as the shop has it",
                }
                for name in asked
            ]
        }
    )


def unsettled(request: Request) -> str:
    """Rulings of a referee to whom the sentences leave everything open."""
    numbers = re.findall(r"^number: (\d+)$", request.messages[1].content, re.MULTILINE)
    return json.dumps({"rulings": [{"number": int(each), "want": "unclear", "why": "not said"} for each in numbers]})


class Scripted:
    """Answers by the prompt's name; a list is used up answer by answer."""

    def __init__(self, **answers: str | list[str] | Callable[[Request], str]) -> None:
        usual: dict[str, str | list[str] | Callable[[Request], str]] = {
            "things": THINGS,
            "extract": json.dumps(EXTRACTED),
            "cover": json.dumps(COVERED),
            "sort": sorted_answer,
            "cases": CASES,
            "guards": WINDOW + LIMIT,
            "rules": RULES,
            "rule_cases": RULE_CASES,
            "referee": unsettled,
        }
        self._answers = {**usual, **answers}
        self.rounds: list[list[Request]] = []

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """The answers, in order."""
        self.rounds.append(list(requests))
        return [Answer(self._one(request)) for request in requests]

    def asked(self, name: str) -> list[Request]:
        """Every request of that prompt."""
        return [request for requests in self.rounds for request in requests if request.name == name]

    def _one(self, request: Request) -> str:
        found = self._answers[request.name]
        if isinstance(found, list):
            return found.pop(0)
        return found if isinstance(found, str) else found(request)
