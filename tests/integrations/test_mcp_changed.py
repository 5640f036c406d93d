"""Clients of the MCP proxy that tell of the talk in part, or again and again, at random."""

import random
from typing import Any

import pytest

pytest.importorskip("fastmcp", reason="needs the extra `mcp`")

import anyio
from fastmcp import Client, FastMCP
from hypothesis import given, settings

from bylaw.integrations.mcp import proxy
from bylaw.shield import Shield
from tests.integrations.changed import LIMITS, Host, finished, play, runs
from tests.integrations.rental import CUSTOMER, desk

MANGLINGS = ["keep", "since", "window", "nothing", "twice", "gaps", "users"]


class ProxyHost(Host):
    """A client whose agent keeps all that was said, and sends what it has each time."""

    def __init__(self, shield: Shield) -> None:
        super().__init__(shield)
        self.server = FastMCP("desk")
        for tool in self.tools():
            self.server.tool(tool)
        self.proxy = proxy(shield, self.server, context=CUSTOMER)
        self.sent = 0

    def run(self, stored: list[Any], texts: list[str]) -> list[Any]:
        return anyio.run(self._run, [*stored, *({"role": "user", "content": text} for text in texts)])

    async def _run(self, said: list[Any]) -> list[Any]:
        answers: list[str] = []
        async with Client(self.proxy) as client:
            while not isinstance(step := self.model(answers), str):
                ((tool, arguments),) = step
                meta = {"bylaw/conversation": self.name, "bylaw/messages": said}
                self.sent = len(said)
                answer: Any = await client.call_tool(tool, arguments, meta=meta, raise_on_error=False)
                answers.append("".join(part.text for part in answer.content))
        return [*said, {"role": "assistant", "content": step}]

    def mangle(self, how: str, chance: random.Random) -> None:
        if how == "since":
            # What was told with the last call is not told again, as the guide has it.
            self.stored, self.sent = self.stored[self.sent :], 0
        else:
            super().mangle(how, chance)
            self.sent = 0

    def kind(self, message: Any) -> str:
        return "user" if message["role"] == "user" else "agent"


@pytest.fixture(scope="module")
def shield(tmp_path_factory: pytest.TempPathFactory) -> Shield:
    return desk(tmp_path_factory.mktemp("changed"))


@settings(**LIMITS)
@given(steps=runs(MANGLINGS))
def test_no_write_runs_that_the_whole_history_would_refuse(shield: Shield, steps: list[Any]) -> None:
    play(ProxyHost(shield), steps)


def test_clients_that_tell_all_or_what_is_new_finish_their_tasks(shield: Shield) -> None:
    shares = finished(lambda: ProxyHost(shield), ["keep", "since", "twice"])
    assert min(shares.values()) >= 0.95, shares
