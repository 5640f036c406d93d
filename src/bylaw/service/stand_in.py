"""Answers in the loop's place while the loop is blocked, as by a log file that cannot be written.

The loop writes to SQLite by itself (see `record.journal`), so a disk that hangs, or another process that keeps the file
locked, would leave `/health` and `/metrics` without an answer, and clients waiting for decisions that nobody makes.
"""

import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

STILL = 2.0
"""Seconds without a tick of the loop after which it is said to stand still."""
LOOK = 0.25
"""Seconds between two looks."""
PATIENCE = 0.5
"""Seconds in which a client must have sent the head of its request, or the rest of what it sends."""
LARGEST = 1 << 16
"""Bytes in a head at most."""

Headers = list[tuple[bytes, bytes]]
Answer = Callable[[str, str, Headers, float], tuple[int, str, bytes]]
"""Of a method, a path, the headers and the seconds that the loop has stood still: status, type and body."""


class StandIn:
    """Accepts new connections while the loop is blocked. Those the loop has accepted wait for it."""

    def __init__(self, taken: socket.socket, answer: Answer) -> None:
        """`taken` is the socket at which the loop listens."""
        self._taken = taken
        self._answer = answer
        self._ticked: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="bylaw-stand-in", daemon=True)
        self._thread.start()

    def tick(self) -> None:
        """The loop goes on."""
        self._ticked = time.monotonic()

    def end(self) -> None:
        """The loop has ended; nobody is answered from here on."""
        self._ended.set()
        self._thread.join()

    def _stood_still(self) -> float:
        """For how many seconds, where that is long."""
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
                    # A client that went away, or counts that changed as the loop went on; or the socket was closed.
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
            # What is left unread when a connection is closed takes the answer with it.
            client.shutdown(socket.SHUT_WR)
            deadline = time.monotonic() + PATIENCE
            while time.monotonic() < deadline and client.recv(LARGEST):
                pass


def _until_blank(client: socket.socket) -> bytes:
    """The head of a request, with what came after it."""
    head = b""
    while b"\r\n\r\n" not in head and len(head) < LARGEST and (more := client.recv(LARGEST)):
        head += more
    return head
