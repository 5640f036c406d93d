"""Agents of the OpenAI Agents SDK whose input items are trimmed, summarised, repeated or reordered at random."""

import asyncio
from typing import Any

import pytest
from agents import Agent, Runner, function_tool, set_tracing_disabled
from hypothesis import given, settings

from bylaw.integrations.openai_agents import ShieldHooks
from bylaw.shield import Shield
from tests.integrations.changed import LIMITS, MANGLINGS, Host, finished, play, runs
from tests.integrations.openai_agents.desk import Scripted
from tests.integrations.rental import CUSTOMER, desk

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


@pytest.fixture(scope="module")
def shield(tmp_path_factory: pytest.TempPathFactory) -> Shield:
    return desk(tmp_path_factory.mktemp("changed"))


@settings(**LIMITS)
@given(steps=runs(MANGLINGS))
def test_no_write_runs_that_the_whole_history_would_refuse(shield: Shield, steps: list[Any]) -> None:
    play(AgentsHost(shield), steps)


def test_trimmed_and_summarised_agents_finish_their_tasks(shield: Shield) -> None:
    shares = finished(lambda: AgentsHost(shield), ["keep", "window", "nothing", "summary", "no_tools", "twice"])
    assert min(shares.values()) >= 0.95, shares
