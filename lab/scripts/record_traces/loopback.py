"""Two small servers on the loopback: a model that follows the script, and a sink that keeps what is posted to it."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import clinic

_BATCHES = {
    "use_multipart_endpoint": True,
    "size_limit": 100,
    "size_limit_bytes": 20_971_520,
    "scale_up_nthreads_limit": 1,
    "scale_up_qsize_trigger": 1000,
    "scale_down_nempty_trigger": 4,
}


class _Quiet(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            pieces = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, value: object, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class _Model(_Quiet):
    def do_POST(self) -> None:
        request = json.loads(self.body())
        said = sum(message["role"] == "assistant" for message in request["messages"])
        message = clinic.reply(said)
        self.answer(
            {
                "id": f"chatcmpl-{said}",
                "object": "chat.completion",
                "created": 1,
                "model": "scripted",
                "choices": [
                    {
                        "index": 0,
                        "message": message,
                        "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
                    }
                ],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }
        )


def serve_model() -> str:
    """Start the model; its base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"


def serve_sink() -> tuple[str, list[tuple[str, dict, bytes]]]:
    """Start a sink; its URL and the list of (path, headers, body) it fills."""
    kept: list[tuple[str, dict, bytes]] = []

    class Sink(_Quiet):
        def do_POST(self) -> None:
            kept.append((self.path, dict(self.headers), self.body()))
            self.answer({}, 200)

        do_PATCH = do_PUT = do_POST

        def do_GET(self) -> None:
            self.answer({"batch_ingest_config": _BATCHES, "data": []})

    server = ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}", kept
