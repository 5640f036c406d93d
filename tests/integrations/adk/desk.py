"""The rental desk as an agent of Google's ADK, with a model that is a function of what it hears."""

import itertools
from collections.abc import AsyncGenerator, Callable
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

_ids = itertools.count(1)
Says = Callable[[list[Any]], str | list[tuple[str, dict[str, Any]]]]


class Scripted(BaseLlm):
    """Says what the script makes of the contents of a request."""

    model: str = "scripted"
    script: Any

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse]:
        said = self.script(llm_request.contents)
        if isinstance(said, str):
            parts = [types.Part(text=said)]
        else:
            parts = [types.Part(function_call=_call(name, arguments)) for name, arguments in said]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def _call(name: str, arguments: dict[str, Any]) -> types.FunctionCall:
    return types.FunctionCall(id=f"call_{next(_ids)}", name=name, args=arguments)


def results(contents: list[Any]) -> list[str]:
    """What tools answered, or the model was told in their place."""
    parts = [part for content in contents for part in content.parts or ()]
    told = [part.function_response.response for part in parts if part.function_response]
    return [str(each.get("result", each.get("error", each))) for each in told]


def said(text: str) -> types.Content:
    """What the user says."""
    return types.Content(role="user", parts=[types.Part(text=text)])


class Place:
    """Where an app keeps its sessions, and what may be done to them."""

    def __init__(self, plugin: Any, agent: Any, **app: Any) -> None:
        self.sessions = InMemorySessionService()
        self.runner = Runner(
            app=App(name="desk", root_agent=agent, plugins=[plugin], **app), session_service=self.sessions
        )

    async def session(self, name: str) -> Any:
        whose: Any = {"app_name": "desk", "user_id": "u", "session_id": name}
        return await self.sessions.get_session(**whose) or await self.sessions.create_session(**whose)

    async def keep(self, name: str, events: list[Any]) -> None:
        """Have a session hold these events and no others."""
        await self.session(name)
        self.sessions.sessions["desk"]["u"][name].events = list(events)

    async def say(self, name: str, message: types.Content, **given: Any) -> list[Any]:
        """A run of the agent; the events of the session afterwards."""
        await self.session(name)
        async for _ in self.runner.run_async(user_id="u", session_id=name, new_message=message, **given):
            pass
        return list((await self.session(name)).events)


def agent(script: Says, tools: list[Any], **given: Any) -> LlmAgent:
    """An agent whose model follows the script."""
    return LlmAgent(name=given.pop("name", "desk"), model=Scripted(script=script), tools=tools, **given)
