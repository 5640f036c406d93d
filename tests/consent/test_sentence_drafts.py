"""The sentences that a new pack begins with: each names every argument, and a yes to it counts."""

from typing import Any

import pytest

from bylaw import Pack, Shield
from bylaw.pack.statements import draft_sentences

ORDER = {"order_id": "string", "amount": "number"}
SLOT = {"properties": {"slot": {"type": ["string", "null"]}}, "required": []}


@pytest.mark.parametrize(
    ("tool", "given", "wanted"),
    [
        ("refundOrder", ORDER, ["refund order with order id {order_id} and amount {amount}"]),
        ("close_session", {}, ["close session"]),
        ("cancel_order", {"order_id": "string", "reason": "string"}, ["cancel order with order id {order_id}"]),
        ("move", {"to": "string", "seats": "integer?"}, ["move with to {to}", "move with to {to} and seats {seats}"]),
        ("ship", {"order_id": "string", "address": {"type": "object"}}, []),
        ("tag", {"names": {"type": "array", "items": {"type": "string"}}}, ["tag with names {names}"]),
        ("book", SLOT, ["book with slot {slot}"]),
    ],
)
def test_a_sentence_names_every_argument_that_matters(tool: str, given: dict[str, Any], wanted: list[str]) -> None:
    assert draft_sentences(tool, given, set()) == wanted


def test_two_tools_never_share_their_words() -> None:
    taken: set[str] = set()
    assert draft_sentences("cancel_order", ORDER, taken)
    assert draft_sentences("cancelOrder", ORDER, taken) == []


def test_a_yes_to_a_draft_counts() -> None:
    (sentence,) = draft_sentences("refund_order", ORDER, set())
    pack = Pack.from_files(
        {
            "pack.yaml": "format: 1\nname: shop\ndocument: policy.md\n",
            "policy.md": "Ask first.\n",
            "policies.yaml": "policies: [{id: ask, kind: rule, spans: [Ask first.]}]\n",
            "rules.yaml": (
                "predicates:\n  change: {effect: write}\n  agreed: {consented: told}\n"
                "rules: [{id: ask, formula: ALWAYS (change IMPLIES agreed)}]\n"
            ),
            "tools.yaml": (
                "tools:\n  refund_order:\n    effect: write\n    changes: []\n"
                f"    put_as: {sentence!r}\n    parameters: {{order_id: string, amount: number}}\n"
            ),
        }
    )
    session = Shield(pack).session("c")
    session.user("Refund 7.")
    session.agent("Shall I refund order with order id R7 and amount 12.50?")
    session.user("Yes")
    assert session.decide("refund_order", {"order_id": "R7", "amount": 12.5}).allowed
