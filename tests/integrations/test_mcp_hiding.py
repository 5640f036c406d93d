"""What the request cannot use is not listed; only the user's words bring it back, and the client is told of that."""

import contextlib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastmcp", reason="needs the extra `mcp`")

import anyio

from tests.command import bylaw
from tests.integrations.mcp_model import answering
from tests.integrations.mcp_place import Place
from tests.integrations.mcp_ways import WAYS, before

SERVER = Path(__file__).with_name("mcp_bank.py")
READS = {"read_file", "get_user_info", "get_balance", "get_iban"}
PAY = "Please pay the bill in bill.txt."
CHANGE = "Also change my password to blue-42."
PAYING = {"tool": "send_money", "asked": ["pay the bill"]}
CHANGING = {"tool": "update_password", "asked": ["change my password"]}
ANSWERS = {PAY: [PAYING], CHANGE: [CHANGING], f"{PAY}\n\n{CHANGE}": [PAYING, CHANGING]}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Heard:
    def __init__(self) -> None:
        self.count = 0

    async def message(self, message: Any) -> None:
        self.count += type(message).__name__ == "ToolListChangedNotification"

    async def changed(self, changes: Any, times: int) -> None:
        with anyio.fail_after(120):
            if changes is not None:
                assert type(await anext(changes)).__name__ == "ToolsListChanged"
            while changes is None and self.count < times:
                await anyio.sleep(0.02)


def said(*texts: str) -> dict[str, Any]:
    return {"bylaw/messages": [{"role": "user", "content": text} for text in texts]}


async def listed(client: Any, **meta: Any) -> set[str]:
    return {each.name for each in (await client.list_tools(meta=meta or None, cache_mode="refresh")).tools}


@pytest.mark.process
@pytest.mark.anyio
@pytest.mark.parametrize(("way", "mode"), [*((way, "legacy") for way in WAYS), (WAYS[0], "2026-07-28")])
async def test_tools_that_the_request_cannot_use_are_hidden(tmp_path: Path, way: tuple[str, str], mode: str) -> None:
    place, heard = Place(tmp_path), Heard()
    place.pack = Path("agentdojo/banking")
    options = ("--conversation", "c1", "--hide", *answering(tmp_path / "model", ANSWERS))
    async with (
        before(SERVER, place, way, *options, mode=mode, message_handler=heard.message) as client,
        contextlib.AsyncExitStack() as stack,
    ):
        changes = None
        if mode != "legacy":
            changes = await stack.enter_async_context(client.listen(tools_list_changed=True))
        assert await listed(client) == READS | {"send_money", "update_password"}, "nobody has asked for anything yet"
        await client.call_tool("read_file", {"file_path": "bill.txt"}, meta=said(PAY))
        await heard.changed(changes, 1)
        assert await listed(client) == READS | {"send_money"}
        # What was read cannot bring it back, and a call of what is hidden is decided on as ever.
        held = await client.call_tool("update_password", {"password": "mine-1"}, meta=said(PAY))
        assert held.is_error
        assert "the request does not ask for this" in held.content[0].text
        assert await listed(client) == READS | {"send_money"}
        assert heard.count <= 1
        await client.call_tool("get_balance", {}, meta=said(PAY, CHANGE))
        await heard.changed(changes, 2)
        assert await listed(client) == READS | {"send_money", "update_password"}
    assert place.ran() == []


@pytest.mark.process
@pytest.mark.anyio
async def test_who_asks_for_the_list_may_say_what_the_user_wants(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.pack = Path("agentdojo/banking")
    async with before(SERVER, place, WAYS[0], "--hide", *answering(tmp_path / "model", ANSWERS)) as client:
        one, two = {"bylaw/conversation": "one"}, {"bylaw/conversation": "two"}
        assert await listed(client, **one, **said(PAY)) == READS | {"send_money"}
        assert await listed(client, **two, **said(CHANGE)) == READS | {"update_password"}
        assert await listed(client, **one, **said(PAY)) == READS | {"send_money"}


def test_without_a_model_nothing_can_be_hidden(tmp_path: Path) -> None:
    done = bylaw(tmp_path, "proxy", "--pack", "agentdojo/banking", "--hide", "--", "true")
    assert done.returncode == 2
    assert "`--hide` needs `--llm`" in done.stderr


def test_a_pack_without_requests_cannot_hide(tmp_path: Path) -> None:
    done = bylaw(tmp_path, "proxy", "--pack", "clinic", "--hide", *answering(tmp_path / "model"), "--", "true")
    assert done.returncode == 2
    assert "checks calls against the user's request" in done.stderr
