"""Asks an ASGI application as an HTTP server would, without a socket."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any, NamedTuple


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Headers = Iterable[tuple[bytes, bytes]]


async def ask(
    app: Any,
    method: str,
    path: str,
    body: bytes = b"",
    *,
    key: str = "",
    parts: int = 1,
    headers: Headers = (),
    only: Headers = (),
) -> Answer:
    """`only` are headers in place of those that every request has."""
    path, _, query = path.partition("?")
    headers = list(only) or [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), *headers]
    if key:
        headers.append((b"authorization", f"Bearer {key}".encode()))
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path,
        "raw_path": path.encode(), "query_string": query.encode(), "headers": headers, "scheme": "http",
        "server": ("test", 80), "client": ("test", 1), "root_path": "",
    }  # fmt: skip
    size = max(1, len(body) // parts)
    chunks = [body[start : start + size] for start in range(0, len(body), size)] or [b""]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        chunk = chunks.pop(0) if chunks else b""
        return {"type": "http.request", "body": chunk, "more_body": bool(chunks)}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = sent[0]
    told = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], told, b"".join(each.get("body", b"") for each in sent[1:]))


def post(app: Any, path: str, content: Any, **more: Any) -> Answer:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return asyncio.run(ask(app, "POST", path, body, **more))


def get(app: Any, path: str, **more: Any) -> Answer:
    return asyncio.run(ask(app, "GET", path, **more))
