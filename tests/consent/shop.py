"""Tools of a shop, an airline, a bank and a library, and events written shortly."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from bylaw.consent import Basis, Consent, Consents
from bylaw.facts.ledger import Ledger
from bylaw.facts.schema_reader import SchemaReader
from bylaw.policy.tool import Effect, Tool
from bylaw.trace.event import Call, Event, Message, Result
from tests.consent.trades import TRADES

_DELIVERY = {"type": "string", "enum": ["standard", "express"]}
_CABIN = {"type": "string", "enum": ["basic_economy", "economy", "business"]}
TOOLS = {
    name: Tool(name, cast("Effect", effect), parameters=parameters)
    for name, effect, parameters in (
        ("get_order", "read", {"order_id": {"type": "string"}}),
        ("get_customer", "read", {"customer_id": {"type": "string"}}),
        ("cancel_order", "write", {"order_id": {"type": "string"}}),
        ("place_order", "write", {}),
        ("change_delivery", "write", {"delivery": _DELIVERY}),
        ("change_bulbs", "write", {"bulb_count": {"type": "integer"}}),
        ("change_items", "write", {"delivery": _DELIVERY}),
        ("send_voucher", "write", {"amount": {"type": "number"}}),
        ("transfer", "write", {"amount": {"type": "string"}}),
        ("get_reservation", "read", {"reservation_id": {"type": "string"}}),
        ("cancel_reservation", "write", {"reservation_id": {"type": "string"}}),
        ("update_reservation_baggages", "write", {"total_baggages": {"type": "integer"}}),
        ("update_reservation_flights", "write", {"cabin": _CABIN}),
        ("get_account", "read", {"account_id": {"type": "string"}}),
        ("transfer", "write", {"account_id": {"type": "string"}, "to_account": {"type": "string"}}),
        ("pay", "write", {"account_id": {"type": "string"}, "beneficiary": {"type": "string"}}),
        ("lend_book", "write", {"book_id": {"type": "string"}, "days": {"type": "integer"}}),
    )
}
SCHEMA = SchemaReader(None, TRADES | TOOLS, None).read()


def events_of(written: Sequence[Mapping[str, Any]]) -> Iterator[Event]:
    """Events of messages and calls; calls with the same `turn` stand side by side."""
    step, turn, named = 0, 0, None
    for body in written:
        if body.get("turn") is None or body.get("turn") != named:
            turn += 1
        named = body.get("turn")
        if "call" in body:
            yield Call(body["call"], body["args"], turn=turn)
            step += 1
            if "result" in body:
                result = body["result"]
                content = result if isinstance(result, str) else msgspec.json.encode(result).decode()
                yield Result(step - 1, content, body.get("error"), tool=body["call"])
                step += 1
        else:
            by = "user" if "user" in body else "agent"
            yield Message(by, body[by], turn)
            step += 1


def ask(events: list[Event], step: int, basis: Basis = "told") -> Consent:
    """What is found of the call at a step, the whole conversation being known."""
    ledger = Ledger(SCHEMA)
    ledger.observe_all(0, events)
    return Consents(events, ledger).find(ledger.calls[step], basis)
