"""An endpoint on loopback that answers by a script: what real ones do once in a while, it does on demand."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Script = Callable[[int, dict[str, Any]], tuple[int, dict[str, str], Any]]
"""From the number of the request and its body: status, headers, and the body as data, as raw bytes or as chunks."""


def completion(text: str | None, finish: str = "stop", **message: Any) -> dict[str, Any]:
    """A chat completion."""
    said = {"role": "assistant", "content": text, **message}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "message": said, "finish_reason": finish}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }


def chunks(text: str, finish: str | None = "stop") -> list[dict[str, Any]]:
    """The same as a stream, a word at a time."""
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    parts = [{**base, "choices": [{"index": 0, "delta": {"content": f"{word} "}}]} for word in text.split()]
    if finish:
        parts.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    used = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return [*parts, {**base, "choices": [], "usage": used}]


class Server:
    """What came in, and how much of it at once."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.at_once = 0
        self.most_at_once = 0
        self.lock = threading.Lock()
        self.url = ""


@contextmanager
def serving(script: Script, *, pause: float = 0.0) -> Iterator[Server]:
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with server.lock:
                number = len(server.bodies)
                server.bodies.append(body)
                server.at_once += 1
                server.most_at_once = max(server.most_at_once, server.at_once)
            time.sleep(pause)
            status, headers, answer = script(number, body)
            with server.lock:
                server.at_once -= 1
            with suppress(OSError):
                self.answer(status, headers, answer)

        def answer(self, status: int, headers: dict[str, str], answer: Any) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if isinstance(answer, list):
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                for chunk in answer:
                    self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
                self.wfile.write(b"data: [DONE]\n\n")
                return
            raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
