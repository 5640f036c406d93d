"""A model that answers late: an OpenAI-compatible server on the loopback, which keeps whoever asks waiting.

`hold` in the user's words makes it answer once the test lets it, `fail` makes it answer 500, `babble` no JSON.
"""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANSWER: dict[str, list[Any]] = {"deeds": [], "delegations": []}


class Sleepy:
    """Such a model, while it runs."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.asked: list[str] = []
        """What it was asked, in that order."""
        self.may_answer = threading.Event()
        """Set by a test that has waited for what is to come before the answers."""


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        asked = body["messages"][-1]["content"].rpartition("request")[2]
        self.server.model.asked.append(asked)
        if "hold" in asked:
            self.server.model.may_answer.wait()
        text = "Certainly!" if "babble" in asked else json.dumps(ANSWER)
        message = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        data = json.dumps({"id": "a", "object": "chat.completion", "created": 0, "model": "m", "choices": [message]})
        try:
            self.send_response(500 if "fail" in asked else 200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(data.encode())
        except OSError:
            pass  # whoever asked has given up

    def log_message(self, format: str, *args: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    model: Sleepy


@contextmanager
def sleepy() -> Generator[Sleepy]:
    """A model that answers when it may."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.model = Sleepy(f"http://127.0.0.1:{server.server_address[1]}/v1")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.model
    finally:
        server.model.may_answer.set()
        server.shutdown()
        server.server_close()
