"""Runs the service: on any address if there are keys, otherwise only on loopback.

A full garbage collection would delay decisions, so it runs only when there are no requests.
"""
# pyright: basic, reportMissingImports=false

import gc
import ipaddress
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import uvicorn

from bylaw.errors import BylawError, UsageError
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from bylaw.service.doors import Limits, protocol
from bylaw.service.keys import Key
from bylaw.service.metrics import Board, Failing
from bylaw.service.webhook import Webhook
from bylaw.text.visible import visible

NEW = 5_000
"""Young objects are garbage-collected whenever this many new ones exist. This takes one or two milliseconds."""
NEVER = 1_000_000
IDLE = 1.0
"""A worker is idle after this many seconds without a request."""
SELDOM = 60.0
"""The minimum time between full garbage collections, in seconds."""
AT_LAST = 900.0
"""The maximum time between full garbage collections, in seconds, even under constant load."""


def look_when_idle(requests: Callable[[], int]) -> None:
    """Start a thread that collects garbage while the worker is idle. `requests` returns the request count."""
    gc.collect()
    # The pack lives as long as the worker, so the garbage collector need not look at it.
    gc.freeze()
    gc.set_threshold(NEW, NEVER, NEVER)
    threading.Thread(target=_look, args=(requests,), name="bylaw-garbage", daemon=True).start()


def _look(requests: Callable[[], int]) -> None:
    last, before, looked = time.monotonic(), requests(), 0
    while True:
        time.sleep(IDLE)
        now, count = time.monotonic(), requests()
        is_quiet = count == before and count != looked and now - last >= SELDOM
        if is_quiet or now - last >= AT_LAST:
            gc.collect()
            last, looked = now, count
        before = count


KEEP_ALIVE = 75
"""How long a connection may be idle, in seconds. It is longer than in reverse proxies, so that they never use a closed
connection.
"""

TURN = 0.001
"""The interval in seconds at which threads are switched. It is short, because the thread that writes the log often
needs the interpreter briefly.
"""

_LIMITS = Limits()

BACKLOG = 2048
"""The maximum number of connections that wait to be accepted."""


def check_address(host: str, keys: Mapping[str, Key]) -> None:
    """Raise an error if there are no keys and the address is not loopback."""
    try:
        is_local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_local = False
    if not is_local and not keys:
        raise UsageError(
            f"without keys, the service does not listen on `{host}`, because other machines can reach it",
            hint="add --keys, or listen on 127.0.0.1",
        )


def check_url(url: str) -> None:
    """Raise an error unless this is a simple URL, because clients compare it with the URL that they know."""
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment):
        raise UsageError(f"`{url}` is not the address of a service", hint="such as https://decisions.example.com")


def listen(host: str, port: int, count: int = 1) -> list[socket.socket]:
    """Bind one socket per worker, and then print the address, so that the address accepts connections once it is
    printed.
    """
    first = _bound(host, port, shares=False)
    if count == 1:
        first.listen(BACKLOG)
        return [first]
    if not hasattr(socket, "SO_REUSEPORT"):
        first.close()
        raise UsageError("on this system, several workers cannot share a port", hint="remove --workers")
    # The first bind has shown that the port is free. To share it, the sockets must set this option.
    port = first.getsockname()[1]
    first.close()
    sockets = [_bound(host, port, shares=True) for _ in range(count)]
    for taken in sockets:
        taken.listen(BACKLOG)
    return sockets


def _bound(host: str, port: int, *, shares: bool) -> socket.socket:
    taken = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shares:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind((host, port))
        if not shares:
            taken.listen(1)
    except OSError as error:
        taken.close()
        where = f"{host}:{port}"
        hint = "another program may be using the port; choose another --port"
        raise UsageError(f"the service cannot listen on {where}: {error.strerror or error}", hint=hint) from error
    return taken


def run(
    desk: Desk,
    keys: Mapping[str, Key],
    taken: socket.socket,
    *,
    board: Board | None = None,
    worker: int = 0,
    url: str = "",
    limits: Limits = _LIMITS,
    webhook: Webhook | None = None,
    anchors: Failing | None = None,
    pages: Any = None,
    is_page: Callable[[str], bool] = lambda path: False,
) -> None:
    """Serve until stopped. Every decision is on disk before it is sent."""
    more: dict[str, Any] = {"webhook": webhook, "anchors": anchors, "pages": pages, "is_page": is_page}
    service = Service(desk, keys, tracing=_tracing(), board=board, worker=worker, url=url, **more)
    sys.setswitchinterval(TURN)
    look_when_idle(lambda: sum(desk.metrics.requests.values()))
    quiet: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
    lean: dict[str, Any] = {"proxy_headers": False, "lifespan": "off", "ws": "none"}
    config = uvicorn.Config(service, timeout_keep_alive=KEEP_ALIVE, http=protocol(limits), **quiet, **lean)
    taken.setblocking(False)
    try:
        with _stopping_well():
            uvicorn.Server(config).run(sockets=[taken])
    finally:
        if webhook is not None:
            webhook.end()


@contextmanager
def _stopping_well() -> Generator[None]:
    """Suppress the signal that uvicorn raises again after a clean shutdown."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.signal(each, lambda *_: None) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _tracing() -> Any:
    try:
        from bylaw.service.metrics import Tracing
    except ImportError:
        return None
    tracing = Tracing()
    return tracing if tracing.is_on else None


SOON = 5.0
"""If a worker ends within this many seconds, it has failed to start."""
AGAIN = 2.0
"""If a worker still runs after this many seconds, the signal is sent to it again."""
FALLS = 3
"""The service gives up after this many consecutive failures to start."""


def supervise(count: int, serve: Callable[[int], None]) -> int:
    """Run `serve` in each worker process until the service stops. Return the exit status."""
    return _Workers(count, serve).run()


class _Workers:
    def __init__(self, count: int, serve: Callable[[int], None]) -> None:
        self._serve = serve
        self._count = count
        self._running: dict[int, tuple[int, float]] = {}
        """The number and the start time of each worker, keyed by process id."""
        self._is_ending = False
        # No process writes to this pipe. Reading from it returns only when the last process that holds the other end
        # has ended.
        self._life, self._ours = os.pipe()

    def run(self) -> int:
        for sign in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sign, self._end)
        for worker in range(self._count):
            self._start(worker)
        falls, status = 0, 0
        while self._running:
            process, ended = os.wait()
            if process not in self._running:
                continue
            worker, since = self._running.pop(process)
            if self._is_ending:
                continue
            falls = falls + 1 if time.monotonic() - since < SOON else 0
            print(f"worker {worker + 1} ended ({os.waitstatus_to_exitcode(ended)})", file=sys.stderr, flush=True)
            if falls > FALLS:
                print("the workers keep crashing, so the service stops", file=sys.stderr, flush=True)
                status = 1
                self._end()
            else:
                self._start(worker)
        return status

    def _start(self, worker: int) -> None:
        sys.stdout.flush()
        process = os.fork()
        if process:
            self._running[process] = (worker, time.monotonic())
            if self._is_ending:
                os.kill(process, signal.SIGTERM)
            return
        status = 1
        try:
            os.close(self._ours)
            for sign in (signal.SIGTERM, signal.SIGINT):
                signal.signal(sign, signal.SIG_DFL)
            threading.Thread(target=self._end_with_parent, daemon=True).start()
            self._serve(worker)
            status = 0
        except BylawError as error:
            print(visible(str(error)), file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            pass
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def _end_with_parent(self) -> None:
        os.read(self._life, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    def _end(self, *_: object) -> None:
        """Tell all workers to end. The signal is repeated, because a worker that is starting may miss it."""
        self._is_ending = True
        for process in tuple(self._running):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
        signal.signal(signal.SIGALRM, self._end)
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
