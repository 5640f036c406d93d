"""The inbox: calls that wait for a person, each with what is needed to say yes or no, also on a phone."""
# pyright: basic, reportMissingImports=false

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from bylaw.audit.line import conversation_line
from bylaw.audit.redaction import Redaction
from bylaw.audit.report.folder import cut, spelled
from bylaw.console.app import changed, shown, streamed
from bylaw.console.page import page
from bylaw.console.sign_in import needs_answering
from bylaw.console.visitor import Asked, Visitor
from bylaw.errors import UsageError
from bylaw.pack import Pack
from bylaw.record import Log
from bylaw.record.approval import Approval
from bylaw.shield.decision import Decision, Ground
from bylaw.shield.history import History, read_decision, read_history
from bylaw.trace.event import Call, Message
from bylaw.trace.event import Card as PutCard

EVERY = 1.0
"""Seconds between two looks whether anything waits."""
STREAM = 8.0
"""Seconds that a browser listens at a time; it asks again by itself, and a server that stops waits no longer."""
DECISIONS = 500
"""Decisions of late that are looked through for cards."""
ANSWERED = 20
"""Answers of late that are listed."""
LOOKED_UP = 6


class Card(Struct, frozen=True):
    """One call that waits, as a person reads it."""

    approval: Approval
    words: str
    """All that the decision says to a person, in one text."""
    questions: list[str]
    arguments: list[tuple[str, str]]
    customer: list[tuple[str, str]]
    said: list[tuple[str, str]]
    """The last exchange: who, and what."""
    looked_up: list[tuple[str, str]]
    missing: list[str]
    sentences: list[tuple[str, str, str]]
    """What stands against it: the policy, its sentence, and why."""
    left: float | None
    """Seconds until nobody waits any more."""
    wrong: str = ""
    """Why the log does not bear it out: it can then not be answered."""


class Put(Struct, frozen=True):
    """A card that waits for a customer's answer: nobody else's counts."""

    conversation: str
    tool: str
    text: str
    asked: float
    left: float | None


class InboxPages:
    """What waits for a person, out of a decision log."""

    def __init__(self, log: Log, pack: Pack) -> None:
        self._log = log
        self._pack = pack
        self._redaction = Redaction(pack)

    def routes(self) -> list[Route]:
        """What it is found under."""
        return [
            shown("/", self.listed),
            shown("/inbox", self.listed),
            shown("/inbox/cards", self.cards),
            changed("/inbox/answer", self.answer),
            streamed("/inbox/events", self.events),
        ]

    def listed(self, asked: Asked) -> Response:
        """The page."""
        return page("inbox.html", headers=asked.headers, **self._values(asked))

    def cards(self, asked: Asked) -> Response:
        """Only the cards, for a page that is open."""
        return page("inbox_cards.html", headers=asked.headers, **self._values(asked))

    def answer(self, asked: Asked) -> Response:
        """A person's yes or no to one call."""
        needs_answering(asked.visitor)
        word, id = asked.form.get("word", ""), asked.form.get("id", "")
        if word not in ("approve", "reject"):
            raise UsageError("say whether you approve or reject it")
        say = self._log.approve if word == "approve" else self._log.reject
        note = " ".join(asked.form.get("note", "").split())[:1000]
        done = say(id, by=asked.signed(), note=note, tenant=asked.visitor.tenant)
        template = "inbox_cards.html" if asked.is_part else "inbox.html"
        told = f"{done.status}: {done.request.tool}, {done.conversation}"
        return page(template, headers=asked.headers, **self._values(asked, told))

    async def events(self, request: Request, visitor: Visitor) -> Response:
        """A line whenever something comes to wait, or waits no more."""

        async def lines() -> AsyncIterator[str]:
            yield "retry: 1000\n\n"
            known: object = request.query_params.get("known", "")
            end = time.monotonic() + STREAM
            while time.monotonic() < end:
                waiting = await run_in_threadpool(self._waiting, visitor.tenant)
                if waiting != known:
                    known = waiting
                    yield f"event: changed\ndata: {waiting}\n\n"
                await asyncio.sleep(EVERY)

        return StreamingResponse(lines(), media_type="text/event-stream")

    def _waiting(self, tenant: str) -> str:
        """Which calls wait, in a word that changes when they do."""
        now = time.time()
        found = self._log.approvals(tenant, status="waiting")
        names = "\n".join(each.id for each in found if not each.expires or each.expires > now)
        return hashlib.blake2b(names.encode("utf-8", "replace"), digest_size=8).hexdigest()

    def _values(self, asked: Asked, told: str = "") -> dict[str, Any]:
        tenant, now = asked.visitor.tenant, time.time()
        waiting, wrong = self._log.supported(tenant, status="waiting")
        cards = [self._card(tenant, each, now) for each in waiting if not each.expires or each.expires > now]
        every = [each for each in self._log.approvals(tenant) if each.answer is not None]
        answered = sorted(every, key=lambda each: each.answered, reverse=True)[:ANSWERED]
        return {
            "asked": asked,
            "section": "inbox",
            "cards": cards,
            "put": list(self._put(tenant, now)),
            "answered": answered,
            "wrong": wrong,
            "told": told,
            "waiting": self._waiting(tenant),
            "pack": self._pack,
            "ago": lambda then: _span(now - then),
            "span": _span,
        }

    def _put(self, tenant: str, now: float) -> Iterator[Put]:
        """Cards of late that customers have not answered yet."""
        seen: set[str] = set()
        for entry in self._log.latest(tenant, "decision", limit=DECISIONS):
            card = read_decision(entry.body).card if entry.body is not None and b'"card"' in entry.body else None
            if card is None or card.id in seen or (card.expires is not None and card.expires <= now):
                continue
            seen.add(card.id)
            history = read_history(self._log.conversation(tenant, entry.conversation or ""))
            if history is None or not _is_open(history, card):
                continue
            call = next(event for event in history.events if isinstance(event, Call) and event.card == card)
            text = self._redaction.cover(history.events, None, ()).scrubbed(card.text) if self._redaction else card.text
            left = card.expires - now if card.expires is not None else None
            yield Put(entry.conversation or "", call.tool, cut(text, 2000), entry.time, left)

    def _card(self, tenant: str, approval: Approval, now: float) -> Card:
        history = read_history(self._log.conversation(tenant, approval.conversation))
        decision = _decision(history, approval.id)
        grounds = [ground for ground in decision.grounds if ground.answer != "allow"] if decision else []
        request = approval.request
        return Card(
            approval=approval,
            words=cut(request.for_person or request.question, 4000),
            questions=_questions(grounds) or ([cut(request.question, 600)] if request.question else []),
            arguments=[(name, spelled(value, 300)) for name, value in (request.arguments or {}).items()],
            customer=[(name, spelled(value, 120)) for name, value in (_context(history)).items()][:8],
            said=self._said(history),
            looked_up=self._looked_up(history),
            missing=list(dict.fromkeys(fact for ground in grounds for fact in ground.missing)),
            sentences=[_sentence(self._pack, ground) for ground in grounds],
            left=approval.expires - now if approval.expires else None,
        )

    def _told(self, history: History | None) -> list[dict[str, Any]]:
        """The events of a conversation without what the pack calls private."""
        if history is None:
            return []
        trajectory = history.trajectory("")
        told = conversation_line(trajectory, trajectory.agent, None)
        if self._redaction:
            told = self._redaction.cover(trajectory.events, None, ()).conversation(told)
        return told["events"]

    def _said(self, history: History | None) -> list[tuple[str, str]]:
        messages = [each for each in self._told(history) if each["type"] == "message"]
        return [(str(each.get("by") or "agent"), cut(each["text"], 600)) for each in messages[-2:]]

    def _looked_up(self, history: History | None) -> list[tuple[str, str]]:
        events = self._told(history)
        tools = self._pack.schema.tools
        found: list[tuple[str, str]] = []
        for event in events:
            made = event.get("call") if event["type"] == "result" else None
            call = events[made] if isinstance(made, int) and made < len(events) else None
            if call is not None and call["type"] == "call":
                tool = tools.get(call["tool"])
                if tool is not None and tool.effect == "read":
                    found.append((f"{call['tool']}({spelled(call['arguments'], 80)})", cut(event["text"], 400)))
        return found[-LOOKED_UP:]


def _is_open(history: History, card: PutCard) -> bool:
    """Whether nothing was said since the card was put that could be an answer to it."""
    places = [number for number, event in enumerate(history.events) if isinstance(event, Call) and event.card == card]
    if not places:
        return False
    later = [event for event in history.events[places[-1] + 1 :] if isinstance(event, Message)]
    return not any(event.by == "user" or event.confirmation is not None for event in later)


def _decision(history: History | None, approval: str) -> Decision | None:
    made = history.decisions if history is not None else []
    return next((each for each in reversed(made) if each.approval == approval), None)


def _questions(grounds: list[Ground]) -> list[str]:
    """What a person is asked, each once."""
    texts = [cut(each.text, 600) for ground in grounds for each in ground.questions if each.whom == "person"]
    return [text[:1].upper() + text[1:] for text in dict.fromkeys(texts)]


def _context(history: History | None) -> dict[str, Any]:
    return dict(history.opening.context or {}) if history is not None else {}


def _sentence(pack: Pack, ground: Ground) -> tuple[str, str, str]:
    policy = pack.policies.get(ground.policy)
    citations = ground.citations or (policy.citations if policy is not None else ())
    text = next((cite.text for cite in citations if cite.text), policy.definition if policy is not None else "")
    return ground.policy, cut(text or "", 2000), cut(ground.because, 400)


def _span(seconds: float) -> str:
    """A time in words that are short enough for a phone."""
    if seconds < 90:
        return f"{max(0, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{round(seconds / 3600)} h" if seconds < 172_800 else f"{round(seconds / 86_400)} days"
