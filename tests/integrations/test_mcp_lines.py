"""`bylaw proxy` over pipes, by the lines that a client writes: those that no client of MCP would, too."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastmcp", reason="needs the extra `mcp`")

from tests.integrations.mcp_place import KEY, Place

pytestmark = pytest.mark.process


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


ODD_LINES: list[tuple[bytes, int | str | None, int | None]] = [
    (b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {', None, -32700),
    (b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "\\ud800"}}', 5, -32700),
    (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}', None, -32700),
    (b'{"jsonrpc": "2.0", "id": 5, "method": 5}', 5, -32600),
    (b'{"jsonrpc": "1.0", "id": "a", "method": "ping"}', "a", -32600),
    (b'[{"jsonrpc": "2.0", "id": 5, "method": "ping"}]', None, -32600),
    (b'{"jsonrpc": "2.0", "id": 5, "result": 5}', None, None),
    (b"", None, None),
]
"""Each with the id and the code of the error that answers it, if anything does."""


def test_a_line_that_cannot_be_read_is_answered_and_the_next_one_too(place: Place) -> None:
    version = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": version}
    command = [*place.proxy(), "--", *place.server()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(begin).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        for number, (line, id, code) in enumerate(ODD_LINES, 100):
            process.stdin.write(line + b"\n")
            process.stdin.flush()
            if code is not None:
                answer = json.loads(process.stdout.readline())
                assert (answer["id"], answer["error"]["code"]) == (id, code), line
            ping = {"jsonrpc": "2.0", "id": number, "method": "ping"}
            process.stdin.write(json.dumps(ping).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == number, line
        process.stdin.close()
    assert process.returncode == 0


ODD_META: list[Any] = [
    "text", 7, [], [1], True, {"progressToken": [1]}, {**KEY, "bylaw/turn": [1]}, {**KEY, "bylaw/turn": True},
    {**KEY, "bylaw/messages": "hi"}, {**KEY, "bylaw/messages": [1]}, {**KEY, "bylaw/messages": [{"role": ["user"]}]},
    {**KEY, "bylaw/messages": [{"role": "user", "content": {"a": 1}}]}, {"bylaw/conversation": ["c1"]},
    {"bylaw/conversation": {"c1": 1}}, {"bylaw/conversation": True}, {"bylaw/conversation": "c\0"},
    {"bylaw/conversation": "c" * 301},
]  # fmt: skip


def test_a_meta_that_is_none_of_ours_is_answered_in_a_line_and_runs_nothing(place: Place) -> None:
    command = [*place.proxy("--log", str(place.pack.parent / "log.db"), "--"), *place.server()]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(number: int, method: str, **params: Any) -> Any:
            assert process.stdin is not None
            assert process.stdout is not None
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert answer["id"] == number
            return answer

        about = {"capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        ask(0, "initialize", protocolVersion="2025-06-18", **about)
        process.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        for number, meta in enumerate(ODD_META, 1):
            told = ask(number, "tools/call", name="get_order", arguments={"order_id": "7"}, _meta=meta)
            assert told.get("error", {}).get("code") == -32602 or told["result"]["isError"], meta
        assert place.ran() == []
        shown = ask(99, "tools/call", name="get_order", arguments={"order_id": "7"}, _meta=KEY)
        assert not shown["result"]["isError"]
        process.stdin.close()
        assert process.stderr is not None
        said = process.stderr.read()
        assert process.wait(30) == 0
    assert "`bylaw/messages` is not a list" in said
    assert "Traceback" not in said
    assert len(place.ran()) == 1
