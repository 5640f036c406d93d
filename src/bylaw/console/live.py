"""Live decisions from the log of a service, and the conversation of each."""
# pyright: basic, reportMissingImports=false

import time
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from bylaw.audit.report.text import cut, spelled
from bylaw.console.app import shown, streamed
from bylaw.console.door import Asked, Refused, Visitor
from bylaw.console.inbox import in_words
from bylaw.console.page import from_path
from bylaw.console.service_log import ServicePages, changes, known_by
from bylaw.policy.posture import Posture
from bylaw.record.attestation import read_attestation
from bylaw.record.entry import Entry
from bylaw.shield.decision import Answer, Decision, Ground
from bylaw.shield.history import read_decision, read_history

LOOKED_AT = 2_000
"""Recent decisions that filters choose from."""
LISTED = 100
SHOWN = 400
"""Last entries of a conversation that its page shows."""
ANSWERS: tuple[str, ...] = get_args(Answer)
POSTURES: tuple[str, ...] = get_args(Posture)


class DecisionFilter(Struct, frozen=True):
    """A filter of decisions, as in the page's address."""

    answer: str = ""
    posture: str = ""
    tool: str = ""
    q: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "DecisionFilter":
        return cls(**{name: query.get(name, "").replace("\0", "")[:200] for name in cls.__struct_fields__})

    def matches(self, conversation: str, made: Decision) -> bool:
        text = " ".join((conversation, made.tool, *made.policies)).lower()
        exact = ((self.answer, made.answer), (self.posture, made.enforced), (self.tool, made.tool))
        return all(not wanted or wanted == found for wanted, found in exact) and self.q.lower() in text


class TimelineItem(Struct, frozen=True):
    """One entry of a conversation: a message, call, result, decision or attestation."""

    kind: str
    who: str
    text: str
    decision: Decision | None = None
    because: tuple[tuple[str, str], ...] = ()


class LivePages(ServicePages):
    section = "live"

    @shown("/live")
    def listed(self, asked: Asked) -> Response:
        wish = DecisionFilter.of(asked.query)
        entries = self._service.log.latest(asked.visitor.tenant, "decision", limit=LOOKED_AT)
        every = [(entry, read_decision(entry.body)) for entry in entries if entry.body is not None]
        rows = [(entry, made) for entry, made in every if wish.matches(entry.conversation or "", made)]
        return self._page(
            "live.html",
            asked,
            wish=wish,
            rows=rows[:LISTED],
            found=len(rows),
            looked_at=len(every),
            tools=sorted({made.tool for _, made in every})[:200],
            answers=ANSWERS,
            postures=POSTURES,
            last=every[0][0].number if every else 0,
            clock=lambda then: time.strftime("%H:%M:%S", time.gmtime(then)),
        )

    @streamed("/live/events")
    async def events(self, request: Request, visitor: Visitor) -> Response:
        """An event after each new decision."""
        given = known_by(request)
        after = int(given) if given.isascii() and given.isdigit() and len(given) < 16 else 0

        return changes(lambda known: self._last(visitor.tenant, known), after)

    def _last(self, tenant: str, after: int) -> int:
        found = self._service.log.latest(tenant, "decision", after=after, limit=1)
        return found[0].number if found else after

    @shown("/live/c/{name:path}")
    def conversation(self, asked: Asked) -> Response:
        """One conversation with its decisions."""
        name = from_path(asked.path["name"])
        entries = self._service.entries(asked.visitor.tenant, name)
        happened = list(self._happened(entries))
        if not happened:
            raise Refused("there is no such conversation", status=404)
        before = max(0, len(happened) - SHOWN)
        return self._page("live_conversation.html", asked, name=name, happened=happened[-SHOWN:], before=before)

    def _happened(self, entries: list[Entry]) -> Iterator[TimelineItem]:
        history = read_history(entries)
        if history is None:
            return
        told = self._service.shown(history)
        events = iter(told.events)
        for entry in entries:
            if entry.kind == "event":
                event = next(events, None)
                if event is not None:
                    yield _item(event)
            elif entry.kind == "attestation" and entry.body is not None:
                word = read_attestation(entry.body)
                yield TimelineItem("attestation", word.by, told.scrubbed(word.reason))
            elif entry.kind == "decision" and entry.body is not None:
                made = read_decision(entry.body)
                against = [each for each in made.grounds if each.answer != "allow"]
                because = tuple((each.policy, told.scrubbed(each.because or _unseen(each))) for each in against)
                yield TimelineItem("decision", "", made.tool, made, because)


def _unseen(ground: Ground) -> str:
    return f"{', '.join(map(in_words, ground.missing))} was never looked up" if ground.missing else ""


def _item(event: dict[str, Any]) -> TimelineItem:
    if event["type"] == "call":
        return TimelineItem("call", "agent", f"{event['tool']}({spelled(event['arguments'], 600)})")
    who = str(event.get("by") or ("tool" if event["type"] == "result" else "agent"))
    return TimelineItem(str(event["type"]), who, cut(str(event.get("text") or ""), 2000))
