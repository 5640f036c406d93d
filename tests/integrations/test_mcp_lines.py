"""`bylaw proxy` over pipes, by the lines that a client writes: also wrong ones."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastmcp", reason="needs the extra `mcp`")

from tests.integrations.mcp_place import KEY, Place

pytestmark = pytest.mark.process


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"method": "tools/call", "params": {"name": 5}}, "`params.name` of `tools/call`: Input should be a valid string"),
    ({"method": "tools/call", "params": {}}, "`params.name` of `tools/call`: Field required"),
    (
        {"method": "tools/call", "params": {"name": "refund", "arguments": [1]}},
        "`params.arguments` of `tools/call`: Input should be a valid dictionary",
    ),
    ({"method": "resources/read", "params": {"uri": 5}}, "`params.uri` of `resources/read`"),
]


def test_what_is_wrong_with_a_request_is_told_with_its_place(place: Place) -> None:
    version = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    command = [*place.proxy("--conversation", "c1"), "--", *place.server()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for id, (wrong, said) in enumerate([({"method": "initialize", "params": version}, ""), *WRONG]):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id, **wrong}).encode() + b"\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert answer["id"] == id
            assert not said or answer["error"]["message"].startswith(said), answer
        process.stdin.close()
    assert place.ran() == []


MUMBLING = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    about = {"name": "s", "version": "1"}
    begun = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
    tool = {"name": "get_order", "inputSchema": {"type": "object", "properties": {"order_id": {"type": "string"}}}}
    answers = {"initialize": begun, "tools/list": {"tools": [tool]}, "tools/call": {"content": "it is done"}}
    if asked.get("method") in answers:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answers[asked["method"]]}), flush=True)
"""
"""A server whose answer to a call is not as MCP wants it."""


def test_what_the_server_answers_wrongly_is_not_told_as_invalid_params(place: Place, tmp_path: Path) -> None:
    """A client that is told so may take it that nothing was done, and call again."""
    (tmp_path / "mumbling.py").write_text(MUMBLING)
    version = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    asked: list[dict[str, Any]] = [
        {"method": "initialize", "params": version},
        {"method": "tools/call", "params": {"name": "get_order", "arguments": {"order_id": "1"}, "_meta": KEY}},
        {"method": "tools/call", "params": {"name": 5}},
    ]
    told: list[Any] = []
    command = [*place.proxy(), "--", sys.executable, str(tmp_path / "mumbling.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for id, request in enumerate(asked):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id, **request}).encode() + b"\n")
            process.stdin.flush()
            told.append(json.loads(process.stdout.readline()))
        process.stdin.close()
    assert [answer.get("error", {}).get("code") for answer in told] == [None, -32603, -32602]
    assert told[1]["error"]["message"].startswith("the server's answer to `tools/call` cannot be read: `result.c")


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
        assert process.wait(120) == 0
    assert "`bylaw/messages` is not a list" in said
    assert "Traceback" not in said
    assert len(place.ran()) == 1
