"""Microsoft's Agent Framework: cards and approvals, many sessions at once, handovers, and who is speaking."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent, AgentSession, Message, tool
from agent_framework.openai import OpenAIChatCompletionClient

from bylaw.integrations.agent_framework import ShieldMiddleware
from bylaw.shield import Shield
from tests.integrations.rental import CUSTOMER, PUT_EXTEND, Rentals, desk
from tests.integrations.shop import start_model
from tests.integrations.talks import LOOK, WRITE, check_apart, check_approval, check_card, check_principals, lines


class Sessions:
    """Sessions of the desk; the model of each is named as the session is."""

    def __init__(self, folder: Path, shield: Shield, rentals: Rentals, context: Any, *talks: dict[str, Any]) -> None:
        self.rentals, self.sessions = rentals, dict[str, AgentSession]()
        self.url = start_model(folder, *talks)[1]
        self.guard = ShieldMiddleware(shield, context=context)

    def agent(self, name: str, **given: Any) -> Agent:
        client = OpenAIChatCompletionClient(model=name, base_url=self.url, api_key="none")
        return Agent(client=client, name=name, tools=self.tools(), middleware=[*self.guard.all], **given)

    def tools(self) -> list[Any]:
        return [self.rentals.get_rental, self.rentals.extend_rental]

    async def say(self, conversation: str, text: Any, user: str = "C1", agent: str = "") -> Any:
        session = self.sessions.setdefault(conversation, AgentSession(session_id=conversation))
        session.state["signed_in"] = user
        return await self.agent(agent or conversation).run(text, session=session)


def test_the_users_answer_to_a_card_is_a_confirmation(tmp_path: Path) -> None:
    asyncio.run(check_card(Sessions, tmp_path))


def test_a_persons_answer_is_an_approval(tmp_path: Path) -> None:
    asyncio.run(check_approval(Sessions, tmp_path))


def test_many_conversations_at_once_are_kept_apart(tmp_path: Path) -> None:
    asyncio.run(check_apart(Sessions, tmp_path, asyncio.gather))


def test_a_yes_of_one_principal_is_not_anothers(tmp_path: Path) -> None:
    context = lambda session: {"signed_in_as": session.state["signed_in"]}  # noqa: E731
    asyncio.run(check_principals(Sessions, tmp_path, context))


def test_an_agent_that_goes_on_in_the_session_of_another_is_held(tmp_path: Path) -> None:
    rentals = Rentals()
    front = lines("front", "Let me hand you over.")
    back = lines("specialist", LOOK, WRITE, PUT_EXTEND, WRITE, "Done.")
    team = Sessions(tmp_path, desk(tmp_path), rentals, CUSTOMER, front, back)
    asyncio.run(team.say("c1", "Extend R1", agent="front"))
    asyncio.run(team.say("c1", "Hello?", agent="specialist"))
    assert rentals.ran == []
    asyncio.run(team.say("c1", "Yes, please.", agent="specialist"))
    assert rentals.ran == ["extend R1"]


@pytest.mark.parametrize("where", ["here", "here, with a log", "elsewhere, with a log"])
def test_a_call_that_was_interrupted_goes_on(tmp_path: Path, where: str) -> None:
    rentals, shield = Rentals(), desk(tmp_path, log=tmp_path / "log.sqlite" if "log" in where else None)
    said = lines("c1", LOOK, PUT_EXTEND, WRITE, "Done.")

    class Approved(Sessions):
        def tools(self) -> list[Any]:
            return [rentals.get_rental, tool(rentals.extend_rental, approval_mode="always_require")]

    talk = Approved(tmp_path, shield, rentals, CUSTOMER, said)

    async def run() -> Any:
        await talk.say("c1", "Extend R1")
        return await talk.say("c1", "Yes, please.")

    (asked,) = asyncio.run(run()).user_input_requests
    assert rentals.ran == []
    if "elsewhere" in where:
        talk.guard = ShieldMiddleware(shield, context=CUSTOMER)
        kept = json.loads(json.dumps(talk.sessions["c1"].to_dict()))
        talk.sessions["c1"] = AgentSession.from_dict(kept)
    answer = Message(role="user", contents=[asked.to_function_approval_response(approved=True)])
    asyncio.run(talk.say("c1", answer))
    assert rentals.ran == ["extend R1"]
