"""A write whose arguments were redacted may have changed anything of its kind."""

from typing import Any

import pytest

from bylaw import Pack, Shield

FILES = {
    "pack.yaml": "format: 1\nname: desk\ndocument: policy.md\n",
    "policy.md": "Refund an order only while it is paid.\n",
    "policies.yaml": "policies: [{id: paid, tools: [refund], spans: [Refund an order only while it is paid.]}]\n",
    "tools.yaml": """
tools:
  get_order: {effect: read, parameters: {order_id: string}}
  refund: {effect: write, parameters: {order_id: string}, changes: [{as: Order, key: $args.order_id}]}
""",
    "entities.yaml": "entities:\n  Order: {key: order_id, read: get_order, fields: {status: string}}\n",
    "guards/paid.py": (
        "def paid(call, facts):\n"
        "    return permit() if facts.Order(call.order_id).status == 'paid' else deny('not paid')\n"
    ),
}


def calling(id: str, tool: str, arguments: str, result: str) -> list[dict[str, Any]]:
    function = {"name": tool, "arguments": arguments}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": id, "content": result},
    ]


@pytest.mark.parametrize(("hidden", "answer"), [("[REDACTED]", "look_up"), ("A-...", "look_up"), ("B-2", "allow")])
def test_what_was_shown_before_is_stale(hidden: str, answer: str) -> None:
    history = [
        {"role": "user", "content": "Refund A-1."},
        *calling("k1", "get_order", '{"order_id": "A-1"}', '{"order_id": "A-1", "status": "paid"}'),
        *calling("k2", "refund", f'{{"order_id": "{hidden}"}}', "done"),
    ]
    assert Shield(Pack.from_files(FILES)).decide(history, "refund", {"order_id": "A-1"}).answer == answer
