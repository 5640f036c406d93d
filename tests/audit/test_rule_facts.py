"""A predicate over facts sees what had been seen before its act: nothing of its own turn, and nothing of later."""

import json
from typing import Any

import pytest

from .logs import Shop, call, look, record, says, ship, user

POLICY = """\
  - id: {id}
    kind: rule
    tools: [ship]
    definition: Nothing is shipped to somebody else.
    spans: [{{quote: "Nothing is shipped to somebody else."}}]
"""
RULES = """\
predicates:
  unpaid: {code: 'act.tool == "ship" and not facts.Order(act.arguments["order_id"]).paid'}
  denied: {guard: only-paid}
  spoke_of_a_gift: {code: 'act.tool == None and facts.Order("OPEN").gift'}
rules:
  - {id: by-code, formula: ALWAYS NOT unpaid}
  - {id: by-guard, formula: ALWAYS NOT denied}
  - {id: by-message, formula: ALWAYS NOT spoke_of_a_gift}
"""


@pytest.fixture
def ruled(shop: Shop) -> Shop:
    policies = shop.pack / "policies.yaml"
    names = ("by-code", "by-guard", "by-message")
    policies.write_text(policies.read_text() + "".join(POLICY.format(id=id) for id in names))
    (shop.pack / "rules.yaml").write_text(RULES)
    return shop


def beside(*parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Calls of several turns as calls of one, with their results after it."""
    asked = [message for part in parts for message in part if message["role"] == "assistant"]
    calls = [each | {"id": f"c{n}"} for n, message in enumerate(asked) for each in message["tool_calls"]]
    results = [message for part in parts for message in part if message["role"] == "tool"]
    numbered = [message | {"tool_call_id": f"c{n}"} for n, message in enumerate(results)]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *numbered]


SHIPPED = {"by-code", "by-guard"}


@pytest.mark.parametrize(
    ("parts", "broken"),
    [
        ((look("OPEN", paid=False), ship("OPEN")), SHIPPED),
        ((look("OPEN", paid=True), ship("OPEN")), set()),
        ((ship("OPEN"), look("OPEN", paid=False)), set()),
        ((beside(ship("OPEN"), look("OPEN", paid=False)),), set()),
        ((beside(look("OPEN", paid=False), ship("OPEN")),), set()),
        ((look("OPEN", paid=True), ship("OPEN"), look("OPEN", paid=False)), set()),
        ((look("OPEN", paid=False), ship("OPEN"), look("OPEN", paid=True)), SHIPPED),
        ((look("OPEN", paid=False), look("OPEN", paid=True), ship("OPEN")), set()),
        ((call("get_order", {"order_id": "PAID"}, {"paid": False}), ship("OPEN")), set()),
        ((look("OPEN", gift=True), says("It is a gift.")), {"by-message"}),
        ((says("It is a gift."), look("OPEN", gift=True)), set()),
        ((look("OPEN", gift=False), says("It is none."), look("OPEN", gift=True)), set()),
        ((look("OPEN", gift=True), says("It is one."), look("OPEN", gift=False)), {"by-message"}),
    ],
)
def test_a_rule_knows_no_more_than_the_agent_did(
    parts: tuple[list[dict[str, Any]], ...], broken: set[str], ruled: Shop
) -> None:
    report = ruled.audit(ruled.logs(record(user("Please ship OPEN."), *parts)))
    found = [json.loads(line)["rule"] for line in (report.out / "findings.jsonl").read_text().splitlines()]
    assert sorted(found) == sorted(broken)
