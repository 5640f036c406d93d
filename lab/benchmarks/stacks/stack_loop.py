"""A plain loop around the chat API. Every other export is compared with it."""

import dataclasses
import json
from typing import Any

import openai
from script import Script, ToolError


def shown(value: Any) -> str:
    """Return a tool's result as the loop passes it on: text unchanged, anything else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(dataclasses.asdict(value) if dataclasses.is_dataclass(value) else value)


class Loop:
    """One agent that talks to several users in turn."""

    def __init__(self, script: Script, client: Any) -> None:
        self.script = script
        self.client = client
        self.conversations: dict[str, list[dict[str, Any]]] = {}

    def turn(self, talk: dict[str, Any], user: str) -> None:
        messages = self.conversations.setdefault(talk["id"], [{"role": "system", "content": talk["system"]}])
        messages.append({"role": "user", "content": user})
        while True:
            tools = self.script.definitions
            answer = self.client.chat.completions.create(model=talk["id"], messages=messages, tools=tools)
            message = answer.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                return
            for call in message.tool_calls:
                content = self.call(call.function.name, json.loads(call.function.arguments), talk["id"], call.id)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": content})

    def call(self, name: str, arguments: dict[str, Any], conversation: str, id: str) -> str:
        try:
            return shown(self.script.run(name, arguments, conversation))
        except ToolError as error:
            return f"Error: {error}"


def drive(script: Script, url: str, page: Any) -> None:
    loop = Loop(script, openai.OpenAI(base_url=url, api_key="none"))
    for talk, user in script.interleaved():
        loop.turn(talk, user)
    page.run("after", "plain", conversations=loop.conversations)
