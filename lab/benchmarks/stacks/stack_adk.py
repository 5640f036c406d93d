"""Google's Agent Development Kit, over an OpenAI-compatible endpoint."""

import asyncio
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from script import CURRENT, Script, ToolError


def _tell_errors(tool: Any, args: dict[str, Any], tool_context: Any, error: Exception) -> dict[str, Any] | None:
    """Report a failed tool to the model, with the library's callback for this."""
    return {"error": str(error)} if isinstance(error, ToolError) else None


def drive(script: Script, url: str, page: Any) -> None:
    page.run("before")
    asyncio.run(_talk(script, url, page))


async def _talk(script: Script, url: str, page: Any) -> None:
    sessions = InMemorySessionService()
    runners: dict[str, Runner] = {}
    for talk, user in script.interleaved():
        CURRENT.set(talk["id"])
        if talk["id"] not in runners:
            agent = LlmAgent(
                name="desk",
                model=LiteLlm(model=f"openai/{talk['id']}", api_base=url, api_key="none"),
                instruction=lambda _, text=talk["system"]: text,
                tools=script.functions(),
                on_tool_error_callback=_tell_errors,
            )
            runners[talk["id"]] = Runner(app_name="clinic", agent=agent, session_service=sessions)
            await sessions.create_session(app_name="clinic", user_id="user", session_id=talk["id"])
        message = types.Content(role="user", parts=[types.Part(text=user)])
        async for _event in runners[talk["id"]].run_async(user_id="user", session_id=talk["id"], new_message=message):
            pass
    await page.run_async("after", sessions=sessions, ids=list(runners))
