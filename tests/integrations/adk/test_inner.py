"""Google ADK agents that are tools of other agents."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner, Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from bylaw.integrations.adk import ShieldPlugin
from tests.integrations.nested import ASKED, check_refused, model
from tests.integrations.rental import CUSTOMER, FILES, Rentals, desk


class Talk:
    def __init__(self, folder: Path, *, way: str = "agent tool", **given: Any) -> None:
        url = model(folder, argument="request", **given)
        self.rentals, shield = Rentals(), desk(folder)
        self.guard = ShieldPlugin(shield, context=CUSTOMER)
        inner = self.inner = LlmAgent(
            name="call_specialist",
            model=LiteLlm(model="openai/inner", api_base=url, api_key="none"),
            tools=[self.rentals.get_rental, self.rentals.refund],
        )
        tool = {
            "agent tool": lambda: AgentTool(inner),
            "agent tool without plugins": lambda: AgentTool(inner, include_plugins=False),
            "runner": lambda: by_hand(inner),
            "runner in a thread": lambda: in_thread(inner),
        }[way]()
        outer = LiteLlm(model="openai/outer", api_base=url, api_key="none")
        root = LlmAgent(name="desk", model=outer, tools=[tool])
        self.sessions = InMemorySessionService()
        self.runner = Runner(app=App(name="desk", root_agent=root, plugins=[self.guard]), session_service=self.sessions)

    async def say(self, *texts: str) -> Any:
        await self.sessions.create_session(app_name="desk", user_id="u", session_id="c1")
        for text in texts:
            message = types.Content(role="user", parts=[types.Part(text=text)])
            async for _ in self.runner.run_async(user_id="u", session_id="c1", new_message=message):
                pass
        return await self.sessions.get_session(app_name="desk", user_id="u", session_id="c1")


def by_hand(inner: LlmAgent) -> Any:
    """A function that runs an agent in a runner of its own, which knows of no shield."""
    runner = InMemoryRunner(agent=inner, app_name="inner")

    async def call_specialist(request: str) -> str:
        """Call the specialist."""
        session = await runner.session_service.create_session(app_name="inner", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text=request)])
        async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=message):
            pass
        return "done"

    return call_specialist


def in_thread(inner: LlmAgent) -> Any:
    runner = InMemoryRunner(agent=inner, app_name="inner")

    async def call_specialist(request: str) -> str:
        """Call the specialist."""
        session = await runner.session_service.create_session(app_name="inner", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text=request)])
        for _ in runner.run(user_id="u", session_id=session.id, new_message=message):
            pass
        return "done"

    return call_specialist


WAYS = ["agent tool", "agent tool without plugins", "runner", "runner in a thread"]


@pytest.fixture(autouse=True)
def request_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FILES, "tools.yaml", FILES["tools.yaml"].replace("{input: string}", "{request: string}"))


@pytest.mark.parametrize("way", WAYS)
def test_what_the_outer_agent_tells_the_inner_one_is_not_the_users_word(tmp_path: Path, way: str) -> None:
    talk = Talk(tmp_path, way=way)
    follower = talk.guard.follower(asyncio.run(talk.say("Hello")))
    assert follower is not None
    check_refused(follower.session, talk.rentals.ran)


@pytest.mark.parametrize("way", WAYS)
def test_the_users_yes_to_the_outer_agent_lets_the_inner_one_act_once(tmp_path: Path, way: str) -> None:
    talk = Talk(tmp_path, puts=True, way=way)
    asyncio.run(talk.say(ASKED, "Yes, please."))
    assert talk.rentals.ran == ["refund 20.00"]


def test_a_runner_that_no_shielded_tool_runs_is_left_alone(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    tool = by_hand(talk.inner)
    asyncio.run(tool("Hello"))
    assert talk.rentals.ran == ["refund 20.00", "refund 20.00"]
