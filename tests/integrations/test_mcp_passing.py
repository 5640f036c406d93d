"""What a server asks of its client and tells it, and what the client asks and tells, goes through the proxy both ways,
over pipes and over HTTP, in the protocol with sessions and in the one without."""
# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastmcp", reason="needs the extra `mcp`")

import anyio
import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CreateMessageResult, ListRootsResult, Root, TextContent

from tests.integrations import ready
from tests.integrations.mcp_place import KEY, Place
from tests.integrations.test_mcp import free_port, listening

pytestmark = [
    pytest.mark.process,
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
WAYS = [("stdio", "stdio"), ("http", "http"), ("stdio", "http"), ("http", "stdio")]
TALKER = Path(__file__).with_name("mcp_talker.py")
STEPS = range(20)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Heard:
    """A client's user, model and screen."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []

    async def sample(self, context: Any, params: Any) -> Any:
        self.heard.append(("sampling", params.messages[0].content.text))
        if context.meta and (token := context.meta.get("progress_token")) is not None:
            await context.session.send_progress_notification(token, 1, 2, "thinking")
        return CreateMessageResult(role="assistant", content=TextContent(type="text", text="short"), model="tiny")

    async def roots(self, _: Any) -> Any:
        self.heard.append(("roots", None))
        return ListRootsResult(roots=[Root(uri="file:///tmp")])

    async def log(self, params: Any) -> None:
        self.heard.append(("log", params.data))

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        self.heard.append(("progress", (done, total, message)))

    async def message(self, message: Any) -> None:
        if type(message).__name__.endswith("ListChangedNotification"):
            self.heard.append((type(message).__name__, None))

    def of(self, kind: str) -> list[Any]:
        return [what for each, what in self.heard if each == kind]


@contextlib.asynccontextmanager
async def talking(tmp_path: Path, down: str, up: str, mode: str, heard: Heard) -> AsyncIterator[Client]:
    """A client behind the proxy: `down` is how it reaches the proxy, `up` how the proxy reaches the server."""
    place = Place(tmp_path)
    server = [*ready.begin(TALKER), str(tmp_path / "ran.txt")]
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
        asked = {"sampling_callback": heard.sample, "list_roots_callback": heard.roots}
        told: dict[str, Any] = {"logging_callback": heard.log, "message_handler": heard.message}
        if mode != "legacy":
            told["log_level"] = "info"
        async with Client(where, mode=mode, **asked, **told) as client:
            yield client


async def until(holds: Callable[[], bool]) -> None:
    with anyio.move_on_after(120):
        while not holds():
            await anyio.sleep(0.05)


@pytest.mark.parametrize(("down", "up"), WAYS)
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_what_a_server_asks_and_tells_reaches_the_client(tmp_path: Path, down: str, up: str, mode: str) -> None:
    heard = Heard()
    async with talking(tmp_path, down, up, mode, heard) as client:
        await client.list_tools()
        async with contextlib.AsyncExitStack() as stack:
            if mode != "legacy":
                changes = await stack.enter_async_context(client.listen(tools_list_changed=True))
            for _ in range(2):
                heard.heard.clear()
                told = heard.progress
                answer = await client.call_tool("get_order", {"order_id": "7"}, meta=KEY, progress_callback=told)
                assert [part.text for part in answer.content] == ["tiny: short, 1 roots"], answer
                # What was told beside the answer is there before it.
                assert heard.of("sampling") == ["long text"]
                assert heard.of("roots") == [None]
                assert [each for each in heard.of("log") if each != "afterwards"] == [f"note {step}" for step in STEPS]
                assert heard.of("progress") == [(step, 20.0, f"step {step}") for step in STEPS]
                if mode == "legacy":
                    assert "thinking 1 of 2" in (tmp_path / "ran.txt").read_text()
                    await until(lambda: bool(heard.of("PromptListChangedNotification")))
                    assert heard.of("ToolListChangedNotification") == [None]
                    # What was told when no request was under way.
                    assert "afterwards" in heard.of("log")
                    assert heard.of("PromptListChangedNotification") == [None]
                else:
                    with anyio.fail_after(120):
                        assert type(await anext(changes)).__name__ == "ToolsListChanged"


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_call_that_streams_is_held_like_any_other(tmp_path: Path, mode: str) -> None:
    heard = Heard()
    async with talking(tmp_path, "http", "http", mode, heard) as client:
        for refused in (True, False):
            answer = await client.call_tool("refund", {"order_id": "41"}, meta=KEY, progress_callback=heard.progress)
            assert answer.is_error is refused
            if refused:
                assert "get_order(order_id=41)" in answer.content[0].text
                assert heard.heard == []
                assert not (tmp_path / "ran.txt").exists()
                await client.call_tool("get_order", {"order_id": "41"}, meta=KEY)
    assert heard.of("progress") == [(step, 3.0, f"paying {step}") for step in range(3)]
    assert (tmp_path / "ran.txt").read_text() == "refund 41\n"


@pytest.mark.parametrize(("down", "up"), WAYS)
async def test_what_a_client_asks_and_tells_reaches_the_server(tmp_path: Path, down: str, up: str) -> None:
    notes = tmp_path / "ran.txt"
    async with talking(tmp_path, down, up, "legacy", Heard()) as client:
        await client.set_logging_level("warning")
        await client.subscribe_resource("shop://hours")
        await client.send_roots_list_changed()
        await until(lambda: "roots changed" in notes.read_text())
        # One session of the server for one of the client: it may keep what it knows of it.
        counted = [
            (await client.call_tool("get_order", {"order_id": "count"}, meta=KEY)).content[0].text for _ in range(3)
        ]
        assert counted == ["1", "2", "3"]
    assert notes.read_text().splitlines() == ["level warning", "subscribe shop://hours", "roots changed"]


async def test_a_server_that_was_started_anew_is_asked_anew(tmp_path: Path) -> None:
    place, port = Place(tmp_path), free_port()
    server = [*ready.begin(TALKER), str(tmp_path / "ran.txt"), str(port)]
    command = place.proxy("--url", f"http://127.0.0.1:{port}/mcp")
    with contextlib.ExitStack() as first:
        first.enter_context(listening(server, port))
        async with Client(StdioServerParameters(command=command[0], args=command[1:]), mode="legacy") as client:
            assert (await client.call_tool("get_order", {"order_id": "count"}, meta=KEY)).content[0].text == "1"
            first.close()
            gone = await client.call_tool("get_order", {"order_id": "count"}, meta=KEY)
            assert gone.is_error
            with listening(server, port):
                again = await client.call_tool("get_order", {"order_id": "count"}, meta=KEY)
                assert [part.text for part in again.content] == ["1"], again


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_each_call_goes_up_with_its_own_headers(tmp_path: Path, mode: str) -> None:
    place, port, above = Place(tmp_path), free_port(), free_port()
    server = [*ready.begin(TALKER), str(tmp_path / "ran.txt"), str(above)]
    seen: dict[str, str] = {}
    with listening(server, above) as url:
        command = place.proxy("--url", url, "--listen", f"127.0.0.1:{port}")
        with listening(command, port) as where:
            async with httpx2.AsyncClient() as http:
                wearing = ""

                async def dress(request: httpx2.Request) -> None:
                    if wearing and request.method == "POST":
                        request.headers["Authorization"] = wearing

                http.event_hooks["request"] = [dress]
                async with Client(streamable_http_client(where, http_client=http), mode=mode) as client:
                    # One client's session, in which a gateway speaks for one user after another.
                    for who in ("Bearer ann", "", "Bearer bob"):
                        wearing = who
                        answer = await client.call_tool("get_order", {"order_id": "authorization"}, meta=KEY)
                        seen[who] = answer.content[0].text
    assert seen == {"Bearer ann": "Bearer ann", "": "nobody", "Bearer bob": "Bearer bob"}
