"""The proxy within one process: what several proxies on one log, a shield that fails and a hung call come to."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastmcp", reason="needs the extra `mcp`")

import anyio
from fastmcp import Client, FastMCP
from fastmcp.exceptions import McpError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from bylaw.integrations.guard import Followers
from bylaw.integrations.mcp import proxy
from bylaw.integrations.mcp_result import never_ran
from bylaw.policy.tool import Postures
from bylaw.shield import Shield
from tests.engine.test_conversation import FILES
from tests.integrations.shop import write_pack

pytestmark = pytest.mark.anyio
KEY = {"bylaw/conversation": "c1"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Shop:
    """A server whose orders were all returned; `hangs` is the order whose look-up waits until it is let go."""

    def __init__(self, hangs: str = "") -> None:
        self.server = FastMCP("shop")
        self.ran: list[str] = []
        self.asked, self.go_on = anyio.Event(), anyio.Event()

        @self.server.tool
        def refund(order_id: str) -> str:
            self.ran.append(f"refund {order_id}")
            return "refunded"

        @self.server.tool
        async def get_order(order_id: str) -> dict[str, Any]:
            self.ran.append(f"get_order {order_id}")
            if order_id == hangs:
                self.asked.set()
                await self.go_on.wait()
            return {"order_id": order_id, "returned": True}


async def call(client: Any, tool: str, order: str, **meta: Any) -> Any:
    return await client.call_tool(tool, {"order_id": order}, raise_on_error=False, meta={**KEY, **meta})


async def test_two_proxies_on_one_log_share_a_conversation(tmp_path: Path) -> None:
    shop, pack, log = Shop(hangs="1"), write_pack(tmp_path), tmp_path / "log.db"
    answers: list[Any] = []
    with Shield(pack, log=log) as one, Shield(pack, log=log) as two:
        async with Client(proxy(one, shop.server)) as first, Client(proxy(two, shop.server)) as second:

            async def ask(client: Any, tool: str, order: str) -> None:
                answers.append(await call(client, tool, order))

            async with anyio.create_task_group() as group:
                # The first call of one proxy is open while the other, which begins to count as well, makes its own.
                group.start_soon(ask, first, "get_order", "1")
                await shop.asked.wait()
                for order in ("2", "3"):
                    await ask(second, "get_order", order)
                await ask(second, "refund", "3")
                shop.go_on.set()
            await ask(first, "refund", "1")
    assert [answer.is_error for answer in answers] == [False] * 5, [answer.content[0].text for answer in answers]
    with Shield(pack, log=log) as shield:
        entries = shield.log.conversation("default", "c1") if shield.log else []
    assert sum(entry.kind == "decision" for entry in entries) == 5 == len(shop.ran)


@pytest.mark.parametrize(("on_read_error", "runs"), [("deny", False), ("ask", False), ("allow", True)])
async def test_a_call_that_could_not_be_decided_goes_by_the_pack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_read_error: Any, runs: bool
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(Followers, "get", fail)
    shop = Shop()
    shield = Shield(write_pack(tmp_path), postures=Postures(on_read_error=on_read_error))
    async with Client(proxy(shield, shop.server)) as client:
        refused = await call(client, "refund", "7")
        assert refused.is_error
        assert "out of order" in refused.content[0].text
        assert "RuntimeError" not in refused.content[0].text
        read = await call(client, "get_order", "7")
        assert read.is_error is not runs
        if not runs:
            assert "out of order" in read.content[0].text
    assert shop.ran == (["get_order 7"] if runs else [])


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_crash_behind_a_write_is_no_refusal_and_an_unknown_tool_is(tmp_path: Path, is_known: bool) -> None:
    shop = FastMCP("shop")
    paid: list[str] = []

    @shop.tool
    def get_order(order_id: str) -> dict[str, Any]:
        return {"order_id": order_id, "returned": True}

    def refund(order_id: str) -> str:
        paid.append(order_id)
        raise TypeError("Object of type Decimal is not JSON serializable")

    if is_known:
        shop.tool(refund)
    files = {**FILES, "tools.yaml": FILES["tools.yaml"].replace("changes: []", "changes: [Order.returned]")}
    async with Client(proxy(Shield(write_pack(tmp_path, files)), shop)) as client:
        await call(client, "get_order", "7")
        told = [(await call(client, "refund", "7")).content[0].text for _ in range(3)]
    assert paid == (["7"] if is_known else [])
    assert ("May have been done (refund)" in told[-1] and "Look up: get_order" in told[-1]) is is_known


@pytest.mark.parametrize(
    ("error", "is_sure"),
    [
        (McpError(code=INVALID_PARAMS, message="order_id is missing"), True),
        (McpError(code=INTERNAL_ERROR, message="no such order"), False),
        (TimeoutError(), False),
    ],
)
def test_only_the_protocol_says_that_a_tool_never_ran(error: Exception, is_sure: bool) -> None:
    assert never_ran(error) is is_sure
