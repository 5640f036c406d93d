"""A bank's agent: yeses, questions and requests that a person reads otherwise than by their words one by one."""

from collections.abc import Sequence
from typing import Any

import pytest

from bylaw import Pack, Shield

FILES = {
    "pack.yaml": "format: 1\nname: bank\ndocument: policy.md\n",
    "policy.md": "Change nothing before the customer has agreed to it.\n",
    "policies.yaml": (
        "policies:\n - {id: confirm, kind: rule, spans: [Change nothing before the customer has agreed to it.]}\n"
    ),
    "rules.yaml": (
        "predicates: {change: {effect: write}, agreed: {consented: told}}\n"
        "rules:\n  - {id: confirm, formula: ALWAYS (change IMPLIES agreed)}\n"
    ),
    "tools.yaml": """
tools:
  get_account: {effect: read, parameters: {account_id: string}}
  transfer:
    effect: write
    description: Transfer money from an account.
    parameters: {account_id: string, to: string, amount: string}
    changes: []
  pay: {effect: write, parameters: {account_id: string, payee: string, amount: string}, changes: []}
  book_visit: {effect: write, parameters: {account_id: string, starts_at: string}, changes: []}
  send_letter: {effect: write, parameters: {account_id: string, body: string}, changes: []}
""",
}
PACK = Pack.from_files(FILES)
REQUESTS = Pack.from_files(FILES | {"rules.yaml": FILES["rules.yaml"].replace("told", "requested")})
ACCOUNT = {"account_id": "AC-11", "customer_id": "C1", "status": "open", "balance": "900.00", "limit": 500}
SENT = {"account_id": "AC-11", "to": "NL-22", "amount": "50.00"}
PUT = "Shall I transfer 50.00 from AC-11 to NL-22?"


def allowed(talk: Sequence[str], tool: str = "transfer", arguments: dict[str, Any] = SENT, pack: Pack = PACK) -> bool:
    """Whether a call is let run after the account was looked up and this was said: agent, user, agent, user."""
    session = Shield(pack).session()
    session.user("How is my account AC-11?")
    session.decide("get_account", {"account_id": "AC-11"})
    session.result(ACCOUNT)
    session.agent("It is open.")
    session.user("I need something done.")
    for at, text in enumerate(talk):
        (session.user if at % 2 else session.agent)(text)
    return session.decide(tool, arguments).allowed


@pytest.mark.parametrize(
    ("back", "answer"),
    [
        ("Can we drop this?", "Sure. Shall I do that?"),
        ("Should we stop?", "Sure. Shall I go ahead?"),
        ("Could you make it 600?", "Sure. Shall I go ahead?"),
        ("Can it wait until Monday?", "It can wait until Monday. Shall I go ahead?"),
        ("Does it come with a receipt in dollars?", "It does. Shall I go ahead?"),
        ("Can it go to my sister?", "Of course. Shall I transfer 50.00 from AC-11?"),
        ("Make it my sister.", "Of course. Shall I transfer 50.00 from AC-11?"),
        ("How about my sister? How long does that take?", "A minute. Shall I go ahead?"),
    ],
)
def test_after_the_user_asks_back_only_what_is_told_anew_is_agreed_to(back: str, answer: str) -> None:
    assert not allowed([PUT, back, answer, "Yes"])
    assert allowed([PUT, back, f"It cannot be done otherwise. {PUT}", "Yes"])


def test_a_question_that_names_nothing_changes_nothing() -> None:
    assert allowed([PUT, "How long does that take?", "A minute. Shall I go ahead?", "Yes"])


@pytest.mark.parametrize(
    ("answer", "is_agreed"),
    [
        ("Yes, transfer 50.00 from AC-11", True),
        ("Yes, 50", True),
        ("Yes please, transfer 900.00 from AC-11", False),
        ("Yes, make it 500", False),
        ("Yes, the 500", False),
        ("Yes, 22", False),
        ("Yes, 11", False),
    ],
)
def test_a_yes_to_another_number_is_to_another_call(answer: str, is_agreed: bool) -> None:
    assert allowed([PUT, answer]) is is_agreed
