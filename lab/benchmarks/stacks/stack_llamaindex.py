"""LlamaIndex's function agent."""

import asyncio
import functools
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from openinference.instrumentation import using_session
from script import CURRENT, Script, ToolError


def _failing_aloud(function: Any) -> Any:
    """Mark a tool's exceptions as errors, because the library passes on only their text."""

    @functools.wraps(function)
    def run(*args: Any, **arguments: Any) -> Any:
        try:
            return function(*args, **arguments)
        except ToolError as error:
            raise ToolError(f"Error: {error}") from error

    return run


def drive(script: Script, url: str, page: Any) -> None:
    page.run("before")
    asyncio.run(_talk(script, url, page))


async def _talk(script: Script, url: str, page: Any) -> None:
    memories: dict[str, Any] = {}
    tools = [FunctionTool.from_defaults(_failing_aloud(each)) for each in script.functions()]
    for talk, user in script.interleaved():
        CURRENT.set(talk["id"])
        model = OpenAILike(
            model=talk["id"], api_base=url, api_key="none", is_chat_model=True, is_function_calling_model=True
        )
        agent = FunctionAgent(name="desk", tools=tools, llm=model, system_prompt=talk["system"], streaming=False)
        memory = memories.setdefault(talk["id"], ChatMemoryBuffer.from_defaults(token_limit=10**9))
        with using_session(talk["id"]):
            await agent.run(user, memory=memory, max_iterations=40)
    await page.run_async("after", memories=memories)
