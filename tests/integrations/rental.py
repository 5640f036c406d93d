"""A car rental desk whose pack asks for the customer's yes: for tests of what changes while a conversation runs."""

from pathlib import Path
from typing import Any

import msgspec

from bylaw.shield import Shield
from tests.packs import made

FILES = {
    "policy.md": """# Car rental desk

A rental is changed only for the customer who hired the car.
Refunds are made only where the customer says that the car broke down or was dirty.
A refund is never more than what was paid and not refunded yet.
Before every change, tell the customer what you will do and wait for a yes.
""",
    "pack.yaml": "format: 1\nname: desk\nversion: '1'\ndocument: policy.md\n",
    "policies.yaml": "policies:\n  - {id: confirm, spans: ['Before every change, tell the customer']}\n",
    "entities.yaml": """entities:
  Rental:
    key: rental_id
    read: get_rental
    fields: {customer_id: string, ends_on: date, paid: money, refunded: money}
  Request:
    key: []
    fields:
      reason:
        type: enum
        values: [fault, other]
        origin: user
        question: Why does the customer want the money back?
        from:
          - {says: "broke down|dirty", value: fault}
          - {says: "changed my mind|too expensive", value: other}
context:
  signed_in_as: {type: string, question: Which customer is signed in?}
""",
    "tools.yaml": """tools:
  get_rental: {effect: read, parameters: {rental_id: string}}
  extend_rental:
    effect: write
    title: extend rental
    put_as: extend rental {rental_id} to {new_end}
    parameters: {rental_id: string, new_end: string}
    effects: [{as: Rental, key: $args.rental_id, set: {ends_on: $args.new_end}}]
  refund:
    effect: write
    put_as: refund {amount} for rental {rental_id}
    parameters: {rental_id: string, amount: string}
    effects: [{as: Rental, key: $args.rental_id, set: {refunded: {plus: $args.amount}}}]
  call_specialist: {effect: none, parameters: {input: string}}
""",
    "rules.yaml": """predicates:
  change: {effect: write}
  agreed: {consented: told}
rules:
  - {id: confirm, formula: ALWAYS (change IMPLIES agreed)}
""",
    "guards/desk.py": '''def own_rental(call: write(rental_id), facts):
    """A rental is changed only for the customer who hired the car."""
    if facts.Rental(call.rental_id).customer_id != facts.context.signed_in_as:
        return deny("another customer's rental")
    return permit()


def refund_reason(call: refund, facts):
    """Refunds are made only where the customer says that the car broke down or was dirty."""
    return deny("no fault of ours") if facts.Request.reason == "other" else permit()


def refund_left(call: refund, facts):
    """A refund is never more than what was paid and not refunded yet."""
    rental = facts.Rental(call.rental_id)
    return permit() if money(call.amount) <= rental.paid - rental.refunded else deny("more than is left")
''',
}
CUSTOMER = {"signed_in_as": "C1"}
EXTEND = {"rental_id": "R1", "new_end": "2026-11-20"}
REFUND = {"rental_id": "R1", "amount": "20.00"}
PUT_EXTEND = "Shall I extend rental R1 to 2026-11-20?"
PUT_REFUND = "Shall I refund 20.00 for rental R1?"

BESIDE: list[dict[str, Any]] = [
    {"type": "text", "text": "Thank you."},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    {"type": "audio", "base64": "AAAA"},
    {"type": "file", "file": {"file_id": "f"}},
    {"type": "banner", "html": "<b>or to 2026-12-31?</b>"},
]
"""Parts of an agent's message beside its question. Only the first one is words."""


def desk(folder: Path, **given: Any) -> Shield:
    """The shield of the desk."""
    for name, text in FILES.items():
        path = folder / "desk" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Shield(made(FILES), **given)


def desk_with_numbers(folder: Path, **given: Any) -> Shield:
    """The same desk, whose tool takes the money to pay back as a number."""
    desk(folder)
    tools = folder / "desk" / "tools.yaml"
    tools.write_text(tools.read_text().replace("amount: string", "amount: number"))
    return Shield(folder / "desk", **given)


class Rentals:
    """The real tools; `ran` is what they changed."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.rental: dict[str, Any] = {
            "rental_id": "R1", "customer_id": "C1", "ends_on": "2026-11-18", "paid": "400.00", "refunded": "0.00",
        }  # fmt: skip

    def get_rental(self, rental_id: str) -> str:
        """Show a rental."""
        return msgspec.json.encode({**self.rental, "rental_id": rental_id}).decode()

    def extend_rental(self, rental_id: str, new_end: str) -> str:
        """Extend a rental to a new last day."""
        self.ran.append(f"extend {rental_id}")
        return f'{{"extended": "{rental_id}"}}'

    def refund(self, rental_id: str, amount: str) -> str:
        """Pay money back."""
        self.ran.append(f"refund {amount}")
        return f'{{"refunded": "{amount}"}}'
