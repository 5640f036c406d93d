"""Operations that a user adds: the tools of a real MCP server, started as a process."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastmcp", reason="needs the extra `mcp`")

from bylaw import Shield
from bylaw.answering import Answerer
from bylaw.answering.mcp import McpServer
from bylaw.shield.decision import Decision

from .desk import Scripted, desk, reader

SERVER = Path(__file__).with_name("mcp_tools.py")


@pytest.fixture(scope="module", name="started")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[McpServer, Path]]:
    notes = tmp_path_factory.mktemp("mcp") / "notes"
    with McpServer([sys.executable, str(SERVER), str(notes)]) as server:
        yield server, notes


def decide(server: McpServer, tool: str, arguments: list[dict[str, str]], first: str) -> tuple[Decision, Scripted]:
    def answer(name: str, text: str) -> Any:
        if name == "plan" and "Predicate known" in text:
            return {"steps": [{"operation": "use", "name": "known", "tool": tool, "arguments": arguments}]}
        return reader(name, text)

    chat = Scripted(answer)
    with Shield(desk(), answers=Answerer(chat, operations=server.operations)).session() as session:
        session.user(first)
        session.agent("I would cancel order R-7. Shall I?")
        session.user("Yes.")
        return session.decide("cancel_order", {"order_id": "R-7"}), chat


OWNS = [{"name": "order_id", "value": "{order_id}"}, {"name": "history", "value": "{history}"}]


def test_a_tool_of_a_server_settles_a_predicate(started: tuple[McpServer, Path]) -> None:
    server, notes = started
    decision, chat = decide(server, "owns", OWNS, "Ada here, cancel R-7.")
    assert decision.answer == "allow"
    known = next(each for each in decision.answered if each.predicate == "known")
    assert (known.value, known.because, known.quotes[0].text) == (True, "by the register", "Ada")
    assert notes.read_text().splitlines()[-1] == "R-7 3", "the real tool ran, on the call's argument and the history"
    plan = next(text for name, text in chat.asked if name == "plan" and "known" in text)
    assert "`owns`: Whether whoever speaks owns the order, by the register. Arguments: order_id, history." in plan
    stranger, _ = decide(server, "owns", OWNS, "Bob here, cancel R-7.")
    assert stranger.answer == "deny"
    assert stranger.policies == ("stranger",)


@pytest.mark.parametrize(
    ("tool", "why"), [("fails", "fails failed: ToolError"), ("lies", "quotes text that is not in step 0")]
)
def test_a_tool_that_fails_or_quotes_what_nobody_said_settles_nothing(
    started: tuple[McpServer, Path], tool: str, why: str
) -> None:
    decision, _ = decide(started[0], tool, [], "Ada here, cancel R-7.")
    assert (decision.answer, decision.allowed) == ("ask", False)
    known = next(each for each in decision.answered if each.predicate == "known")
    assert known.value is None
    assert why in known.because
