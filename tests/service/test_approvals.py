"""Approvals over HTTP: who answered is who holds the key, and what waits is told by a webhook and gauges."""

import hashlib
import hmac
import json
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from bylaw.errors import BylawError
from bylaw.record import Log
from bylaw.service import webhook as webhooks
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from bylaw.service.keys import hash_of, key_line, new_key, read_keys
from bylaw.service.webhook import SIGNATURE, Webhook
from tests.service.asgi import get, post
from tests.shield.scenes import shop

TOLD: list[dict[str, Any]] = [
    {"role": "user", "content": "Refund 7."},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "l", "type": "function", "function": {"name": "get_order", "arguments": '{"order_id": "7"}'}}]},
    {"role": "tool", "tool_call_id": "l", "content": '{"order_id": "7"}'},
]  # fmt: skip
ASK = {"messages": TOLD, "tool": "refund", "arguments": {"order_id": "7"}, "context": {"signed_in_as": "C1"}}


def decide(app: Any, key: str = "", **more: Any) -> dict[str, Any]:
    answered = post(app, "/v1/decide", ASK | more, key=key)
    assert answered.status == 200, answered.json
    return answered.json["decisions"][0]


def test_an_approval_is_used_by_a_host_that_keeps_the_history(app: Any) -> None:
    first = decide(app)
    assert decide(app)["approval"] == first["approval"]
    yes = {"id": first["approval"], "answer": "approve", "by": "lena"}
    assert post(app, "/v1/approvals", yes).json["status"] == "approved"
    again = post(app, "/v1/approvals", {**yes, "by": "bob"})
    assert again.status == 422
    assert "was already approved by lena" in again.json["error"]["message"]
    assert [decide(app)["allowed"] for _ in range(2)] == [True, False]


def test_who_approved_is_who_holds_the_key(log: Log, tmp_path: Path) -> None:
    agent, lena, nobody = new_key(), new_key(), new_key()
    lines = [key_line("t", agent), key_line("t", lena, "approve", "lena"), key_line("t", nobody, "approve")]
    (tmp_path / "keys").write_text("\n".join(lines))
    app = Service(Desk(shop(), log), read_keys(tmp_path / "keys"))
    other = {"arguments": {"order_id": "7", "note": "x"}}
    waits = [decide(app, agent)["approval"], decide(app, agent, context={"signed_in_as": "C2"})["approval"]]
    assert len({*waits, decide(app, agent, **other)["approval"]}) == 3
    forged = post(app, "/v1/approvals", {"id": waits[0], "answer": "approve", "by": "the boss"}, key=lena)
    assert (forged.status, "this key belongs to `lena`" in forged.json["error"]["message"]) == (422, True)
    said = post(app, "/v1/approvals", {"id": waits[0], "answer": "approve"}, key=lena).json
    assert said["answer"]["by"] == "lena"
    said = post(app, "/v1/approvals", {"id": waits[1], "answer": "approve", "by": "bob"}, key=nobody).json
    assert said["answer"]["by"] == f"key {hash_of(nobody)[:8]}, as bob"


@pytest.mark.parametrize("line", ["t HASH decide lena", "t HASH approve lena x", "t HASH lena"])
def test_a_line_of_keys_that_is_not_one_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "keys").write_text(line.replace("HASH", hash_of("x")))
    with pytest.raises(BylawError, match="not a key"):
        read_keys(tmp_path / "keys")


def test_gauges_tell_what_waits(app: Any) -> None:
    assert 'bylaw_approvals_waiting{tenant="default"} 0' in get(app, "/metrics").body.decode()
    waits = decide(app)["approval"]
    told = get(app, "/metrics").body.decode()
    assert 'bylaw_approvals_waiting{tenant="default"} 1' in told
    assert "bylaw_approvals_oldest_seconds" in told
    post(app, "/v1/approvals", {"id": waits, "answer": "reject", "by": "lena"})
    assert 'bylaw_approvals_waiting{tenant="default"} 0' in get(app, "/metrics").body.decode()


class Hook:
    """A service that is posted to; it fails as often as it is told."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.failing = 0
        self.has_got = threading.Event()
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.failing -= 1
                self.send_response(503 if hook.failing >= 0 else 204)
                self.end_headers()
                if hook.failing < 0:
                    hook.got.append((dict(self.headers), body))
                    hook.has_got.set()

            def log_message(self, format: str, *args: Any) -> None: ...

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class StrangeAnswer(socketserver.StreamRequestHandler):
    """Answers each request with a fixed text."""

    answer = b""

    def handle(self) -> None:
        self.rfile.readline()
        self.wfile.write(self.answer)


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_a_webhook_is_told_of_each_approval_once(log: Log, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "PAUSE", 0.01)
    hook.failing = 2
    told = Webhook(hook.url, "secret")
    app = Service(Desk(shop(), log), {}, webhook=told)
    waits, *_ = [decide(app)["approval"] for _ in range(3)]
    assert hook.has_got.wait(120)
    told.end()
    ((headers, body),) = hook.got
    said = json.loads(body)
    assert (said["type"], said["approval"], said["tenant"]) == ("approval.waiting", waits, "default")
    assert 'order_id: "7"' in said["for_person"]
    assert headers[SIGNATURE] == f"sha256={hmac.new(b'secret', body, hashlib.sha256).hexdigest()}"


def test_a_webhook_that_never_answers_is_told_of(log: Log, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "PAUSE", 0.01)
    lines: list[str] = []
    hook.failing = 1000
    told = Webhook(hook.url, report=lines.append)
    assert decide(Service(Desk(shop(), log), {}, webhook=told))["answer"] == "ask"
    told.end()
    assert "the webhook did not accept an approval after 5 tries" in lines[0]


@pytest.mark.parametrize("answer", ["hello", "HTTP/1.1 abc OK", "HTTP/1.1 301 Moved\r\nLocation: http://[::1"])
def test_a_strange_answer_does_not_end_the_webhook(answer: str, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "PAUSE", 0.01)
    lines: list[str] = []
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), StrangeAnswer) as server:
        server.daemon_threads = True
        monkeypatch.setattr(StrangeAnswer, "answer", f"{answer}\r\n\r\n".encode())
        threading.Thread(target=server.serve_forever, daemon=True).start()
        told = Webhook(f"http://127.0.0.1:{server.server_address[1]}", report=lines.append)
        app = Service(Desk(shop(), log), {}, webhook=told)
        for customer in ("C1", "C2"):
            assert decide(app, context={"signed_in_as": customer})["answer"] == "ask"
        told.end(120)
        server.shutdown()
    assert len(lines) == 2, "both approvals were sent, and neither was accepted"


def test_a_webhook_is_a_url() -> None:
    with pytest.raises(BylawError, match="is not a URL to post to"):
        Webhook("ftp://x")
