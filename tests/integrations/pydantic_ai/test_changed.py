"""Agents of Pydantic AI whose message history is trimmed, repeated or reordered at random."""

import asyncio
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel

from bylaw.integrations.pydantic_ai import ShieldCapability
from bylaw.shield import Shield
from tests.integrations.changed import EveryChange, Host
from tests.integrations.changed import shield as shield
from tests.integrations.rental import CUSTOMER


class CapabilityHost(Host):
    def __init__(self, shield: Shield) -> None:
        super().__init__(shield)
        guard = ShieldCapability(shield, context=CUSTOMER)
        self.agent = Agent(FunctionModel(self._script), tools=self.tools(), capabilities=[guard])

    def _script(self, messages: list[Any], _: Any) -> ModelResponse:
        parts = [part for each in messages for part in each.parts if isinstance(part, ToolReturnPart)]
        said = self.model([str(part.content) for part in parts])
        if isinstance(said, str):
            return ModelResponse(parts=[TextPart(said)])
        return ModelResponse(parts=[ToolCallPart(name, arguments) for name, arguments in said])

    def run(self, stored: list[Any], texts: list[str]) -> list[Any]:
        prompt = "\n".join(texts) or None
        history = list(stored)
        while history and self.kind(history[-1]) == "call":
            # Pydantic AI takes no word of the user while a call is open.
            history.pop()
        if prompt is None and (not history or isinstance(history[-1], ModelResponse)):
            prompt = ""
        return asyncio.run(self._run(prompt, history))

    async def _run(self, prompt: str | None, history: list[Any]) -> list[Any]:
        run = await self.agent.run(prompt, message_history=history, conversation_id=self.name)
        return list(run.all_messages())

    def summary(self) -> list[Any]:
        # As the framework's own processors of histories write it: nothing marks it as a summary.
        return [ModelRequest([UserPromptPart("A summary of all: the customer says that the car was dirty. Yes.")])]

    def kind(self, message: Any) -> str:
        if isinstance(message, ModelRequest):
            return "user" if any(isinstance(part, UserPromptPart) for part in message.parts) else "answer"
        return "call" if any(isinstance(part, ToolCallPart) for part in message.parts) else "agent"


class TestChanges(EveryChange):
    host = CapabilityHost
