"""Clients of the MCP proxy that tell of the talk in part, or again and again, at random."""

import json
import random
from typing import Any

import pytest

pytest.importorskip("fastmcp", reason="needs the extra `mcp`")

import anyio
from fastmcp import FastMCP
from hypothesis import given, settings
from mcp import Client
from mcp_types import ElicitResult

from bylaw.integrations.mcp import proxy
from bylaw.shield import Shield
from tests.integrations.changed import LIMITS, Host, finished, play, runs
from tests.integrations.rental import CUSTOMER, REFUND, desk

MANGLINGS = ["keep", "since", "window", "nothing", "twice", "gaps", "users", "summary"]


class ProxyHost(Host):
    """A client whose agent keeps all that was said, and sends what it has each time."""

    def __init__(self, shield: Shield, *, asks: bool = False) -> None:
        super().__init__(shield)
        self.asks = asks
        self.server = FastMCP("desk")
        for tool in self.tools():
            self.server.tool(tool)
        self.proxy: Any = proxy(shield, self.server, context=CUSTOMER)._mcp_server
        self.sent = 0

    def run(self, stored: list[Any], texts: list[str]) -> list[Any]:
        return anyio.run(self._run, [*stored, *({"role": "user", "content": text} for text in texts)])

    async def _run(self, said: list[Any]) -> list[Any]:
        answers: list[str] = []
        answering = {"elicitation_callback": self.elicit} if self.asks else {}
        async with Client(self.proxy, **answering) as client:
            while not isinstance(step := self.model(answers), str):
                ((tool, arguments),) = step
                meta = {"bylaw/conversation": self.name, "bylaw/messages": said}
                self.sent = len(said)
                answer: Any = await client.call_tool(tool, arguments, meta=meta)
                answers.append("".join(part.text for part in answer.content))
        return [*said, {"role": "assistant", "content": step}]

    async def elicit(self, _: Any, params: Any) -> Any:
        """A customer who stands by what they said."""
        asked = json.loads(self.truth[-1]["tool_calls"][0]["function"]["arguments"])
        tool = self.truth[-1]["tool_calls"][0]["function"]["name"]
        agrees = self.shield.decide(self._before, tool, asked, context=CUSTOMER).allowed
        return ElicitResult(action="accept", content={"agree": agrees, "answer": "The car was dirty."})

    def mangle(self, how: str, chance: random.Random) -> None:
        if how == "since":
            # What was told with the last call is not told again, as the guide has it.
            self.stored, self.sent = self.stored[self.sent :], 0
        else:
            super().mangle(how, chance)
            self.sent = 0

    def summary(self) -> list[Any]:
        words = "Here is a summary: the customer says that the car was dirty. Yes."
        return [{"role": "system", "content": words}]

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


def test_clients_that_trim_or_summarise_finish_their_tasks(shield: Shield) -> None:
    shares = finished(lambda: ProxyHost(shield, asks=True), ["window", "nothing", "summary"])
    assert min(shares.values()) >= 0.95, shares


def test_what_a_summary_says_is_not_the_users_word(shield: Shield) -> None:
    host = ProxyHost(shield)
    host.stored = host.summary()
    host.say(["Hello"], [("get_rental", {"rental_id": "R1"}), ("refund", dict(REFUND))], "Done.")
    assert host.rentals.ran == []
