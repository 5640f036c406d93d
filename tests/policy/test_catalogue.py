"""Tools taken from a catalogue that exists already, and policies that name tools by what they do."""

import json
from pathlib import Path
from typing import Any

import pytest

from bylaw.errors import PackError

from .shop import FILES, load

SHIP = {"type": "object", "properties": {"order_id": {"type": "string"}, "note": {"type": "string"}}}
SCHEMAS: dict[str, Any] = {
    "get_order": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
    "find_orders": {"type": "object", "properties": {"owner": {"type": "string"}}},
    "ship": {**SHIP, "required": ["order_id"]},
    "refund": {"type": "object", "properties": {"order_id": {"type": "string"}, "amount": {"type": "string"}}},
}
SAID = """\
from: tools.json
tools:
  get_order: {effect: read}
  find_orders: {effect: read}
  ship: {effect: write, changes: [Order.state]}
  refund: {effect: write}
"""


def mcp(**more: Any) -> Any:
    return {"tools": [{"name": name, "inputSchema": schema, **more} for name, schema in SCHEMAS.items()]}


@pytest.mark.parametrize(
    "catalogue",
    [
        mcp(description="words"),
        {"jsonrpc": "2.0", "id": 1, "result": mcp()},
        mcp()["tools"],
        [{"type": "function", "function": {"name": n, "parameters": s}} for n, s in SCHEMAS.items()],
        [{"type": "function", "name": n, "parameters": s, "strict": True} for n, s in SCHEMAS.items()],
        [{"name": n, "input_schema": s} for n, s in SCHEMAS.items()],
        SCHEMAS,
    ],
    ids=["mcp", "json-rpc", "list", "openai chat", "openai responses", "anthropic", "schemas"],
)
def test_every_kind_of_catalogue_gives_the_same_parameters(tmp_path: Path, catalogue: Any) -> None:
    pack = load(tmp_path, {"tools.yaml": SAID, "tools.json": json.dumps(catalogue)})
    assert {name: set(tool.parameters) for name, tool in pack.schema.tools.items()} == {
        name: set(schema["properties"]) for name, schema in SCHEMAS.items()
    }
    assert pack.schema.tools["ship"].required == ("order_id",)
    assert pack.schema.tools["ship"].effect == "write"


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        ({"tools.yaml": SAID}, "BY410 tools.json: cannot be read: no such file or directory"),
        ({"tools.yaml": SAID, "tools.json": "{"}, "BY410 tools.json:1: is not JSON"),
        ({"tools.yaml": SAID, "tools.json": ""}, "BY410 tools.json:1: is not JSON"),
        ({"tools.yaml": SAID, "tools.json": "3"}, "BY410 tools.json: lists no tools; pass an MCP"),
        ({"tools.yaml": SAID, "tools.json": "[{}]"}, "BY410 tools.json: tool 1 has no name"),
        (
            {"tools.yaml": SAID, "tools.json": '{"ship": 3}'},
            "BY410 tools.json: the parameters of `ship` are not a JSON schema",
        ),
        (
            {"tools.yaml": SAID.replace("  refund: {effect: write}\n", ""), "tools.json": json.dumps(SCHEMAS)},
            "BY410 tools.yaml:1: tool `refund` of tools.json has no effect; add `refund: {effect: read}`",
        ),
        (
            {"tools.yaml": SAID + "  sell: {effect: write}\n", "tools.json": json.dumps(SCHEMAS)},
            "BY410 tools.yaml:7: `sell` is not in tools.json; the file has",
        ),
    ],
)
def test_a_fault_has_its_place(tmp_path: Path, files: dict[str, str], fault: str) -> None:
    with pytest.raises(PackError) as caught:
        load(tmp_path, files)
    assert any(str(each).startswith(fault) or f"{each.code} {each}".startswith(fault) for each in caught.value.faults)


def test_what_a_server_says_of_reading_is_believed(tmp_path: Path) -> None:
    catalogue = mcp()
    catalogue["tools"][1]["annotations"] = {"readOnlyHint": True}
    said = SAID.replace("  find_orders: {effect: read}\n", "")
    assert (
        load(tmp_path, {"tools.yaml": said, "tools.json": json.dumps(catalogue)}).schema.tools["find_orders"].effect
        == "read"
    )


def test_the_catalogue_is_part_of_the_digest(tmp_path: Path) -> None:
    one = load(tmp_path / "a", {"tools.yaml": SAID, "tools.json": json.dumps(mcp())})
    other = load(tmp_path / "b", {"tools.yaml": SAID, "tools.json": json.dumps(mcp(description="other"))})
    assert one.digest != other.digest


def policies(tools: str) -> dict[str, str]:
    return {"policies.yaml": FILES["policies.yaml"].replace("tools: [refund]", f"tools: {tools}")}


@pytest.mark.parametrize(
    ("tools", "bound"),
    [
        ("{effect: write}", ("ship", "refund")),
        ("{effect: write, with: amount}", ("refund",)),
        ("{with: order_id}", ("get_order", "ship", "refund")),
        ("{effect: write, with: [order_id], except: ship}", ("refund",)),
        ("{effect: read}", ("get_order", "find_orders")),
    ],
)
def test_policies_name_tools_by_what_they_do(tmp_path: Path, tools: str, bound: tuple[str, ...]) -> None:
    assert load(tmp_path, policies(tools)).policies["no-gifts"].tools == bound


@pytest.mark.parametrize("tools", ["{effect: none}", "{with: colour}", "{}", "{effect: delete}", "{except: nothing}"])
def test_tools_that_are_not_there_are_told(tmp_path: Path, tools: str) -> None:
    with pytest.raises(PackError):
        load(tmp_path, policies(tools))


def test_spans_by_text_and_by_line_and_sentence(tmp_path: Path) -> None:
    short = FILES["policies.yaml"].replace('[{quote: "Gifts are never refunded."}]', '["Gifts are never refunded."]')
    pack = load(tmp_path / "a", {"policies.yaml": short})
    (citation,) = pack.policies["no-gifts"].citations
    assert (citation.line, citation.text) == (9, "Gifts are never refunded.")
    assert pack.document is not None
    digests = {sentence.text: sentence.digest for sentence in pack.document.sentences}
    gifts, say = digests["Gifts are never refunded."], digests["Say what you are about to do."]
    at = f'[{{heading: Refunds, at: {{"9:1": "{gifts}", "9:2": "{say}"}}}}]'
    placed = load(tmp_path / "b", {"policies.yaml": short.replace('["Gifts are never refunded."]', at)})
    assert [c.text for c in placed.policies["no-gifts"].citations] == list(digests)[2:]
    wrong = short.replace('["Gifts are never refunded."]', '[{at: {"nine": "x"}}]')
    with pytest.raises(PackError, match="needs `quote`"):
        load(tmp_path / "c", {"policies.yaml": wrong})
