"""Tells another service what waits for a person: one request for each approval, in a thread of its own.

It is told once by each worker that meets it, and tried a few times; whoever must not miss one also asks `/v1/approvals`
or watches the gauges. The body is signed where there is a secret.
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
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from bylaw.errors import UsageError
from bylaw.service.request import Decided
from bylaw.text.visible import visible

TRIES = 5
PAUSE = 1.0
"""Seconds before the second try; before each further one twice as many."""
PATIENCE = 10.0
"""Seconds in which the other service must answer."""
MOST = 10_000
"""Approvals that wait to be told, and those that are remembered to have been."""
SIGNATURE = "Bylaw-Signature"
_encode = msgspec.json.Encoder().encode


def check_hook(url: str) -> None:
    """Refuse what nothing can be posted to."""
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.netloc):
        raise UsageError(f"`{url}` is not a URL to post to", hint="such as https://chat.example.com/hooks/bylaw")


class Waiting(Struct, frozen=True, tag="approval.waiting"):
    """A call waits for a person."""

    tenant: str
    approval: str
    conversation: str
    tool: str
    questions: list[str]
    for_person: str


def _print(line: str) -> None:
    print(visible(line), file=sys.stderr, flush=True)


class Webhook:
    """Posts what waits to a URL; `tell` never waits."""

    def __init__(self, url: str, secret: str = "", *, report: Callable[[str], None] | None = None) -> None:
        check_hook(url)
        self._url, self._secret = url, secret
        self._report = report or _print
        self._told: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._queue: queue.Queue[Waiting | None] = queue.Queue(MOST)
        self._thread = threading.Thread(target=self._run, name="bylaw webhook", daemon=True)
        self._thread.start()

    def tell(self, tenant: str, decisions: Iterable[Decided]) -> None:
        """Tell of the approvals that these decisions wait for, those that were not told of yet."""
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
                self._report("bylaw: more approvals wait than the webhook takes; see GET /v1/approvals")

    def end(self, within: float = PATIENCE) -> None:
        """Send what is to be sent, for so many seconds."""
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
                with urllib.request.urlopen(request, timeout=PATIENCE):
                    return
            except OSError as error:
                why = str(error)
            if number + 1 < TRIES:
                time.sleep(PAUSE * 2**number)
        self._report(f"bylaw: the webhook did not take an approval, tried {TRIES} times: {why}")
