"""What a server asks of its client, and tells it, goes through the proxy both ways, over pipes and over HTTP."""

import contextlib
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastmcp", reason="needs the extra `mcp`")

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import CreateMessageResult, ListRootsResult, Root, TextContent

from tests.integrations.mcp_place import KEY, Place
from tests.integrations.test_mcp import free_port, listening

pytestmark = [pytest.mark.process, pytest.mark.anyio]
EVERY = {"sampling", "roots", "log", "progress", "list_changed"}
TALKER = Path(__file__).with_name("mcp_talker.py")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Heard:
    """A client's user, model and screen."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []

    async def sample(self, _: Any, params: Any) -> Any:
        self.heard.append(("sampling", params.messages[0].content.text))
        return CreateMessageResult(role="assistant", content=TextContent(type="text", text="short"), model="tiny")

    async def roots(self, _: Any) -> Any:
        self.heard.append(("roots", None))
        return ListRootsResult(roots=[Root(uri="file:///tmp")])

    async def log(self, params: Any) -> None:
        self.heard.append(("log", params.data))

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        self.heard.append(("progress", (done, total, message)))

    async def message(self, message: Any) -> None:
        if type(message).__name__ == "ToolListChangedNotification":
            self.heard.append(("list_changed", None))


@pytest.mark.parametrize(("down", "up"), [("stdio", "stdio"), ("http", "http"), ("stdio", "http"), ("http", "stdio")])
async def test_what_a_server_asks_and_tells_reaches_the_client(tmp_path: Path, down: str, up: str) -> None:
    place, heard = Place(tmp_path), Heard()
    server = [sys.executable, str(TALKER), str(tmp_path / "ran.txt")]
    with contextlib.ExitStack() as stack:
        options, tail = (), ["--", *server]
        if up == "http":
            port = free_port()
            options = ("--url", stack.enter_context(listening([*server, str(port)], port)))
            tail = []
        where: Any
        if down == "http":
            port = free_port()
            where = stack.enter_context(listening(place.proxy(*options, "--listen", f"127.0.0.1:{port}", *tail), port))
        else:
            command = place.proxy(*options, *tail)
            where = StdioServerParameters(command=command[0], args=command[1:])
        async with Client(
            where,
            mode="legacy",
            sampling_callback=heard.sample,
            list_roots_callback=heard.roots,
            logging_callback=heard.log,
            message_handler=heard.message,
        ) as client:
            await client.list_tools()
            for _ in range(2):
                heard.heard.clear()
                answer = await client.call_tool(
                    "get_order", {"order_id": "7"}, meta=KEY, progress_callback=heard.progress
                )
                assert [part.text for part in answer.content] == ["tiny: short, 1 roots"], answer
                # What a server over HTTP tells beside its answer does not always arrive before the request has ended.
                wanted = EVERY if up == "stdio" else {"sampling", "roots"}
                for _ in range(50):
                    if {kind for kind, _ in heard.heard} >= wanted:
                        break
                    await anyio.sleep(0.1)
                assert {kind for kind, _ in heard.heard} >= wanted
                assert ("sampling", "long text") in heard.heard
                assert ("log", "a note") in heard.heard or up == "http"
                assert ("progress", (1.0, 2.0, "half")) in heard.heard or up == "http"
