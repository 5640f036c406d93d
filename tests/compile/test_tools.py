"""Tools in: whatever a catalogue is written in, the same is known of a tool."""

import json
import re
from pathlib import Path

import pytest

from bylaw.compile.pipeline import Source, compile_pack
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


PYTHON = '''
raise SystemExit("importing this is a mistake")
from enum import Enum
from typing import Annotated, Literal, Optional, TypedDict
from fees import refund

class Speed(str, Enum):
    SLOW = "slow"
    FAST = "fast"

class Order(TypedDict):
    order_id: str
    due: "date"

def ship(order_id: str, speed: Speed = Speed.SLOW) -> list[str]:
    """Send an order. Slow unless told otherwise.

    Args:
        order_id (str): As it stands on the slip,
            without the dash.
        speed: How fast.

    Returns:
        parcels: What was sent.
    """

async def look(
    order_id: Annotated[str, "The slip's number"], *, deep: Optional[bool] = None, at: "int | None"
) -> Order:
    """:param at: Where."""

def _secret(): ...
'''


def test_python_functions_are_tools_and_nothing_is_imported(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(PYTHON)
    cards = read_tools([str(tmp_path / "tools.py")])
    assert [*cards] == ["ship", "look"]
    ship, look = cards.values()
    assert ship.signature == "ship(order_id: string, speed?: slow|fast)"
    assert ship.short == "- ship(order_id: string, speed?: slow|fast): Send an order."
    assert ship.results == "results: [string, ...]"
    told = {name: schema.get("description") for name, schema in ship.parameters.items()}
    assert told == {"order_id": "As it stands on the slip, without the dash.", "speed": "How fast."}
    assert look.signature == "look(order_id: string, deep?: boolean, at: integer)"
    assert look.results == "results: {order_id: string, due: date}"
    assert look.parameters["order_id"]["description"] == "The slip's number"
    assert look.parameters["at"]["description"] == "Where."


def test_a_function_is_followed_to_the_file_it_is_imported_from(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(PYTHON)
    (tmp_path / "fees.py").write_text("def refund(order_id: str, cents: int): ...")
    cards = read_tools([f"{tmp_path / 'tools.py'}:ship,refund"])
    assert [*cards] == ["ship", "refund"]
    assert cards["refund"].signature == "refund(order_id: string, cents: integer)"


def test_only_what_is_marked_as_a_tool_is_one(tmp_path: Path) -> None:
    marked = "class Kit:\n  @is_tool(ToolType.READ)\n  def look(self, sku: str): ...\n\ndef helper(): ...\n"
    (tmp_path / "kit.py").write_text(marked)
    assert [card.signature for card in read_tools([str(tmp_path / "kit.py")]).values()] == ["look(sku: string)"]


@pytest.mark.parametrize(
    ("text", "given", "want"),
    [
        ("def ship(:\n", "", "tools.py:1"),
        ("def ship(): ...\n", ":refund", "no function `refund`.*it has `ship`"),
        ("x = 1\n", "", "the file has no public function"),
    ],
    ids=["no Python", "another name", "no function"],
)
def test_a_python_file_without_what_is_asked_for_is_said(tmp_path: Path, text: str, given: str, want: str) -> None:
    (tmp_path / "tools.py").write_text(text)
    with pytest.raises(UsageError) as refused:
        read_tools([f"{tmp_path / 'tools.py'}{given}"])
    assert re.search(want, str(refused.value), re.DOTALL)


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
    with pytest.raises(UsageError, match="no tools"):
        compile_pack(Source(Document("One rule.\n"), "Shop", {}), Scripted())
