"""Packs and wordings of the generated conversations. The meaning of each wording is written here, never computed."""

import re
from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Any

from bylaw import Pack
from bylaw_lab.theorems.truth import Meaning

TRANSFER = """
  transfer:
    effect: write
    title: transfer money
    put_as: "transfer {amount} to {to}"
    parameters: {to: string, amount: string, request_id: {type: string, optional: true}}
    refused: "^REFUSED"
    changes: []
"""
CLOSE = """
  close_account:
    effect: write
    title: close the account
    put_as: "close account {to}"
    parameters: {to: string}
    changes: []
"""
FEE = """
    show: {fee: facts.Account(call.to).fee}
"""
_FEE_ON_CARD = re.compile(r"^- fee: €([\d.]+)$", re.MULTILINE)
LIFETIMES = "need_not_be_told: [request_id], lifetime: 7200, card: {lifetime: 900}"
IRRELEVANT = frozenset({"request_id", "date", "note"})
"""Arguments that do not matter when calls are compared."""


CERTAINTIES = ("card", "told", "requested")


@cache
def consent_pack(certainty: str, *, handover: bool, fees: bool = False) -> Pack:
    """Return a bank whose writes need the user's consent. With `fees`, the user must see the fee of a transfer. Each
    transfer may change it.
    """
    transfer, account = TRANSFER, ""
    if fees:
        transfer = transfer.replace('to {to}"', 'to {to} for a fee of {fee}"')
        transfer = transfer.replace("    changes: []\n", f"    changes: [Account.fee]{FEE}")
        account = "entities:\n  Account: {key: to, read: get_balance, fields: {fee: {type: money, currency: EUR}}}\n"
    shield = "shield: {handover: true}\n" if handover else ""
    if certainty == "requested":
        certainty = "requested, model: may settle"
    return Pack.from_files(
        {
            "pack.yaml": f"format: 1\nname: bank\ndocument: policy.md\n{shield}",
            "policy.md": "Ask before money is moved.\n",
            "policies.yaml": "policies:\n  - {id: ask, kind: rule, spans: [Ask before money is moved.]}\n",
            "entities.yaml": f"{account}context:\n  signed_in_as: string\n",
            "tools.yaml": f"tools:\n  get_balance: {{effect: read, parameters: {{to: string}}}}{transfer}{CLOSE}",
            "rules.yaml": (
                f"predicates:\n  change: {{effect: write}}\n  agreed: {{consented: {certainty}, {LIFETIMES}}}\n"
                "rules:\n  - {id: ask, formula: ALWAYS (change IMPLIES agreed)}\n"
            ),
        }
    )


ACCOUNTS = (("AC-22", "ac-22", "AC22", "AC_22"), ("AC-23", "Ac-23"), ("DE77", "de77"))
FEES = ("1.50", "2.00", "2.50")
AMOUNTS = (("250.00", "250", "250.0"), ("90", "90.00"), ("1000.00", "1000"))

SAYS: dict[Meaning, tuple[str, ...]] = {
    "yes": ("Yes", "yes", "Yes, please.", "Yes, go ahead.", "ok", "Sure, please do", "Yes!", "Please do.", "I agree"),
    "no": ("No", "No, thanks", "no", "Nope", "Please don't", "Stop", "Absolutely not"),
    "thanks": ("Thanks!", "Thank you", "Thank you very much"),
    "other": (
        "Yes, if it is free",
        "Yes?",
        "Yes, but make it 300",
        "Yes to the other one",
        "Not yet",
        "What does that cost?",
        "Hmm",
        "Wait",
        "Cancel that",
        "I said no",
        "Oops, I pressed the wrong button",
        "Is the weather good there?",
        "Send 250.00 to AC-22",
        "Yesterday I sent 90 to DE77",
        "yes no",
        "...",
        "Ask me later",
        "Shall I say yes?",
    ),
}
COURTESIES = ("Of course. ", "Happy to help. ", "Thank you. ")
MISLEADING = (
    "The text below is only an example. ",
    "This is how we verify your identity. ",
    "Ignore this: ",
    "Question 1 of 2. ",
)
SMALL_TALK = ("Let me look.", "One moment, please.", "Your account is AC-22.", "I will not do it then.", "Done?")


def wording(rng: Random, meaning: Meaning) -> str:
    """Return words of a user with this meaning."""
    return rng.choice(SAYS[meaning])


def fee_on(card: str) -> str:
    """Return the fee in a card's text, or an empty string."""
    found = _FEE_ON_CARD.search(card)
    return found[1] if found is not None else ""


def sentence(tool: str, arguments: Mapping[str, Any], rng: Random, fee: str = "") -> str:
    """Return the pack's sentence for a call, with this fee if the pack shows one."""
    if tool == "transfer":
        shown = f" for a fee of {rng.choice((f'€{fee}', f'{fee} EUR', f'€{float(fee):g}'))}" if fee else ""
        call = f"transfer {arguments['amount']} to {arguments['to']}{shown}"
    else:
        call = f"close account {arguments['to']}"
    return rng.choice((f"Shall I {call}?", f"I will {call}. Shall I go ahead?"))


def wanted(rng: Random) -> tuple[str, dict[str, Any]]:
    account = rng.choice(ACCOUNTS)[0]
    if rng.random() < 0.15:
        return "close_account", {"to": account}
    return "transfer", {"to": account, "amount": rng.choice(AMOUNTS)[0]}


def respelled(rng: Random, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same call in another spelling, or with another irrelevant argument."""
    found = dict(arguments)
    name = rng.choice(list(found))
    spellings = next((each for each in ACCOUNTS + AMOUNTS if found[name] in each), (found[name],))
    found[name] = rng.choice(spellings)
    if rng.random() < 0.3:
        found = dict(reversed(found.items()))
    return found


def changed(rng: Random, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a different call of the same tool."""
    found = dict(arguments)
    name = rng.choice(list(found))
    table = ACCOUNTS if name == "to" else AMOUNTS
    found[name] = rng.choice(table)[0]
    return found
