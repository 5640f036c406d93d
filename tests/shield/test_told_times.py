"""What is told as messages has the time at which it came, as what is told word by word has, unless it bears its own."""

from typing import Any

import pytest

from bylaw import Pack, Shield
from bylaw.shield import LiveSession

BANK = {
    "pack.yaml": "format: 1\nname: bank\ndocument: policy.md\n",
    "policy.md": "Money is moved only after the customer has confirmed it.\nPay only from an open account.\n",
    "tools.yaml": """\
tools:
  get_account: {effect: read, parameters: {account_id: string}}
  transfer:
    effect: write
    put_as: transfer {amount} to {to}
    parameters: {to: string, amount: string}
    changes: []
""",
    "entities.yaml": """\
entities:
  Account: {key: account_id, read: get_account, fresh_for: 600, fields: {open: boolean}}
""",
    "policies.yaml": """\
policies:
  - {id: confirm, kind: rule, spans: [Money is moved only after the customer has confirmed it.]}
""",
    "rules.yaml": """\
predicates:
  change: {effect: write}
  agreed: {consented: told, lifetime: 600}
rules:
  - {id: confirm, formula: ALWAYS (change IMPLIES agreed)}
""",
}
GUARD = """\
def enough(call: transfer, facts):
    '''Pay only from an open account.'''
    return permit() if facts.Account(call.to).open else deny("closed")
"""
START = 1_800_000_000.0
SAID = [("user", "Send 250 to AC-22."), ("assistant", "Shall I transfer 250.00 to AC-22?"), ("user", "Yes.")]
LOOK = {"name": "get_account", "arguments": '{"account_id": "AC-22"}'}
SHOWN: list[dict[str, Any]] = [
    {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": LOOK}]},
    {"role": "tool", "tool_call_id": "a", "content": '{"account_id": "AC-22", "open": true}'},
]


def allowed(messages: list[dict[str, Any]], later: float, *, at_once: bool, guard: bool = False) -> bool:
    """Whether a transfer is allowed some time after messages were told."""
    now = [START]
    files = {**BANK, "guards/g.py": GUARD} if guard else BANK
    session: LiveSession = Shield(Pack.from_files(files), clock=lambda: now[0]).session("c")
    for part in [messages] if at_once else [[each] for each in messages]:
        session.messages(part)
    now[0] += later
    return session.decide("transfer", {"to": "AC-22", "amount": "250.00"}, id="t").allowed


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    ("own", "later", "is_allowed"),
    [
        (None, 60.0, True),
        (None, 601.0, False),
        (START - 601, 60.0, False),
        (START - 60, 60.0, True),
    ],
)
def test_a_yes_runs_out(own: float | None, later: float, is_allowed: bool, at_once: bool) -> None:
    told = [{"role": role, "content": text, **({} if own is None else {"time": own})} for role, text in SAID]
    assert allowed(told, later, at_once=at_once) is is_allowed


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(("later", "is_allowed"), [(60.0, True), (599.0, True), (601.0, False)])
def test_a_fact_is_fresh_for_its_time(later: float, is_allowed: bool, at_once: bool) -> None:
    told = [*SHOWN, *({"role": role, "content": text} for role, text in SAID)]
    assert allowed(told, later, at_once=at_once, guard=True) is is_allowed
