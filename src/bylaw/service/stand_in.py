"""Responds while the event loop is blocked, for example by a log file that cannot be written.

The loop writes to SQLite directly (see `record.journal`). A hanging disk, or another process holding the lock, would
otherwise leave `/health` and `/metrics` without a response and clients waiting for decisions that cannot be made.
"""

import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

STILL = 2.0
"""Seconds without a tick after which the loop counts as blocked."""
LOOK = 0.25
"""Seconds between checks."""
PATIENCE = 0.5
"""Seconds a client has to send the head of its request, or the rest of it."""
LARGEST = 1 << 16
"""Maximum size of a head in bytes."""

Headers = list[tuple[bytes, bytes]]
Answer = Callable[[str, str, Headers, float], tuple[int, str, bytes]]
"""From method, path, headers and blocked seconds to status, content type and body."""


class StandIn:
    """Accepts new connections while the loop is blocked. Connections the loop has accepted keep waiting for it."""

    def __init__(self, taken: socket.socket, answer: Answer) -> None:
        """`taken` is the socket on which the loop listens."""
        self._taken = taken
        self._answer = answer
        self._ticked: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="bylaw-stand-in", daemon=True)
        self._thread.start()

    def tick(self) -> None:
        """Record that the loop is alive."""
        self._ticked = time.monotonic()

    def end(self) -> None:
        """Stop responding, because the loop has ended."""
        self._ended.set()
        self._thread.join()

    def _stood_still(self) -> float:
        """How long the loop has been blocked, in seconds; 0 if not for long."""
        still = time.monotonic() - self._ticked if self._ticked is not None else 0.0
        return still if still > STILL and not self._ended.is_set() else 0.0

    def _watch(self) -> None:
        while not self._ended.wait(LOOK):
            while self._stood_still():
                try:
                    ready, _, _ = select.select([self._taken], [], [], LOOK)
                    if ready and self._stood_still():
                        with suppress(BlockingIOError):
                            self._serve(self._taken.accept()[0])
                except (OSError, ValueError, RuntimeError):
                    # The client went away, counts changed because the loop resumed, or the socket was closed.
                    if self._taken.fileno() < 0:
                        return

    def _serve(self, client: socket.socket) -> None:
        with client:
            client.settimeout(PATIENCE)
            head, _, _ = _until_blank(client).partition(b"\r\n\r\n")
            line, *rest = head.split(b"\r\n")
            words = line.decode("latin-1").split(" ")
            if len(words) != 3:
                return
            headers = [
                (name.strip().lower(), value.strip()) for name, _, value in (each.partition(b":") for each in rest)
            ]
            path = words[1].partition("?")[0]
            status, kind, body = self._answer(words[0], path, headers, self._stood_still())
            about = f"content-type: {kind}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
            client.sendall(f"HTTP/1.1 {status} {'OK' if status == 200 else 'No'}\r\n{about}".encode() + body)
            # Closing a connection with unread data would discard the response.
            client.shutdown(socket.SHUT_WR)
            deadline = time.monotonic() + PATIENCE
            while time.monotonic() < deadline and client.recv(LARGEST):
                pass


def _until_blank(client: socket.socket) -> bytes:
    """The head of a request and anything received after it."""
    head = b""
    while b"\r\n\r\n" not in head and len(head) < LARGEST and (more := client.recv(LARGEST)):
        head += more
    return head
