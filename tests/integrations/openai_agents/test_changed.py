"""Agents of the OpenAI Agents SDK whose input items are trimmed, summarised, repeated or reordered at random."""

import asyncio
from typing import Any

from agents import Agent, Runner, function_tool, set_tracing_disabled

from bylaw.integrations.openai_agents import ShieldHooks
from bylaw.shield import Shield
from tests.integrations.changed import EveryChange, Host
from tests.integrations.changed import shield as shield
from tests.integrations.openai_agents.desk import Scripted
from tests.integrations.rental import CUSTOMER

set_tracing_disabled(True)


class AgentsHost(Host):
    def __init__(self, shield: Shield) -> None:
        super().__init__(shield)
        self.guard = ShieldHooks(shield.session(self.name, context=CUSTOMER))
        self.agent = Agent(name="desk", model=Scripted(self._script), tools=list(map(function_tool, self.tools())))

    def _script(self, items: list[Any]) -> Any:
        return self.model([str(each["output"]) for each in items if each.get("type") == "function_call_output"])

    def run(self, stored: list[Any], texts: list[str]) -> list[Any]:
        items = [*stored, *({"role": "user", "content": text} for text in texts)]
        return asyncio.run(Runner.run(self.guard.protect(self.agent), items, hooks=self.guard)).to_input_list()

    def kind(self, message: Any) -> str:
        kinds = {"function_call": "call", "function_call_output": "answer"}
        return kinds.get(message.get("type", ""), "user" if message.get("role") == "user" else "agent")

    def summary(self) -> list[Any]:
        return [{"type": "compaction", "id": "cmp_1", "encrypted_content": "the customer says yes"}]


class TestChanges(EveryChange):
    host = AgentsHost
