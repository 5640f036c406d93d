"""The proxy: the event loop goes on while the log's database answers late."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastmcp", reason="needs the extra `mcp`")

import anyio
from fastmcp import Client

from bylaw.integrations.mcp import proxy
from bylaw.shield import Shield
from tests.integrations.shop import write_pack
from tests.integrations.slow_log import held_up, slow_log
from tests.integrations.test_mcp_in_process import Shop, call

pytestmark = pytest.mark.anyio
SAID = {"bylaw/messages": [{"role": "user", "content": "Refund order 7."}]}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("hides", [False, True])
async def test_the_loop_goes_on_while_the_log_is_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hides: bool
) -> None:
    shop = Shop()

    @shop.server.resource("shop://terms")
    def terms() -> str:
        return "Goods come back within a month."

    log = slow_log(tmp_path, monkeypatch)
    shield = Shield(write_pack(tmp_path), log=log)

    async def talk() -> None:
        async with Client(proxy(shield, shop.server, conversation="c1", hides=hides)) as client:
            await client.list_tools()
            await client.read_resource("shop://terms")
            answers: list[Any] = []

            async def ask(tool: str, order: str) -> None:
                answers.append(await call(client, tool, order, **SAID))

            async with anyio.create_task_group() as group:
                group.start_soon(ask, "get_order", "7")
                group.start_soon(ask, "get_order", "8")
            await ask("refund", "7")
            assert not any(each.is_error for each in answers), answers

    assert not await held_up(talk(), log)
    assert "refund 7" in shop.ran
