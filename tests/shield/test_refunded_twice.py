"""A refund must not be made twice, whatever the order in which tools answer: live and audited alike."""

from collections.abc import Callable
from typing import Any

import pytest

from bylaw import Pack, Shield, verdicts
from bylaw.shield import LiveSession

PACK = Pack.from_files(
    {
        "pack.yaml": "format: 1\nname: till\ndocument: policy.md\n",
        "policy.md": "Never refund more than was paid.\n",
        "tools.yaml": """\
tools:
  get_invoice: {effect: read, parameters: {invoice_id: string}}
  list_invoices: {effect: read, parameters: {account_id: string}}
  refund:
    effect: write
    parameters: {invoice_id: string, amount: string}
    effects: [{as: Invoice, key: $args.invoice_id, set: {refunded: {plus: $args.amount}}}]
""",
        "entities.yaml": """\
entities:
  Invoice: {key: invoice_id, read: get_invoice, fields: {paid: money, refunded: {type: money, default: 0}}}
observations:
  list_invoices: {each: "$.invoices[*]", as: Invoice, key: $.id}
""",
        "guards/refunds.py": """\
def not_more(call: refund, facts):
    '''Never refund more than was paid.'''
    invoice = facts.Invoice(call.invoice_id)
    return permit() if money(call.amount) <= invoice.paid - invoice.refunded else deny("more than is left")
""",
    }
)
INVOICE: dict[str, Any] = {"invoice_id": "I1", "paid": "80.00", "refunded": "0.00"}
READ = ("get_invoice", {"invoice_id": "I1"}, "read")
REFUND = ("refund", {"invoice_id": "I1", "amount": "80.00"}, "refund")


def looked_up() -> LiveSession:
    session = Shield(PACK).session("one")
    session.decide(*READ[:2])
    session.result(INVOICE)
    return session


def decided(session: LiveSession) -> str:
    """What is said of a refund; that the audit's evidence is the same is made sure of."""
    decision = session.decide("refund", REFUND[1], id="again")
    session.result("done" if decision.allowed else decision.feedback, id="again")
    last = verdicts(PACK, session.trajectory()).calls[-1].policies[0]
    assert {"allow": "permit", "deny": "deny"}.get(decision.answer, "undetermined") == last.evidence
    return decision.answer


def side_by_side(session: LiveSession) -> None:
    session.decide_turn("", [REFUND, READ])
    session.result(INVOICE, id="read")
    session.result("done", id="refund")


def in_call_order(session: LiveSession) -> None:
    session.decide_turn("", [REFUND, READ])
    session.result("done", id="refund")
    session.result(INVOICE, id="read")


def slow(session: LiveSession) -> None:
    never_answered(session)
    session.result("done", id="refund")


def never_answered(session: LiveSession) -> None:
    session.decide("refund", REFUND[1], id="refund")
    session.user("Is it done?")
    session.decide("get_invoice", READ[1], id="read")
    session.result(INVOICE, id="read")


def one_after_the_other(session: LiveSession) -> None:
    session.decide("refund", REFUND[1], id="refund")
    session.result("done", id="refund")
    session.decide("get_invoice", READ[1], id="read")
    session.result(INVOICE, id="read")


@pytest.mark.parametrize(
    ("happening", "answer"),
    [
        (side_by_side, "look_up"),
        (in_call_order, "look_up"),
        (slow, "look_up"),
        (never_answered, "allow"),
        (one_after_the_other, "allow"),
    ],
)
def test_a_look_up_beside_a_refund_does_not_tell_what_is_left(
    happening: Callable[[LiveSession], None], answer: str
) -> None:
    session = looked_up()
    happening(session)
    assert decided(session) == answer


@pytest.mark.parametrize(
    ("tool", "arguments", "result", "answer"),
    [
        ("list_invoices", {"account_id": "A1"}, {"invoices": [{"id": "I1", "paid": "80.00"}]}, "deny"),
        # The agent may have read there what the shield cannot.
        ("get_invoice", READ[1], {}, "look_up"),
        ("get_invoice", READ[1], {"message": "try again later"}, "look_up"),
        ("get_invoice", READ[1], {"statusCode": 503, "body": None}, "look_up"),
    ],
)
def test_a_result_that_leaves_a_field_out_shows_no_default_of_it(
    tool: str, arguments: dict[str, Any], result: Any, answer: str
) -> None:
    session = Shield(PACK).session("one")
    session.decide("get_invoice", READ[1])
    session.result({**INVOICE, "refunded": "80.00"})
    session.decide(tool, arguments)
    session.result(result)
    assert decided(session) == answer


REFUNDED = {**INVOICE, "refunded": "80.00"}


@pytest.mark.parametrize(("one", "other"), [(INVOICE, REFUNDED), (REFUNDED, INVOICE)])
@pytest.mark.parametrize("is_one_result", [True, False])
def test_what_is_shown_in_two_ways_at_once_decides_nothing(
    one: dict[str, Any], other: dict[str, Any], is_one_result: bool
) -> None:
    session = Shield(PACK).session("one")
    if is_one_result:
        session.decide("list_invoices", {"account_id": "A1"})
        session.result({"invoices": [{**one, "id": "I1"}, {**other, "id": "I1"}]})
    else:
        session.decide_turn("", [READ, ("list_invoices", {"account_id": "A1"}, "list")])
        session.result(one, id="read")
        session.result({"invoices": [{**other, "id": "I1"}]}, id="list")
    assert decided(session) == "look_up", "one more look-up by itself tells"
    verdict = verdicts(PACK, session.trajectory()).calls[-1]
    assert verdict.determined == verdict.strict == "inconclusive"
    assert verdict.policies[0].because == "looked up, but the answers contradict one another: Invoice[I1].refunded"
    session.decide("get_invoice", READ[1])
    session.result(REFUNDED)
    assert session.decide("refund", REFUND[1]).answer == "deny"


def test_what_was_shown_and_then_is_not_there_decides_nothing() -> None:
    session = looked_up()
    session.decide("get_invoice", READ[1])
    session.result("Error: no such invoice")
    assert decided(session) == "ask"
    assert verdicts(PACK, session.trajectory()).calls[-1].determined == "inconclusive"


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        ({"invoice_id": "I1", "refunded": "0.00"}, "no result of `get_invoice` has `paid`: Invoice[I1].paid"),
        ({**INVOICE, "paid": None}, "looked up, but the answer was `null`: Invoice[I1].paid"),
        ("I1 was paid", "looked up, but the answer could not be read: Invoice[I1].paid, Invoice[I1].refunded"),
    ],
)
def test_what_a_look_up_did_not_show_is_told_as_it_is(shown: Any, told: str) -> None:
    session = Shield(PACK).session("one")
    session.decide(*READ[:2])
    session.result(shown)
    decision = session.decide("refund", REFUND[1])
    assert not decision.allowed
    assert "you have not seen Invoice[I1].paid" in decision.feedback
    assert verdicts(PACK, session.trajectory()).calls[-1].policies[0].because == told
