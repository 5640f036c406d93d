"""The rental desk in the Claude Agent SDK: its own program, and a model on the loopback that it asks."""

import itertools
import os
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ResultMessage,
    create_sdk_mcp_server,
    tool,
)

from bylaw.integrations.claude import ShieldHooks
from tests.integrations.rental import FILES, Rentals
from tests.integrations.shop import Script, serve

SERVER = "mcp__desk__"
TOOLS = ("get_rental", "extend_rental", "refund")
AGENT = "  Agent: {effect: none, parameters: {description: string, prompt: string, subagent_type: string}}\n"
GOES_ON = "Continue from where you left off."
_ids = itertools.count(1)
Says = Callable[[str, str, str], str | list[tuple[str, dict[str, Any]]]]


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The program finds nothing of whoever runs the tests, and asks nobody but the scripted model."""
    for name in [name for name in os.environ if name.startswith(("ANTHROPIC", "CLAUDE", "AWS", "GOOGLE"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")


@pytest.fixture(autouse=True)
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pack has the names that the model calls the tools of an MCP server by."""
    for file in ("tools.yaml", "entities.yaml", "guards/desk.py"):
        text = FILES[file]
        for name in TOOLS:
            text = re.sub(rf"(^  |read: |call: ){name}\b", rf"\g<1>{SERVER}{name}", text, flags=re.MULTILINE)
        monkeypatch.setitem(FILES, file, text + AGENT if file == "tools.yaml" else text)


class Scripted(Script):
    """A model that says what its script makes of what it heard last; scripts by the names of models."""

    def __init__(self, scripts: dict[str, Says]) -> None:
        self.scripts, self.requests = scripts, []

    def next_step(self, model: str) -> dict[str, Any]:
        said = self.scripts[model](*heard(self.requests[-1]["messages"]))
        if isinstance(said, str):
            return {"text": said, "calls": []}
        calls = [
            {"id": f"call_{next(_ids)}", "name": name if name == "Agent" else SERVER + name, "arguments": arguments}
            for name, arguments in said
        ]
        return {"text": None, "calls": calls}


def heard(messages: list[dict[str, Any]]) -> tuple[str, str, str]:
    """Who spoke last, `user` or a tool, what they said, and what the user said first; the program's own notes aside."""
    names: dict[str, str] = {}
    found: list[tuple[str, str]] = []
    for message in messages:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "tool_use":
                names[block["id"]] = block["name"].removeprefix(SERVER)
            elif block["type"] == "tool_result":
                told = block["content"]
                found.append((names[block["tool_use_id"]], told if isinstance(told, str) else told[0]["text"]))
            elif message["role"] == "user" and not block.get("text", "").startswith(("<", GOES_ON)):
                found.append(("user", block.get("text", block["type"]).strip()))
    first = next(text for who, text in found if who == "user")
    return *found[-1], first


def start(monkeypatch: pytest.MonkeyPatch, scripts: dict[str, Says]) -> Scripted:
    """Start the models."""
    script = Scripted(scripts)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", serve(script).removesuffix("/v1"))
    return script


def options(folder: Path, rentals: Rentals, model: str = "c1", **given: Any) -> ClaudeAgentOptions:
    """An agent with the desk's tools."""

    def made(name: str, parameters: dict[str, Any]) -> Any:
        async def run(arguments: dict[str, Any]) -> dict[str, Any]:
            return {"content": [{"type": "text", "text": getattr(rentals, name)(**arguments)}]}

        return tool(name, f"{name} of the desk", parameters)(run)

    tools = [
        made("get_rental", {"rental_id": str}),
        made("extend_rental", {"rental_id": str, "new_end": str}),
        made("refund", {"rental_id": str, "amount": str}),
    ]
    return ClaudeAgentOptions(
        mcp_servers={"desk": create_sdk_mcp_server("desk", tools=tools)},
        allowed_tools=[*(SERVER + name for name in TOOLS), "Agent"],
        tools=given.pop("tools", []),
        model=model,
        setting_sources=[],
        cwd=folder,
        **given,
    )


async def run(
    guard: ShieldHooks, given: ClaudeAgentOptions, *texts: str | list[Any], results: int = 1
) -> ResultMessage:
    """Runs of an agent, one for each text or list of blocks, or one that goes on with what was deferred; its last
    result."""

    async def sent(blocks: list[Any]) -> AsyncIterator[dict[str, Any]]:
        yield {"type": "user", "message": {"role": "user", "content": blocks}, "parent_tool_use_id": None}

    last: Any = None
    async with ClaudeSDKClient(guard.protect(given)) as client:
        for text in texts or (None,):
            if text is not None:
                await client.query(text if isinstance(text, str) else sent(text))
            for _ in range(results):
                async for message in guard.hear(client.receive_response()):
                    last = message
    return last
