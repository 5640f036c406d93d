"""Tools in: whatever a catalogue is written in, the same is known of a tool."""

import json
from pathlib import Path
from typing import Literal

import pytest

from bylaw.compile.pipeline import Source, compile_pack
from bylaw.compile.python_tools import callable_card
from bylaw.compile.tools import read_tools, with_logs
from bylaw.errors import BylawError, UsageError
from bylaw.policy.document import Document
from bylaw.trace import Call, Result, Trajectory
from tests.compile.shop import Scripted

SCHEMA = {
    "type": "object",
    "properties": {"order_id": {"type": "string"}, "speed": {"type": "string", "enum": ["slow", "fast"]}},
    "required": ["order_id"],
}


def ship(order_id: str, speed: Literal["slow", "fast"] = "slow") -> list[str]:
    """Send an order. Slow unless told otherwise."""
    raise NotImplementedError


@pytest.mark.parametrize(
    "catalogue",
    [
        {"tools": [{"name": "ship", "description": "Send an order.", "inputSchema": SCHEMA}]},
        [{"type": "function", "function": {"name": "ship", "description": "Send an order.", "parameters": SCHEMA}}],
        {
            "openapi": "3.1.0",
            "paths": {
                "/orders/{order_id}/ship": {
                    "parameters": [{"name": "order_id", "in": "path", "required": True, "schema": {"type": "string"}}],
                    "post": {
                        "operationId": "ship",
                        "summary": "Send an order.",
                        "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/body"}}}},
                    },
                }
            },
            "components": {"body": {"type": "object", "properties": {"speed": SCHEMA["properties"]["speed"]}}},
        },
    ],
    ids=["mcp", "functions", "openapi"],
)
def test_every_format_tells_the_same(tmp_path: Path, catalogue: object) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(catalogue))
    card = read_tools([str(path)])["ship"]
    assert card.signature == "ship(order_id: string, speed?: slow|fast)"
    assert card.description == "Send an order."
    assert card.effect is None


def test_what_a_catalogue_says_beside_the_definition_is_kept(tmp_path: Path) -> None:
    items = {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "string"}}}}
    definition = {"name": "ship", "parameters": {"type": "object", "properties": {"items": items}}}
    catalogue = [{"type": "function", "effect": "write", "returns": "text: sent\nor lost", "function": definition}]
    (tmp_path / "tools.json").write_text(json.dumps(catalogue))
    card = read_tools([str(tmp_path / "tools.json")])["ship"]
    assert card.effect == "write"
    assert card.signature == "ship(items?: list of {sku: string})"
    events = (Call("ship", {"items": []}), Result(0, '{"state": "sent"}'))
    made, _ = with_logs({"ship": card}, [Trajectory("one", events)])
    assert made["ship"].results.splitlines() == ["returns: text: sent or lost", "results: {state: string}"]
    state = {"type": "object", "properties": {"state": {"type": "string"}}, "required": ["state"]}
    assert made["ship"].output == state


def test_a_python_function_is_a_tool() -> None:
    card = callable_card(ship)
    assert card.signature == "ship(order_id: string, speed?: slow|fast)"
    assert card.short == "- ship(order_id: string, speed?: slow|fast): Send an order."
    assert card.results == "results: [string, ...]"


def test_hints_give_the_effect(tmp_path: Path) -> None:
    tools = [
        {"name": "look", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}},
        {"name": "drop", "inputSchema": SCHEMA, "annotations": {"destructiveHint": True}},
        {"name": "other", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": False}},
    ]
    path = tmp_path / "tools.json"
    path.write_text(json.dumps({"tools": tools}))
    assert [card.effect for card in read_tools([str(path)]).values()] == ["read", "write", None]


def test_an_output_schema_tells_the_form_of_results(tmp_path: Path) -> None:
    output = {"type": "object", "properties": {"orders": {"type": "array", "items": {"type": "string"}}}}
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([{"name": "look", "inputSchema": SCHEMA, "outputSchema": output}]))
    assert read_tools([str(path)])["look"].results == "results: {orders: [string, ...]}"


def test_logs_tell_the_form_of_results_and_no_value_of_a_record() -> None:
    events = []
    for number, state in enumerate(("open", "done", "open", "done"), 1):
        events.append(Call("look", {"order_id": f"A{number}"}, turn=number))
        text = json.dumps({"order_id": f"A{number}", "state": state, "owner": {"name": f"Ada {number}"}, "at": None})
        events.append(Result(len(events) - 1, text, tool="look"))
    events.append(Call("look", {"order_id": "A9"}, turn=9))
    events.append(Result(len(events) - 1, '{"error": "order A9 not found"}', tool="look"))
    cards, read = with_logs({}, [Trajectory("one", tuple(events)), BylawError("not read")])
    told = cards["look"].whole
    assert "results: {order_id: string, state: done|open, owner: {name: string}, at: string or null}" in told
    assert 'errors: {"error": "order ... not found"}' in told
    assert "Ada" not in told
    assert len(read) == 1


@pytest.mark.parametrize("given", ["no_such_module", "missing.json"])
def test_what_is_no_catalogue_is_said(given: str) -> None:
    with pytest.raises(BylawError):
        read_tools([given])


def test_no_tool_at_all_is_said() -> None:
    with pytest.raises(UsageError, match="no tool is given"):
        compile_pack(Source(Document("One rule.\n"), "Shop", {}), Scripted())
