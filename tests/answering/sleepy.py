"""A model that answers late: an OpenAI-compatible server on the loopback, which sleeps as a request tells it.

`sleep 3` in the user's words makes it wait three seconds, `fail` makes it answer 500, `babble` no JSON.
"""

import json
import re
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANSWER: dict[str, list[Any]] = {"deeds": [], "delegations": []}
_SLEEP = re.compile(r"sleep (\d+(?:\.\d+)?)")


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        asked = body["messages"][-1]["content"].rpartition("request")[2]
        if found := _SLEEP.search(asked):
            time.sleep(float(found[1]))
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


@contextmanager
def sleepy() -> Generator[str]:
    """The address of such a model, while it runs."""
    server = _Server(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
