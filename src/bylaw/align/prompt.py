"""Builds the system message: the agent's role, the instructions for tool calls, the tool list, and optionally the
policy.

The message lists one tool per line, and calls are written as JSON text. Small models handle this format better than an
unfamiliar native tool format.
"""

from functools import cache
from typing import Any, Literal, cast

from bylaw.consent.card import CALL
from bylaw.errors import UsageError
from bylaw.pack import Pack, load_pack
from bylaw.policy.tool import Tool

PolicyPlace = Literal["context", "none"]
HOW = (
    "You may think first between <think> and </think>. Then write either one message to the user, or one tool call "
    'and nothing else, as JSON: {"name": "tool", "arguments": {"parameter": "value"}}'
)


@cache
def pack_named(name: str) -> Pack:
    return load_pack(name)


@cache
def system_message(pack: str, policy: PolicyPlace, *, document: str = "") -> str:
    """Return the system prompt. `document` is the text of the policy for a pack that has none."""
    held = pack_named(pack)
    when = f" It is {held.now:%A, %Y-%m-%d %H:%M}." if held.now else ""
    parts = [f"You are the assistant of {held.title}.{when} {HOW}", tool_lines(pack), *_asking(held)]
    if policy == "context":
        text = document or (held.document.text if held.document is not None else "")
        if not text:
            raise UsageError(f"pack `{pack}` has no document for the prompt", hint="use policy none")
        parts.append(text)
    return "\n\n".join(parts)


def _asking(pack: Pack) -> list[str]:
    """Return the pack's instructions on asking for confirmation, if it has any."""
    put = {tool.name: tool.put_as[0] for tool in pack.schema.tools.values() if tool.put_as}
    asks = next((each.words.asks for each in pack.book.predicates.values() if each.consent), ())
    if not put or not asks:
        return []
    called = "\n".join(f"{name}: {words}" for name, words in put.items())
    ask = f'Before a change, ask the user in a message with nothing else: "{asks[0]}"'
    values = (
        "of the call and of your look-ups" if any(tool.show for tool in pack.schema.tools.values()) else "of the call"
    )
    return [f"{ask} For {CALL} write, with the values {values}:\n{called}"]


@cache
def tool_lines(pack: str) -> str:
    return "\n".join(["Tools:", *(tool_line(tool) for tool in pack_named(pack).schema.called.values())])


def tool_line(tool: Tool) -> str:
    """Describe a tool as `name(parameter, parameter: one|two, optional?): description`."""
    parts: list[str] = []
    for name, schema in tool.parameters.items():
        declared = cast(dict[str, Any], schema) if isinstance(schema, dict) else {}
        words = declared.get("enum")
        mark = "" if name in tool.required else "?"
        kind = "|".join(map(str, cast(list[Any], words))) if words else declared.get("type", "")
        parts.append(f"{name}{mark}" + (f": {kind}" if kind and kind != "string" else ""))
    return f"{tool.name}({', '.join(parts)}): {tool.description}"


@cache
def tool_schemas(pack: str) -> list[dict[str, Any]]:
    """Return the tools as OpenAI functions."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": {"type": "object", "properties": tool.parameters, "required": list(tool.required)},
            },
        }
        for tool in pack_named(pack).schema.called.values()
    ]
