"""A client that tells nothing of what is said: the user is asked by elicitation, or a person by an approval."""

import re
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastmcp", reason="needs the extra `mcp`")

from fastmcp import FastMCP
from mcp import Client
from mcp_types import ElicitResult

from bylaw.integrations.mcp import proxy
from bylaw.policy.tool import ApprovalTerms, Postures
from bylaw.record.verify import verify
from tests.integrations.rental import CUSTOMER, EXTEND, REFUND, Rentals, desk

pytestmark = pytest.mark.anyio
KEY = {"bylaw/conversation": "c1"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["legacy", "2026-07-28"])
def mode(request: pytest.FixtureRequest) -> str:
    """The protocol in which a server asks its client, and that in which it only answers."""
    return request.param


class User:
    """Answers what is put to them, in order; None for a form that is closed without an answer."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def elicit(self, _: Any, params: Any) -> Any:
        self.asked.append(params.message)
        answer = self.answers.pop(0)
        if answer is None:
            return ElicitResult(action="cancel")
        if answer is False:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content={"agree": True} if answer is True else {"answer": answer})


def rentals() -> tuple[Rentals, Any]:
    tools, server = Rentals(), FastMCP("rentals")
    for tool in (tools.get_rental, tools.extend_rental, tools.refund):
        server.tool(tool)
    return tools, server


def told(result: Any) -> str:
    return "\n".join(part.text for part in result.content)


async def test_the_user_is_asked_once_by_a_card_and_their_yes_lets_the_call_run(tmp_path: Path, mode: str) -> None:
    user, (tools, server) = User(True, True), rentals()
    with desk(tmp_path, log=tmp_path / "log.db") as shield:
        between = proxy(shield, server, context=CUSTOMER)
        async with Client(between._mcp_server, mode=mode, elicitation_callback=user.elicit) as client:
            await client.call_tool("get_rental", {"rental_id": "R1"}, meta=KEY)
            done = await client.call_tool("extend_rental", EXTEND, meta=KEY)
            assert (done.is_error, tools.ran) == (False, ["extend R1"]), told(done)
            assert len(user.asked) == 1
            assert "2026-11-20" in user.asked[0]
            # Spent: another one is asked for again.
            await client.call_tool("get_rental", {"rental_id": "R1"}, meta=KEY)
            await client.call_tool("extend_rental", {**EXTEND, "new_end": "2026-11-25"}, meta=KEY)
            assert len(user.asked) == 2
        assert shield.log is not None
        assert shield.log.approvals("default") == []
        assert verify(shield.log.journal.store, "default").faults == ()


async def test_a_no_is_a_no_and_nobody_is_asked_on(tmp_path: Path, mode: str) -> None:
    user, (tools, server) = User(False), rentals()
    with desk(tmp_path, log=tmp_path / "log.db") as shield:
        between = proxy(shield, server, context=CUSTOMER)
        async with Client(between._mcp_server, mode=mode, elicitation_callback=user.elicit) as client:
            await client.call_tool("get_rental", {"rental_id": "R1"}, meta=KEY)
            refused = await client.call_tool("extend_rental", EXTEND, meta=KEY)
            assert (refused.is_error, tools.ran, len(user.asked)) == (True, [], 1)


async def test_after_a_no_another_spelling_is_not_put_to_the_user(tmp_path: Path, mode: str) -> None:
    user, (tools, server) = User(False, True), rentals()
    with desk(tmp_path, log=tmp_path / "log.db") as shield:
        between = proxy(shield, server, context=CUSTOMER)
        async with Client(between._mcp_server, mode=mode, elicitation_callback=user.elicit) as client:
            await client.call_tool("get_rental", {"rental_id": "R1"}, meta=KEY)
            await client.call_tool("extend_rental", EXTEND, meta=KEY)
            assert len(user.asked) == 1
            refused = await client.call_tool("extend_rental", {**EXTEND, "new_end": "2026-11-20 "}, meta=KEY)
            assert (refused.is_error, tools.ran, len(user.asked)) == (True, [], 1)
            done = await client.call_tool("extend_rental", {**EXTEND, "new_end": "2026-11-21"}, meta=KEY)
            assert (done.is_error, tools.ran, len(user.asked)) == (False, ["extend R1"], 2), told(done)


async def test_where_only_cards_are_heard_a_no_says_when_the_user_is_asked_again(tmp_path: Path, mode: str) -> None:
    user, (tools, server) = User(False, True), rentals()
    ahead = [0.0]
    with desk(tmp_path, log=tmp_path / "log.db", clock=lambda: time.time() + ahead[0]) as shield:
        between = proxy(shield, server, context=CUSTOMER)
        async with Client(between._mcp_server, mode=mode, elicitation_callback=user.elicit) as client:
            await client.call_tool("get_rental", {"rental_id": "R1"}, meta=KEY)
            refused = ""
            for _ in range(2):
                refused = told(await client.call_tool("extend_rental", EXTEND, meta=KEY))
                assert "the user said no to this call" in refused
                assert "changes their mind" not in refused
                assert (tools.ran, len(user.asked)) == ([], 1)
            (when,) = re.findall(r"again before (\S+ \S+) UTC", refused)
            ahead[0] = datetime.fromisoformat(f"{when}+00:00").timestamp() - time.time()
            await client.call_tool("get_rental", {"rental_id": "R1"}, meta=KEY)
            done = await client.call_tool("extend_rental", EXTEND, meta=KEY)
            assert (done.is_error, tools.ran, len(user.asked)) == (False, ["extend R1"], 2), told(done)


async def test_a_form_sent_without_its_answer_is_neither_a_yes_nor_the_users_no(tmp_path: Path, mode: str) -> None:
    user, (tools, server) = User("sure", True), rentals()
    with desk(tmp_path, log=tmp_path / "log.db") as shield:
        between = proxy(shield, server, context=CUSTOMER)
        async with Client(between._mcp_server, mode=mode, elicitation_callback=user.elicit) as client:
            await client.call_tool("get_rental", {"rental_id": "R1"}, meta=KEY)
            refused = await client.call_tool("extend_rental", EXTEND, meta=KEY)
            assert (refused.is_error, tools.ran) == (True, [])
            assert "said no" not in told(refused)
            done = await client.call_tool("extend_rental", EXTEND, meta=KEY)
            assert (done.is_error, tools.ran) == (False, ["extend R1"]), told(done)


async def test_what_only_the_user_can_say_is_asked_in_a_form(tmp_path: Path, mode: str) -> None:
    user, (tools, server) = User("The car was dirty.", True), rentals()
    with desk(tmp_path, log=tmp_path / "log.db") as shield:
        between = proxy(shield, server, context=CUSTOMER)
        async with Client(between._mcp_server, mode=mode, elicitation_callback=user.elicit) as client:
            await client.call_tool("get_rental", {"rental_id": "R1"}, meta=KEY)
            done = await client.call_tool("refund", REFUND, meta=KEY)
            assert (done.is_error, tools.ran) == (False, ["refund 20.00"]), told(done)
            assert user.asked[0] == "Why does the customer want the money back?"
            assert len(user.asked) == 2


@pytest.mark.parametrize("asks", [True, False])
async def test_where_the_user_does_not_answer_a_person_may_if_the_pack_lets_one(
    tmp_path: Path, mode: str, asks: bool
) -> None:
    user, (tools, server) = User(None), rentals()
    firmness = Postures(approval=ApprovalTerms(stands_in=("confirm",)))
    with desk(tmp_path, log=tmp_path / "log.db", postures=firmness) as shield:
        between = proxy(shield, server, context=CUSTOMER)
        answering = {"elicitation_callback": user.elicit} if asks else {}
        async with Client(between._mcp_server, mode=mode, **answering) as client:
            await client.call_tool("get_rental", {"rental_id": "R1"}, meta=KEY)
            refused = await client.call_tool("extend_rental", EXTEND, meta=KEY)
            assert (refused.is_error, tools.ran, len(user.asked)) == (True, [], int(asks))
            assert shield.log is not None
            (waiting,) = shield.log.approvals("default")
            assert f"The request is `{waiting.id}`" in told(refused)
            assert "Ask the user" not in told(refused)
            shield.log.approve(waiting.id, by="lena")
            user.answers = [None]
            done = await client.call_tool("extend_rental", EXTEND, meta=KEY)
            assert (done.is_error, tools.ran) == (False, ["extend R1"]), told(done)


async def test_where_nobody_can_be_asked_the_agent_is_told_so_once(tmp_path: Path, mode: str) -> None:
    tools, server = rentals()
    with desk(tmp_path) as shield:
        async with Client(proxy(shield, server, context=CUSTOMER)._mcp_server, mode=mode) as client:
            blind = await client.call_tool("extend_rental", EXTEND, meta=KEY)
            assert "Look up: get_rental" in told(blind)
            await client.call_tool("get_rental", {"rental_id": "R1"}, meta=KEY)
            refused = await client.call_tool("extend_rental", EXTEND, meta=KEY)
            assert (refused.is_error, tools.ran) == (True, [])
            assert "does not reach this check, so do not try again" in told(refused)
            assert "Ask the user" not in told(refused)


async def test_with_a_log_a_write_that_the_user_cannot_confirm_waits_for_a_person(tmp_path: Path, mode: str) -> None:
    tools, server = rentals()
    with desk(tmp_path, log=tmp_path / "log.db") as shield:
        async with Client(proxy(shield, server, context=CUSTOMER)._mcp_server, mode=mode) as client:
            await client.call_tool("get_rental", {"rental_id": "R1"}, meta=KEY)
            filed = await client.call_tool("extend_rental", EXTEND, meta=KEY)
            assert shield.log is not None
            (waiting,) = shield.log.approvals("default")
            assert f"The request is `{waiting.id}`" in told(filed)
            assert tools.ran == []
            shield.log.approve(waiting.id, by="lena")
            assert not (await client.call_tool("extend_rental", EXTEND, meta=KEY)).is_error
            assert tools.ran == ["extend R1"]
            told_of = {**KEY, "bylaw/messages": [{"role": "user", "content": "Extend R1"}]}
            await client.call_tool("get_rental", {"rental_id": "R1"}, meta=told_of)
            again = await client.call_tool("extend_rental", EXTEND, meta={**KEY, "bylaw/messages": []})
            assert "Please confirm" in told(again), "a client that tells what is said can ask its user"
