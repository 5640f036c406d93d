"""OpenAI Agents SDK, over the chat API and over the Responses API."""

import asyncio
import shutil
from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool
from openai import AsyncOpenAI
from openinference.instrumentation import using_session
from script import CURRENT, Script, serve


def drive(script: Script, url: str, page: Any) -> None:
    page.run("before")
    asyncio.run(_talk(script, url, page, OpenAIChatCompletionsModel))
    for name in ("items", "openinference"):
        shutil.move(f"{name}.jsonl", f"{name}-chat.jsonl")
    again = Script(script.path)
    asyncio.run(_talk(again, serve(again), page, OpenAIResponsesModel))
    for name in ("items", "openinference"):
        shutil.move(f"{name}.jsonl", f"{name}-responses.jsonl")


async def _talk(script: Script, url: str, page: Any, kind: Any) -> None:
    client = AsyncOpenAI(base_url=url, api_key="none")
    tools = [function_tool(each, strict_mode=False) for each in script.functions()]
    results: dict[str, Any] = {}
    for talk, user in script.interleaved():
        CURRENT.set(talk["id"])
        model = kind(model=talk["id"], openai_client=client)
        agent = Agent(name="desk", instructions=talk["system"], tools=tools, model=model)
        before = results[talk["id"]].to_input_list() if talk["id"] in results else []
        with using_session(talk["id"]):
            results[talk["id"]] = await Runner.run(agent, [*before, {"role": "user", "content": user}], max_turns=30)
    await page.run_async("after", results=results)
