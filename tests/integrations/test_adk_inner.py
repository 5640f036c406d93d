"""Google ADK agents that are tools of other agents."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="needs the extra `adk`")
pytest.importorskip("litellm")

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from bylaw.integrations.adk import ShieldPlugin
from tests.integrations.nested import ASKED, check_refused, model
from tests.integrations.rental import CUSTOMER, FILES, Rentals, desk


class Talk:
    def __init__(self, folder: Path, *, include_plugins: bool = True, **given: Any) -> None:
        url = model(folder, argument="request", **given)
        self.rentals, shield = Rentals(), desk(folder)
        self.guard = ShieldPlugin(shield, context=CUSTOMER)
        inner = LlmAgent(
            name="ask_specialist",
            model=LiteLlm(model="openai/inner", api_base=url, api_key="none"),
            tools=[self.rentals.get_rental, self.rentals.refund],
        )
        tool = AgentTool(inner, include_plugins=include_plugins)
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


@pytest.fixture(autouse=True)
def request_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FILES, "tools.yaml", FILES["tools.yaml"].replace("{input: string}", "{request: string}"))


def test_what_the_outer_agent_tells_the_inner_one_is_not_the_users_word(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    follower = talk.guard.follower(asyncio.run(talk.say("Hello")))
    assert follower is not None
    check_refused(follower.session, talk.rentals.ran)


def test_the_users_yes_to_the_outer_agent_lets_the_inner_one_act_once(tmp_path: Path) -> None:
    talk = Talk(tmp_path, puts=True)
    asyncio.run(talk.say(ASKED, "Yes, please."))
    assert talk.rentals.ran == ["refund 20.00"]


def test_an_inner_agent_without_the_plugins_does_not_run(tmp_path: Path) -> None:
    talk = Talk(tmp_path, include_plugins=False)
    session = asyncio.run(talk.say("Hello"))
    assert "whose calls nobody decides on" in session.model_dump_json()
    assert talk.rentals.ran == []
