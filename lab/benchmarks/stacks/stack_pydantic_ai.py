"""Pydantic AI."""

import asyncio
import functools
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from script import CURRENT, Script, ToolError


def _telling(function: Any) -> Any:
    """Report a failed tool to the model, as most applications do, because an exception would end the run."""

    @functools.wraps(function)
    def run(*args: Any, **arguments: Any) -> Any:
        try:
            return function(*args, **arguments)
        except ToolError as error:
            return f"Error: {error}"

    return run


def drive(script: Script, url: str, page: Any) -> None:
    page.run("before")
    asyncio.run(_talk(script, url, page))


async def _talk(script: Script, url: str, page: Any) -> None:
    provider = OpenAIProvider(base_url=url, api_key="none")
    tools = [_telling(each) for each in script.functions()]
    results: dict[str, Any] = {}
    for talk, user in script.interleaved():
        CURRENT.set(talk["id"])
        agent = Agent(
            OpenAIChatModel(talk["id"], provider=provider), name="desk", instructions=talk["system"], tools=tools
        )
        before = results[talk["id"]].all_messages() if talk["id"] in results else None
        results[talk["id"]] = await agent.run(user, message_history=before, conversation_id=talk["id"])
    await page.run_async("after", results=results)
