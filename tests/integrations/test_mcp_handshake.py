"""A client shakes hands while the pack is read or the server starts, and nothing runs before the shield is there."""

import json
import subprocess
import sys
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastmcp", reason="needs the extra `mcp`")

import anyio
from fastmcp import Client
from fastmcp.exceptions import McpError

from bylaw.errors import UsageError
from bylaw.integrations.mcp import proxy
from bylaw.shield import Shield
from tests.integrations.mcp_place import KEY, Place
from tests.integrations.shop import write_pack
from tests.integrations.test_mcp_in_process import Shop


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_handshake_does_not_wait_for_the_pack_and_a_call_does(tmp_path: Path, mode: str) -> None:
    shop, loading, answers = Shop(), Future[Shield](), list[Any]()
    async with Client(proxy(loading, shop.server), mode=mode) as client:

        async def refund() -> None:
            answers.append(await client.call_tool("refund", {"order_id": "3"}, raise_on_error=False, meta=KEY))

        async with anyio.create_task_group() as group:
            group.start_soon(refund)
            await anyio.sleep(0.3)
            assert not answers
            assert not shop.ran
            loading.set_result(Shield(write_pack(tmp_path)))
    assert answers[0].is_error, "nothing showed that it was returned"
    assert not shop.ran


@pytest.mark.anyio
async def test_a_pack_that_cannot_be_read_is_told_to_whoever_asks() -> None:
    shop, loading = Shop(), Future[Shield]()
    loading.set_exception(UsageError("there is no pack `shopp`"))
    async with Client(proxy(loading, shop.server)) as client:
        for _ in range(2):
            with pytest.raises(McpError, match="the proxy could not start: there is no pack `shopp`"):
                await client.call_tool("refund", {"order_id": "3"}, meta=KEY)
    assert not shop.ran


SLOW = """
import os, subprocess, sys, time
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
sys.exit(subprocess.call(sys.argv[2:]))
"""
"""A server that does not start before a file is there."""
DISCOVER: dict[str, Any] = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}
INITIALIZE: dict[str, Any] = {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}
}  # fmt: skip


@pytest.mark.process
@pytest.mark.parametrize(("method", "params"), [("initialize", INITIALIZE), ("server/discover", DISCOVER)])
def test_a_handshake_does_not_wait_for_a_server_that_starts_slowly(
    tmp_path: Path, method: str, params: dict[str, Any]
) -> None:
    place, may_start = Place(tmp_path), tmp_path / "start"
    command = [*place.proxy("--conversation", "c1"), "--", sys.executable, "-c", SLOW, str(may_start), *place.server()]
    # Were the server waited for, the test would not hang, but fail.
    last = threading.Timer(120, may_start.touch)
    last.daemon = True
    last.start()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(id: int, method: str, params: dict[str, Any]) -> Any:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode())
            process.stdin.write(b"\n")
            process.stdin.flush()
            while (answer := json.loads(process.stdout.readline())).get("id") != id:
                pass
            return answer

        assert "result" in ask(1, method, params)
        last.cancel()
        assert not may_start.exists(), "the handshake waited for the server"
        may_start.touch()
        meta = {"_meta": params["_meta"]} if method == "server/discover" else {}
        listed = ask(2, "tools/list", meta)
        assert [tool["name"] for tool in listed["result"]["tools"]] == ["get_order", "refund"]
        process.stdin.close()
    assert process.returncode == 0
