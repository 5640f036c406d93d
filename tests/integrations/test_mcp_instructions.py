"""The proxy offers the shield's instructions after those of the server."""

from concurrent.futures import Future
from pathlib import Path

import pytest

pytest.importorskip("fastmcp", reason="needs the extra `mcp`")

from fastmcp import Client, FastMCP

from bylaw.integrations.mcp import proxy
from bylaw.policy.tool import Postures
from bylaw.shield import Shield
from tests.integrations.shop import write_pack

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def shown(shield: Shield | Future[Shield], own: str | None) -> str:
    async with Client(proxy(shield, FastMCP("shop", instructions=own))) as client:
        return client.instructions or ""


@pytest.mark.parametrize("own", [None, "Be kind."])
async def test_they_follow_those_of_the_server(tmp_path: Path, own: str | None) -> None:
    shield = Shield(write_pack(tmp_path))
    assert await shown(shield, own) == "\n\n".join(filter(None, (own, shield.instructions(heard=False))))


async def test_they_are_there_if_the_pack_was_read_meanwhile(tmp_path: Path) -> None:
    loading = Future[Shield]()
    loading.set_result(Shield(write_pack(tmp_path)))
    assert "Look up first: `get_order(order_id)`" in await shown(loading, "Be kind.")


async def test_a_pack_that_cannot_be_read_leaves_those_of_the_server() -> None:
    loading = Future[Shield]()
    loading.set_exception(RuntimeError("no such pack"))
    assert await shown(loading, "Be kind.") == "Be kind."


async def test_an_agent_in_the_shadow_is_told_nothing(tmp_path: Path) -> None:
    assert await shown(Shield(write_pack(tmp_path), postures=Postures("shadow")), "Be kind.") == "Be kind."
