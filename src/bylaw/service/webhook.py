"""Notifies another service of calls that wait for approval. A separate thread sends one request per approval.

Each worker reports an approval once, with a few retries. A receiver that must not miss any approval should also poll
`/v1/approvals` or watch the gauges. If a secret is set, the body is signed.
"""

import hashlib
import hmac
import queue
import sys
import threading
import time
import urllib.request
from collections import OrderedDict
from collections.abc import Callable, Iterable
from http.client import HTTPException
from urllib.parse import urlsplit
from urllib.request import HTTPDefaultErrorHandler, HTTPErrorProcessor, HTTPHandler, HTTPSHandler, ProxyHandler

import msgspec
from msgspec import Struct

from bylaw.errors import UsageError
from bylaw.service.request import Decided
from bylaw.text.visible import visible

TRIES = 5
PAUSE = 1.0
"""The pause before the first retry, in seconds. It doubles with each further retry."""
PATIENCE = 10.0
"""How long to wait for the receiver's response, in seconds."""
MOST = 10_000
"""The maximum number of notifications in the queue, and of approvals to remember."""
SIGNATURE = "Bylaw-Signature"
_encode = msgspec.json.Encoder().encode


_opener = urllib.request.OpenerDirector()
for _handler in (ProxyHandler, HTTPHandler, HTTPSHandler, HTTPDefaultErrorHandler, HTTPErrorProcessor):
    # Redirects are not followed, because the body would be lost.
    _opener.add_handler(_handler())


def check_hook(url: str) -> None:
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.netloc):
        raise UsageError(f"`{url}` is not a URL to post to", hint="such as https://chat.example.com/hooks/bylaw")


class Waiting(Struct, frozen=True, tag="approval.waiting"):
    """The notification that a call waits for a person's approval."""

    tenant: str
    approval: str
    conversation: str
    tool: str
    questions: list[str]
    for_person: str


def _print(line: str) -> None:
    print(visible(line), file=sys.stderr, flush=True)


class Webhook:
    """Posts approvals that are waiting to a URL. `tell` never blocks."""

    def __init__(self, url: str, secret: str = "", *, report: Callable[[str], None] | None = None) -> None:
        check_hook(url)
        self._url, self._secret = url, secret
        self._report = report or _print
        self._told: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._queue: queue.Queue[Waiting | None] = queue.Queue(MOST)
        self._thread = threading.Thread(target=self._run, name="bylaw webhook", daemon=True)
        self._thread.start()

    def tell(self, tenant: str, decisions: Iterable[Decided]) -> None:
        """Queue a notification for each approval requested in these decisions. An approval is queued only once."""
        for each in decisions:
            place = (tenant, each.approval)
            if each.allowed or each.answer != "ask" or not each.approval or place in self._told:
                continue
            self._told[place] = None
            if len(self._told) > MOST:
                self._told.popitem(last=False)
            questions = [question.text for question in each.questions if question.whom == "person"]
            about = (each.approval, each.conversation, each.tool, questions, each.for_person)
            try:
                self._queue.put_nowait(Waiting(tenant, *about))
            except queue.Full:
                self._report("bylaw: more approvals are waiting than the webhook accepts; see GET /v1/approvals")

    def end(self, within: float = PATIENCE) -> None:
        """Send the queued notifications, for at most `within` seconds."""
        self._queue.put(None)
        self._thread.join(within)

    def _run(self) -> None:
        while (waiting := self._queue.get()) is not None:
            self._send(_encode(waiting))

    def _send(self, body: bytes) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "bylaw"}
        if self._secret:
            signed = hmac.new(self._secret.encode(), body, hashlib.sha256).hexdigest()
            headers[SIGNATURE] = f"sha256={signed}"
        request = urllib.request.Request(self._url, body, headers, method="POST")
        why = ""
        for number in range(TRIES):
            try:
                with _opener.open(request, timeout=PATIENCE):
                    return
            except (OSError, HTTPException) as error:
                why = str(error)
            if number + 1 < TRIES:
                time.sleep(PAUSE * 2**number)
        self._report(f"bylaw: the webhook did not accept an approval after {TRIES} tries: {why}")
