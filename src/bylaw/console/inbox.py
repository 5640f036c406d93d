"""The inbox: calls that wait for a person, each with what is needed to say yes or no, also on a phone."""
# pyright: basic, reportMissingImports=false

import hashlib
import time
from collections.abc import Iterable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from bylaw.console.app import changed, shown, streamed
from bylaw.console.page import running
from bylaw.console.service_log import ServiceLog, ServicePages
from bylaw.console.sign_in import needs_answering, needs_noting
from bylaw.console.stream import changes, known_by
from bylaw.console.visitor import Asked, Visitor
from bylaw.console.waiting import Put, card_of, put_cards
from bylaw.errors import UsageError
from bylaw.record.approval import Approval
from bylaw.record.attestation import Attestation

ANSWERED = 20
"""Recent answers that are listed."""
LOOKS = 3.0
"""Seconds between two looks at the cards put to customers, which takes reading their conversations."""


class InboxPages(ServicePages):
    """What waits for a person, out of a decision log."""

    section = "inbox"

    def __init__(self, service: ServiceLog) -> None:
        super().__init__(service)
        self._put: dict[str, tuple[float, str]] = {}
        """By tenant, which cards wait for customers, and when that was looked up."""

    @shown("/")
    @shown("/inbox")
    def listed(self, asked: Asked) -> Response:
        return self._page("inbox.html", asked, **self._values(asked), done=None)

    @shown("/inbox/cards")
    def cards(self, asked: Asked) -> Response:
        """Only the cards, for a page that is open."""
        return self._page("inbox_cards.html", asked, **self._values(asked), done=None)

    @changed("/inbox/answer")
    def answer(self, asked: Asked) -> Response:
        """A person's yes or no to one call."""
        needs_answering(asked.visitor)
        word, id = asked.form.get("word", ""), asked.form.get("id", "")
        if word not in ("approve", "reject"):
            raise UsageError("say whether you approve or reject it")
        log = self._service.log
        say = log.approve if word == "approve" else log.reject
        note = " ".join(asked.form.get("note", "").split())[:1000]
        done = say(id, by=asked.signed(), note=note, tenant=asked.visitor.tenant)
        return self._after(asked, f"{done.status}: {done.request.tool}, {done.conversation}", done)

    @changed("/inbox/undo")
    def undo(self, asked: Asked) -> Response:
        """Withdraw an approval whose call has not run."""
        needs_answering(asked.visitor)
        tenant, by = asked.visitor.tenant, asked.signed()
        done = self._service.log.withdraw(asked.form.get("id", ""), by=by, tenant=tenant)
        return self._after(asked, f"withdrawn: {done.request.tool}, {done.conversation}. The call was not run.", done)

    @changed("/inbox/attest")
    def attest(self, asked: Asked) -> Response:
        """Keep a person's word that the customer confirmed it to them; the card stays open."""
        needs_noting(asked.visitor)
        conversation, card = asked.form.get("conversation", ""), asked.form.get("card", "")
        put = put_cards(self._service, asked.visitor.tenant, time.time())
        if not any((each.conversation, each.card) == (conversation, card) for each in put):
            raise UsageError("no such card waits for its customer", hint="load the page again")
        given = Attestation(card, asked.signed(), " ".join(asked.form.get("reason", "").split()))
        self._service.log.attest(conversation, given, tenant=asked.visitor.tenant)
        return self._after(asked, "Your word is in the log. The card still waits for the customer's own answer.")

    @streamed("/inbox/events")
    async def events(self, request: Request, visitor: Visitor) -> Response:
        """A line whenever something comes to wait, or waits no more."""
        return changes(lambda _: self._waiting(visitor.tenant), known_by(request))

    def _after(self, asked: Asked, told: str, done: Approval | None = None) -> Response:
        """The page, or the part of it that has changed, with what was done.

        After an answer (`done`) the page is locked: a second tap must not answer the call that takes its place.
        """
        template = "inbox_cards.html" if asked.is_part else "inbox.html"
        return self._page(template, asked, **self._values(asked, told), done=done)

    def _waiting(self, tenant: str) -> str:
        """Which calls and cards wait, in a word that changes when they do."""
        now = time.time()
        found = self._service.log.approvals(tenant, status="waiting")
        looked, put = self._put.get(tenant, (0.0, ""))
        if now - looked > LOOKS:
            put = self._noted(tenant, put_cards(self._service, tenant, now), now)
        names = "\n".join([*(each.id for each in found if not each.expires or each.expires > now), put])
        return hashlib.blake2b(names.encode("utf-8", "replace"), digest_size=8).hexdigest()

    def _noted(self, tenant: str, put: Iterable[Put], now: float) -> str:
        names = "\n".join(f"{each.card} {len(each.attested)}" for each in put)
        self._put[tenant] = now, names
        return names

    def _values(self, asked: Asked, told: str = "") -> dict[str, Any]:
        tenant, now, log = asked.visitor.tenant, time.time(), self._service.log
        waiting, wrong = log.supported(tenant, status="waiting")
        every = [each for each in log.approvals(tenant) if each.answer is not None]
        put = list(put_cards(self._service, tenant, now))
        self._noted(tenant, put, now)
        cards = [
            card_of(self._service, tenant, each, now) for each in waiting if not each.expires or each.expires > now
        ]
        return {
            "title": f"({len(cards)}) Inbox · Bylaw" if cards else "Inbox · Bylaw",
            "cards": cards,
            "put": put,
            "answered": sorted(every, key=lambda each: each.answered, reverse=True)[:ANSWERED],
            "wrong": wrong,
            "told": told,
            "waiting": self._waiting(tenant),
            "ago": lambda then: running(now - then),
            "left": lambda seconds: running(seconds, down=True),
        }
