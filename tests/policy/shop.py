"""A small sound pack, and ways to spoil it."""

from collections.abc import Mapping
from pathlib import Path

from bylaw.errors import PackError
from bylaw.pack import Pack, load_pack

FILES: dict[str, str] = {
    "pack.yaml": """\
format: 1
name: shop
version: "1"
title: A shop
document: policy.md
now: 2025-01-01T10:00:00
""",
    "policy.md": """\
# Shop

## Shipping

Only paid orders are shipped. Nothing is shipped to somebody else.

## Refunds

Gifts are never refunded. Say what you are about to do.
""",
    "tools.yaml": """\
tools:
  get_order:
    effect: read
    parameters: {order_id: string}
  find_orders:
    effect: read
    parameters: {owner: string}
  ship:
    effect: write
    parameters: {order_id: string, note: "string?"}
    changes: [Order.state]
  refund:
    effect: write
    parameters: {order_id: string, amount: string}
""",
    "entities.yaml": """\
entities:
  Order:
    key: order_id
    read: get_order
    fields:
      paid: boolean
      gift: boolean
      owner: string
      state: {type: enum, values: [open, sent]}
      total: money
observations:
  get_order:
    - {as: Order, absent: not found}
  find_orders:
    - {each: "$[*]", as: Order, fields: {owner: $args.owner}}
""",
    "policies.yaml": """\
policies:
  - id: only-paid
    kind: guard
    tools: [ship]
    definition: Only paid orders are shipped.
    spans: [{quote: "Only paid orders are shipped."}]
    severity: high
  - id: no-gifts
    kind: guard
    tools: [refund]
    definition: Gifts are not refunded.
    spans: [{quote: "Gifts are never refunded."}]
  - id: say-it
    kind: conversation
    definition: The agent says what it is about to do.
    spans: [{quote: "Say what you are about to do."}]
""",
    "guards/shop.py": """\
def only_paid(call, facts):
    if facts.Order(call.order_id).paid:
        return permit()
    return deny("the order is not paid")


def no_gifts(call, facts):
    if facts.Order(call.order_id).gift:
        return deny("gifts are not refunded")
    return permit()
""",
    "cases/shop.yaml": """\
- note: a paid order
  policy: only-paid
  call: {ship: {order_id: O1}}
  facts: {"Order[O1]": {paid: true}}
  want: permit
- note: an order that is not paid
  policy: only-paid
  call: {ship: {order_id: O1}}
  facts: {"Order[O1]": {paid: false}}
  want: deny
- note: a gift
  policy: no-gifts
  call: {refund: {order_id: O1, amount: "5"}}
  facts: {"Order[O1]": {gift: true}}
  want: deny
- note: no gift
  policy: no-gifts
  call: {refund: {order_id: O1, amount: "5"}}
  facts: {"Order[O1]": {gift: false}}
  want: permit
""",
}


def write_pack(root: Path, changes: Mapping[str, str | bytes | None] | None = None) -> Path:
    """The shop's pack in a folder, with some of its files replaced, added or (None) left out."""
    files: dict[str, str | bytes | None] = {**FILES, **(changes or {})}
    for name, content in files.items():
        if content is not None:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def edited(name: str, old: str, new: str) -> dict[str, str | bytes | None]:
    """One file of the pack with a piece of its text replaced."""
    assert FILES[name].count(old) == 1, f"`{old}` stands {FILES[name].count(old)} times in {name}"
    return {name: FILES[name].replace(old, new)}


def load(root: Path, changes: Mapping[str, str | bytes | None] | None = None) -> Pack:
    """The spoiled pack, loaded."""
    return load_pack(write_pack(root, changes))


def faults(root: Path, changes: Mapping[str, str | bytes | None]) -> list[str]:
    """What is wrong with the spoiled pack: `code place: message; hint`."""
    try:
        load(root, changes)
    except PackError as error:
        return [f"{fault.code} {fault}" for fault in error.faults]
    return []
