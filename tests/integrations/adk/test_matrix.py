"""Google's ADK: cards and approvals, many sessions at once, agents that hand over, and who is speaking."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import FunctionTool
from google.genai import types

from bylaw.integrations.adk import ShieldPlugin
from bylaw.shield import Shield
from tests.integrations.rental import CUSTOMER, PUT_EXTEND, Rentals, desk
from tests.integrations.shop import start_model
from tests.integrations.talks import LOOK, WRITE, check_apart, check_approval, check_card, check_principals, lines


class Sessions:
    """ADK sessions of the desk; the model of each is named as the session is."""

    def __init__(self, folder: Path, shield: Shield, rentals: Rentals, context: Any, *talks: dict[str, Any]) -> None:
        self.rentals, self.sessions = rentals, InMemorySessionService()
        self.url = start_model(folder, *talks)[1]
        self.plugin = ShieldPlugin(shield, context=context)

    def model(self, name: str) -> LiteLlm:
        return LiteLlm(model=f"openai/{name}", api_base=self.url, api_key="none")

    def agent(self, conversation: str) -> LlmAgent:
        return LlmAgent(name="desk", model=self.model(conversation), tools=self.tools())

    def tools(self) -> list[Any]:
        return [self.rentals.get_rental, self.rentals.extend_rental]

    async def say(self, conversation: str, text: str, user: str = "C1") -> list[Any]:
        return await self.tell(conversation, types.Part(text=text), user)

    async def tell(self, conversation: str, part: types.Part, user: str = "C1") -> list[Any]:
        whose: Any = {"app_name": "desk", "user_id": "u", "session_id": conversation}
        if await self.sessions.get_session(**whose) is None:
            await self.sessions.create_session(**whose)
        app = App(name="desk", root_agent=self.agent(conversation), plugins=[self.plugin])
        runner = Runner(app=app, session_service=self.sessions)
        message = types.Content(role="user", parts=[part])
        run = runner.run_async(
            user_id="u", session_id=conversation, new_message=message, state_delta={"signed_in": user}
        )
        return [event async for event in run]


def test_the_users_answer_to_a_card_is_a_confirmation(tmp_path: Path) -> None:
    asyncio.run(check_card(Sessions, tmp_path))


def test_a_persons_answer_is_an_approval(tmp_path: Path) -> None:
    asyncio.run(check_approval(Sessions, tmp_path))


def test_many_conversations_at_once_are_kept_apart(tmp_path: Path) -> None:
    asyncio.run(check_apart(Sessions, tmp_path, asyncio.gather))


def test_a_yes_of_one_principal_is_not_anothers(tmp_path: Path) -> None:
    context = lambda session: {"signed_in_as": session.state["signed_in"]}  # noqa: E731
    asyncio.run(check_principals(Sessions, tmp_path, context))


class Team(Sessions):
    """A front desk that hands over to a specialist, who has the tools."""

    def agent(self, conversation: str) -> LlmAgent:
        specialist = super().agent("specialist").clone({"name": "specialist"})
        return LlmAgent(name="front", model=self.model("front"), sub_agents=[specialist])


def test_an_agent_that_is_handed_over_to_is_held(tmp_path: Path) -> None:
    desk(tmp_path)
    tools = tmp_path / "desk" / "tools.yaml"
    tools.write_text(tools.read_text() + "  transfer_to_agent: {effect: none, parameters: {agent_name: string}}\n")
    rentals = Rentals()
    front = lines("front", ("transfer_to_agent", {"agent_name": "specialist"}))
    back = lines("specialist", LOOK, WRITE, PUT_EXTEND, LOOK, WRITE, "Done.")
    team = Team(tmp_path, Shield(tmp_path / "desk"), rentals, CUSTOMER, front, back)
    asyncio.run(team.say("c1", "Extend R1"))
    assert rentals.ran == []
    asyncio.run(team.say("c1", "Yes, please."))
    assert rentals.ran == ["extend R1"]


@pytest.mark.parametrize("where", ["here", "here, with a log", "elsewhere, with a log"])
def test_a_call_that_was_interrupted_goes_on(tmp_path: Path, where: str) -> None:
    rentals, shield = Rentals(), desk(tmp_path, log=tmp_path / "log.sqlite" if "log" in where else None)

    class Confirmed(Sessions):
        def tools(self) -> list[Any]:
            return [rentals.get_rental, FunctionTool(rentals.extend_rental, require_confirmation=True)]

    talk = Confirmed(tmp_path, shield, rentals, CUSTOMER, lines("c1", LOOK, PUT_EXTEND, WRITE, "Done."))

    async def run() -> Any:
        await talk.say("c1", "Extend R1")
        events = await talk.say("c1", "Yes, please.")
        calls = [call for event in events for call in event.get_function_calls()]
        (asked,) = [call for call in calls if call.name == "adk_request_confirmation"]
        assert rentals.ran == []
        if "elsewhere" in where:
            talk.plugin = ShieldPlugin(shield, context=CUSTOMER)
        answer = types.FunctionResponse(id=asked.id, name=asked.name, response={"confirmed": True})
        await talk.tell("c1", types.Part(function_response=answer))

    asyncio.run(run())
    assert rentals.ran == ["extend R1"]
