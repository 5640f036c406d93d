"""What one client may take of a running service: bytes and headers of a head, time, and connections."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="needs the extra `serve`")

import uvicorn

from bylaw.service.doors import Limits, protocol
from tests.service.asgi import get

LIMITS = Limits(head=4096, headers=20, head_seconds=0.6, body_seconds=0.6, connections=5)
CUT_OFF = r"Broken pipe|reset by peer"
HEAD = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"


PATIENT = Limits(head=4096, headers=20, head_seconds=200, body_seconds=200, connections=5)


@pytest.fixture(params=[LIMITS])
def port(app: Any, request: pytest.FixtureRequest) -> Iterator[int]:
    quiet: dict[str, Any] = {"log_level": "error", "lifespan": "off", "access_log": False}
    server = uvicorn.Server(uvicorn.Config(app, http=protocol(request.param), **quiet))
    taken = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]})
    thread.start()
    try:
        yield taken.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=120)


def read_all(client: socket.socket) -> bytes:
    """What the server says until it closes."""
    found = b""
    try:
        while more := client.recv(65536):
            found += more
    except ConnectionResetError:
        # It had closed, with some of what we sent unread.
        pass
    return found


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def sent(port: int, *parts: bytes) -> bytes:
    with connect(port) as client:
        try:
            for part in parts:
                client.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return read_all(client)


def send_slowly(client: socket.socket, size: int) -> None:
    for _ in range(size):
        client.sendall(b"X")
        time.sleep(0.1)


def test_a_plain_request_is_answered_again_and_again(port: int) -> None:
    with connect(port) as client:
        for pause in (0, 1.3, 1.3):
            # Between two requests a client may take longer than for a head.
            time.sleep(LIMITS.head_seconds * pause)
            client.sendall(HEAD + b"\r\n")
            answer = client.recv(65536)
            assert status(answer) == 200


@pytest.mark.parametrize(
    "head",
    [
        HEAD + b"X: " + b"a" * 8000 + b"\r\n\r\n",
        HEAD + b"X: " + b"a" * 8000,
        b"GET /" + b"a" * 8000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        HEAD + b"".join(b"X%d: 1\r\n" % number for number in range(30)) + b"\r\n",
    ],
    ids=["a long header", "a header without end", "a long path", "many headers"],
)
def test_a_head_that_is_too_large_is_cut_off(port: int, head: bytes) -> None:
    answer = sent(port, head)
    assert status(answer) == 431
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "BY703"


def test_an_endless_header_takes_no_memory_and_no_time_of_others(port: int) -> None:
    with connect(port) as client:
        client.sendall(HEAD + b"X: ")
        # It is cut off long before the end: buffers on the way take a few megabytes of these 65.
        with pytest.raises(OSError, match=CUT_OFF):
            client.sendall(b"a" * 65_000_000)
    assert status(sent(port, HEAD + b"Connection: close\r\n\r\n")) == 200


@pytest.mark.parametrize("begun", [b"", HEAD])
def test_a_head_that_does_not_end_in_time_is_given_up(port: int, begun: bytes) -> None:
    started = time.monotonic()
    answer = sent(port, begun)
    assert time.monotonic() - started > LIMITS.head_seconds * 0.8
    assert status(answer) == 408


def test_one_byte_now_and_then_does_not_keep_a_connection(port: int) -> None:
    with connect(port) as client:
        client.sendall(HEAD)
        with pytest.raises(OSError, match=CUT_OFF):
            send_slowly(client, 600)


def test_a_body_that_does_not_end_in_time_is_given_up(port: int) -> None:
    head = (
        b"POST /v1/decide HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    )
    assert status(sent(port, head, b"{")) == 408


@pytest.mark.parametrize("port", [PATIENT], indirect=True)
def test_a_client_has_so_many_connections_and_no_more(port: int) -> None:
    held = [connect(port) for _ in range(LIMITS.connections)]
    try:
        assert status(sent(port)) == 429
    finally:
        for each in held:
            each.close()
    until = time.monotonic() + 60
    while (found := status(sent(port, HEAD + b"Connection: close\r\n\r\n"))) == 429 and time.monotonic() < until:
        time.sleep(0.05)
    assert found == 200


def test_no_answer_tells_back_the_host_that_a_client_names(app: Any) -> None:
    for path in ("/health/", "/v1/approvals/", "/.well-known/authzen-configuration", "/metrics/", "//evil.example"):
        answer = get(app, path, only=[(b"host", b"127.0.0.1:1")])
        assert answer.status == 404
        assert "location" not in answer.headers
        assert b"127.0.0.1:1" not in answer.body
