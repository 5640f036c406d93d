"""Calls that stop halfway: a server that asks for more before it goes on, and a call that goes on in another proxy."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastmcp", reason="needs the extra `mcp`")

import msgspec
from mcp import Client
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.request_state import RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult

from bylaw.integrations.mcp import proxy
from bylaw.record.verify import verify
from bylaw.shield import Shield
from bylaw.trace import Call
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, Rentals, desk

pytestmark = pytest.mark.anyio
KEY = "k" * 32
YES = {
    "bylaw/conversation": "c1",
    "bylaw/messages": [
        {"role": "user", "content": "Please keep my car until 2026-11-20."},
        {"role": "assistant", "content": PUT_EXTEND},
        {"role": "user", "content": "Yes"},
    ],
}
QUESTION = ElicitRequest(
    params=ElicitRequestFormParams(
        message="Shall the desk call you?",
        requested_schema={"type": "object", "properties": {"call": {"type": "boolean"}}},
    )
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def asking_desk(security: RequestStateSecurity | None = None) -> tuple[Rentals, Any]:
    """The desk, which asks something itself before it extends a rental."""
    tools = Rentals()
    server = MCPServer("desk", request_state_security=security)
    server.tool()(tools.get_rental)

    @server.tool()
    async def extend_rental(rental_id: str, new_end: str, ctx: Context) -> str | InputRequiredResult:
        """Extend a rental to a new last day."""
        if ctx.input_responses is None:
            return InputRequiredResult(input_requests={"call": QUESTION}, request_state="what the desk remembers")
        assert ctx.request_state == "what the desk remembers"
        assert list(ctx.input_responses) == ["call"]
        return tools.extend_rental(rental_id, new_end)

    return tools, server


def client_of(shield: Shield, server: Any, key: str = KEY, **answering: Any) -> Client:
    between = proxy(shield, server, context=CUSTOMER, state_key=key)
    return Client(between._mcp_server, mode="2026-07-28", **answering)


async def extended(client: Client, **round: Any) -> Any:
    """One round of the call, as a host does it that keeps what it needs for the next one."""
    return await client.session.call_tool("extend_rental", EXTEND, meta=YES, allow_input_required=True, **round)


def answered(asked: Any) -> dict[str, Any]:
    agreed = ElicitResult(action="accept", content={"call": True})
    return {"input_responses": {"call": agreed}, "request_state": asked.request_state}


def decisions(shield: Shield) -> list[str]:
    assert shield.log is not None
    bodies = [entry.body for entry in shield.log.conversation("default", "c1") if entry.kind == "decision"]
    told = [msgspec.json.decode(body) for body in bodies if body is not None]
    return [f"{each['tool']} {each.get('repeats', '')}".strip() for each in told]


async def test_an_interrupted_call_is_the_same_call_when_it_goes_on(tmp_path: Path) -> None:
    asked: list[str] = []

    async def elicit(_: Any, params: Any) -> Any:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"call": True})

    tools, server = asking_desk()
    with desk(tmp_path, log=tmp_path / "log.db") as shield:
        async with client_of(shield, server, elicitation_callback=elicit) as client:
            await client.call_tool("get_rental", {"rental_id": "R1"}, meta=YES)
            done = await client.call_tool("extend_rental", EXTEND, meta=YES)
            assert (done.is_error, tools.ran, asked) == (False, ["extend R1"], ["Shall the desk call you?"])
            assert decisions(shield)[1:] == ["extend_rental", "extend_rental interrupted", "extend_rental resumed"]
            # One yes is one write: for another one the user is asked by a card, and gives none.
            await client.call_tool("get_rental", {"rental_id": "R1"}, meta=YES)
            assert (await client.call_tool("extend_rental", EXTEND, meta=YES)).is_error
            assert len(asked) == 2
        calls = [each for each in shield.session("c1").trajectory().events if isinstance(each, Call)]
        assert [each.refused for each in calls] == [False, False, False, True, True]
        assert shield.log is not None
        assert verify(shield.log.journal.store, "default").faults == ()


async def test_it_goes_on_in_another_proxy_and_in_one_only(tmp_path: Path) -> None:
    tools, server = asking_desk(RequestStateSecurity(keys=[KEY]))
    log = tmp_path / "log.db"
    with desk(tmp_path, log=log) as one, desk(tmp_path, log=log) as two, desk(tmp_path, log=log) as three:
        async with client_of(one, server) as first:
            await first.call_tool("get_rental", {"rental_id": "R1"}, meta=YES)
            asked = await extended(first)
            assert isinstance(asked, InputRequiredResult)
            assert tools.ran == []
        async with client_of(two, server) as second:
            done = await extended(second, **answered(asked))
            assert isinstance(done, CallToolResult)
            assert (done.is_error, tools.ran) == (False, ["extend R1"]), done
        async with client_of(three, server) as third:
            # Sent once more, to another one: its yes is spent.
            again = await extended(third, **answered(asked))
            assert isinstance(again, CallToolResult)
            assert (again.is_error, tools.ran) == (True, ["extend R1"])


async def test_what_travels_with_the_client_cannot_be_changed(tmp_path: Path) -> None:
    tools, server = asking_desk()
    with desk(tmp_path, log=tmp_path / "log.db") as shield:
        async with client_of(shield, server) as client:
            await client.call_tool("get_rental", {"rental_id": "R1"}, meta=YES)
            asked = await extended(client)
            round = answered(asked)
            other = {**EXTEND, "new_end": "2026-12-24"}
            with pytest.raises(MCPError, match="requestState"):
                await client.session.call_tool("extend_rental", other, meta=YES, allow_input_required=True, **round)
            for forged in ('bylaw:{"call": "x"}', asked.request_state[:-2]):
                with pytest.raises(MCPError, match="requestState"):
                    await extended(client, **{**round, "request_state": forged})
        async with client_of(shield, server, key="x" * 32) as stranger:
            with pytest.raises(MCPError, match="requestState"):
                await extended(stranger, **round)
    assert tools.ran == []


async def test_a_call_is_decided_anew_where_the_user_has_spoken_since(tmp_path: Path) -> None:
    tools, server = asking_desk()
    with desk(tmp_path, log=tmp_path / "log.db") as shield:
        async with client_of(shield, server) as client:
            await client.call_tool("get_rental", {"rental_id": "R1"}, meta=YES)
            asked = await extended(client)
            since = [*YES["bylaw/messages"], {"role": "user", "content": "No, wait."}]
            refused = await client.session.call_tool(
                "extend_rental",
                EXTEND,
                meta={**YES, "bylaw/messages": since},
                allow_input_required=True,
                **answered(asked),
            )
    assert isinstance(refused, CallToolResult)
    assert (refused.is_error, tools.ran) == (True, [])
