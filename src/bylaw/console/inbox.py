"""The inbox of calls that are waiting for approval. It is also usable on a phone."""
# pyright: basic, reportMissingImports=false

import hashlib
import re
import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, cast

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from bylaw.audit.report.finding import cut, spelled, whole_text
from bylaw.consent.card import label_of, title_of
from bylaw.console.app import changed, shown, streamed
from bylaw.console.door import Asked, Visitor
from bylaw.console.page import running
from bylaw.console.service_log import ServiceLog, ServicePages, ShownConversation, changes, known_by
from bylaw.errors import UsageError
from bylaw.pack import Pack
from bylaw.record.approval import Approval, Attestation, read_attestation
from bylaw.shield.decision import Decision, Ground
from bylaw.shield.history import History, read_decision, read_history
from bylaw.trace.event import Call, Message
from bylaw.trace.event import Card as ShownCard

ANSWERED = 20
"""The number of recent answers to list."""
LOOKS = 3.0
"""The interval at which customers' cards are polled, in seconds. Each poll reads conversations."""

DECISIONS = 500
"""The number of recent decisions to search for customers' cards."""
LOOKED_UP = 6
SHORT = 300
"""Arguments with more than this many characters are shown folded."""
_FACT = re.compile(r"(\w+)\[([^\]]*)\]\.(\w+)")


class Card(Struct, frozen=True):
    approval: Approval
    title: str
    words: str
    """The message that the decision contains for reviewers."""
    questions: list[str]
    arguments: list[tuple[str, str, str]]
    """The name, short value and full value of each argument. The full value is empty if the short value is complete."""
    customer: list[tuple[str, str]]
    first: str
    said: list[tuple[str, str]]
    """The last messages before the call, each with its speaker."""
    looked_up: list[tuple[str, str]]
    missing: list[str]
    sentences: list[tuple[str, str, str]]
    """The policy, the sentence and the reason for each objection to the call."""
    left: float | None


class CustomerCard(Struct, frozen=True):
    """A card that is waiting for the customer's answer."""

    conversation: str
    card: str
    title: str
    text: str
    asked: float
    left: float | None
    attested: list[Attestation]
    """The attestations by reviewers that the customer has confirmed the card."""


class InboxPages(ServicePages):
    """The pages for requests in a decision log that are waiting for a reviewer."""

    section = "inbox"

    def __init__(self, service: ServiceLog) -> None:
        super().__init__(service)
        self._customer_cards: dict[str, tuple[float, str]] = {}
        """For each tenant, the time of the last poll and the cards that are waiting for a customer."""

    @shown("/")
    @shown("/inbox")
    def listed(self, asked: Asked) -> Response:
        return self._page("inbox.html", asked, **self._values(asked), done=None)

    @shown("/inbox/cards")
    def cards(self, asked: Asked) -> Response:
        """Return the cards without the rest of the page. The page requests them to refresh itself."""
        return self._page("inbox_cards.html", asked, **self._values(asked), done=None)

    @changed("/inbox/answer")
    def answer(self, asked: Asked) -> Response:
        asked.needs_answering()
        word, id = asked.form.get("word", ""), asked.form.get("id", "")
        if word not in ("approve", "reject"):
            raise UsageError("choose approve or reject")
        log = self._service.log
        say = log.approve if word == "approve" else log.reject
        done = say(id, by=asked.signed(), note=asked.text("note"), tenant=asked.visitor.tenant)
        return self._after(asked, f"{done.status}: {done.request.tool}, {done.conversation}", done)

    @changed("/inbox/undo")
    def undo(self, asked: Asked) -> Response:
        """Withdraw an approval whose call has not run yet."""
        asked.needs_answering()
        tenant, by = asked.visitor.tenant, asked.signed()
        done = self._service.log.withdraw(asked.form.get("id", ""), by=by, tenant=tenant)
        return self._after(asked, f"withdrawn: {done.request.tool}, {done.conversation}. The call was not run.", done)

    @changed("/inbox/attest")
    def attest(self, asked: Asked) -> Response:
        """Save an attestation that the customer has confirmed a card.

        The card continues to wait for the customer's own answer.
        """
        asked.needs_noting()
        conversation, card = asked.form.get("conversation", ""), asked.form.get("card", "")
        put = customer_cards(self._service, asked.visitor.tenant, time.time())
        if not any((each.conversation, each.card) == (conversation, card) for each in put):
            raise UsageError("this card is no longer waiting", hint="reload the page")
        given = Attestation(card, asked.signed(), asked.text("reason"))
        self._service.log.attest(conversation, given, tenant=asked.visitor.tenant)
        return self._after(asked, "Saved to the log. The card is still waiting for the customer's own answer.")

    @streamed("/inbox/events")
    async def events(self, request: Request, visitor: Visitor) -> Response:
        """Send an event whenever the waiting requests change."""
        return changes(lambda _: self._waiting(visitor.tenant), known_by(request))

    def _after(self, asked: Asked, told: str, done: Approval | None = None) -> Response:
        """Return the page, or only its changed part, with the result.

        After an answer (`done`), the page is locked briefly, so that a second tap does not answer the next call.
        """
        template = "inbox_cards.html" if asked.is_part else "inbox.html"
        return self._page(template, asked, **self._values(asked, told), done=done)

    def _waiting(self, tenant: str) -> str:
        now = time.time()
        found = self._service.log.approvals(tenant, status="waiting")
        looked, put = self._customer_cards.get(tenant, (0.0, ""))
        if now - looked > LOOKS:
            put = self._remember(tenant, customer_cards(self._service, tenant, now), now)
        names = "\n".join([*(each.id for each in found if not each.expires or each.expires > now), put])
        return hashlib.blake2b(names.encode("utf-8", "replace"), digest_size=8).hexdigest()

    def _remember(self, tenant: str, put: Iterable[CustomerCard], now: float) -> str:
        names = "\n".join(f"{each.card} {len(each.attested)}" for each in put)
        self._customer_cards[tenant] = now, names
        return names

    def _values(self, asked: Asked, told: str = "") -> dict[str, Any]:
        tenant, now, log = asked.visitor.tenant, time.time(), self._service.log
        waiting, wrong = log.supported(tenant, status="waiting")
        put = list(customer_cards(self._service, tenant, now))
        self._remember(tenant, put, now)
        cards = [
            card_of(self._service, tenant, each, now, may_answer=asked.visitor.may_answer)
            for each in waiting
            if not each.expires or each.expires > now
        ]
        return {
            "title": f"({len(cards)}) Inbox · Bylaw" if cards else "Inbox · Bylaw",
            "cards": cards,
            "put": put,
            "answered": log.recently_answered(tenant, ANSWERED),
            "wrong": wrong,
            "told": told,
            "waiting": self._waiting(tenant),
            "ago": lambda then: running(now - then),
            "left": lambda seconds: running(seconds, down=True),
        }


def card_of(service: ServiceLog, tenant: str, approval: Approval, now: float, *, may_answer: bool) -> Card:
    """Return the card for a waiting call. It hides the call's private values from visitors who may not answer."""
    history = service.history(tenant, approval.conversation)
    told = service.shown(history) if history is not None else ShownConversation([], str)
    seen = str if may_answer else told.scrubbed
    context = (history.opening.context if history is not None else None) or {}
    decision = _decision(history, approval.id)
    grounds = [ground for ground in decision.grounds if ground.answer != "allow"] if decision else []
    request, tool = approval.request, service.pack.schema.tools.get(approval.request.tool)
    parameters = tool.parameters if tool is not None else {}
    return Card(
        approval=approval,
        title=title_of(tool, request.tool),
        words=cut(seen(request.for_person or request.question), 4000),
        questions=[cut(seen(text), 600) for text in _questions(grounds) or [request.question] if text],
        arguments=[
            (label_of(name, parameters.get(name)), *_folded(seen(whole_text(value))))
            for name, value in (request.arguments or {}).items()
        ],
        customer=[(name, spelled(seen(whole_text(value)), 120)) for name, value in context.items()][:8],
        first=_first(told),
        said=_said(told),
        looked_up=_looked_up(service.pack, told),
        missing=[
            in_words(seen(fact)).removeprefix("the ")
            for fact in dict.fromkeys(fact for ground in grounds for fact in ground.missing)
        ],
        sentences=[
            (policy, text, cut(seen(why), 400)) for policy, text, why in map(partial(_sentence, service.pack), grounds)
        ],
        left=approval.expires - now if approval.expires else None,
    )


def customer_cards(service: ServiceLog, tenant: str, now: float) -> Iterator[CustomerCard]:
    """Yield the recent cards that the customer has not answered yet."""
    seen: set[str] = set()
    for entry in service.log.latest(tenant, "decision", limit=DECISIONS):
        card = read_decision(entry.body).card if entry.body is not None and b'"card"' in entry.body else None
        if card is None or card.id in seen or (card.expires is not None and card.expires <= now):
            continue
        seen.add(card.id)
        entries = service.entries(tenant, entry.conversation or "")
        history = read_history(entries)
        if history is None or not _is_open(history, card):
            continue
        words = [read_attestation(each.body) for each in entries if each.kind == "attestation" and each.body]
        call = next(event for event in history.events if isinstance(event, Call) and event.card == card)
        title = title_of(service.pack.schema.tools.get(call.tool), call.tool)
        text = service.shown(history).scrubbed(card.text)
        left = card.expires - now if card.expires is not None else None
        said = [word for word in words if word.card == card.id]
        yield CustomerCard(entry.conversation or "", card.id, title, cut(text, 2000), entry.time, left, said)


def in_words(text: str) -> str:
    """Describe facts in words. For example, `Membership[M878].tier` becomes "the tier of Membership M878"."""
    return _FACT.sub(lambda found: f"the {found[3].replace('_', ' ')} of {found[1]} {found[2]}", text)


def _folded(whole: str) -> tuple[str, str]:
    return cut(whole, SHORT), whole if len(whole) > SHORT else ""


def _is_open(history: History, card: ShownCard) -> bool:
    """Whether the card still waits for an answer: no later message comes from the user or confirms a card."""
    places = [number for number, event in enumerate(history.events) if isinstance(event, Call) and event.card == card]
    if not places:
        return False
    later = [event for event in history.events[places[-1] + 1 :] if isinstance(event, Message)]
    return not any(event.by == "user" or event.confirmation is not None for event in later)


def _decision(history: History | None, approval: str) -> Decision | None:
    made = history.decisions if history is not None else []
    return next((each for each in reversed(made) if each.approval == approval), None)


def _questions(grounds: list[Ground]) -> list[str]:
    asked = [each for ground in grounds for each in ground.questions if each.whom == "person"]
    texts = [in_words(each.text) for each in asked]
    return [text[:1].upper() + text[1:] for text in dict.fromkeys(texts)]


def _sentence(pack: Pack, ground: Ground) -> tuple[str, str, str]:
    policy = pack.policies.get(ground.policy)
    citations = ground.citations or (policy.citations if policy is not None else ())
    text = next((cite.text for cite in citations if cite.text), policy.definition if policy is not None else "")
    return ground.policy, cut(text or "", 2000), ground.because


def _first(told: ShownConversation) -> str:
    spoken = (each["text"] for each in told.events if each["type"] == "message" and each.get("by") == "user")
    return cut(next(spoken, ""), 600)


def _said(told: ShownConversation) -> list[tuple[str, str]]:
    messages = [each for each in told.events if each["type"] == "message"]
    return [(str(each.get("by") or "agent"), cut(each["text"], 600)) for each in messages[-2:]]


def _looked_up(pack: Pack, told: ShownConversation) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for event in told.events:
        made: Any = event.get("call") if event["type"] == "result" else None
        call = told.events[made] if isinstance(made, int) and made < len(told.events) else None
        if call is not None and call["type"] == "call":
            tool = pack.schema.tools.get(call["tool"])
            if tool is not None and tool.effect == "read":
                given = cast("dict[str, Any]", call["arguments"])
                arguments = ", ".join(f"{name}: {spelled(value, 60)}" for name, value in given.items())
                found.append((f"{title_of(tool, call['tool'])} ({cut(arguments, 100)})", cut(event["text"], 400)))
    return found[-LOOKED_UP:]
