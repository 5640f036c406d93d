"""The messages of the Claude Agent SDK.

Its agent is a separate program that needs a model of Anthropic's. The script therefore creates the SDK's message
objects itself, as that program sends them.
"""

import dataclasses
import json
from typing import Any

from claude_agent_sdk import AssistantMessage, TextBlock, ToolResultBlock, ToolUseBlock, UserMessage
from script import Script, ToolError


def drive(script: Script, url: str, page: Any) -> None:
    conversations: dict[str, list[Any]] = {}
    for talk, user in script.interleaved():
        messages = conversations.setdefault(talk["id"], [])
        messages.append(UserMessage(content=user))
        while True:
            step = script.next_step(talk["id"])
            blocks: list[Any] = [TextBlock(text=step["text"])] if step["text"] else []
            blocks += [
                ToolUseBlock(id=each["id"], name=each["name"], input=each["arguments"]) for each in step["calls"]
            ]
            messages.append(AssistantMessage(content=blocks, model="scripted"))
            if not step["calls"]:
                break
            messages.append(UserMessage(content=[_answer(script, each, talk["id"]) for each in step["calls"]]))
    page.run("after", conversations=conversations)


def _answer(script: Script, call: dict[str, Any], id: str) -> ToolResultBlock:
    try:
        value = script.run(call["name"], call["arguments"], id)
    except ToolError as error:
        return ToolResultBlock(tool_use_id=call["id"], content=f"Error: {error}", is_error=True)
    if dataclasses.is_dataclass(value):
        value = dataclasses.asdict(value)
    # Tools of the SDK return text parts.
    text = value if isinstance(value, str) else json.dumps(value)
    return ToolResultBlock(tool_use_id=call["id"], content=[{"type": "text", "text": text}])
