"""Shows live decisions from a service's log, each with its conversation."""
# pyright: basic, reportMissingImports=false

import time
from collections.abc import Iterator, Mapping
from typing import Any, cast, get_args

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from bylaw.audit.report.finding import cut, spelled
from bylaw.console.app import changed, shown, streamed
from bylaw.console.door import Asked, Refused, Visitor
from bylaw.console.inbox import in_words
from bylaw.console.page import from_path, running
from bylaw.console.service_log import ServicePages, changes, known_by
from bylaw.errors import UsageError
from bylaw.policy.tool import Posture
from bylaw.record.approval import read_attestation
from bylaw.record.entry import Entry
from bylaw.record.stop import Target
from bylaw.shield.decision import Answer, Decision, Ground
from bylaw.shield.history import read_decision, read_history, read_opening
from bylaw.shield.stopping import check_target, unheard_of
from bylaw.text.day import read_duration

LOOKED_AT = 2_000
"""The number of recent decisions to search with a filter."""
LISTED = 100
SHOWN = 400
"""The number of entries to show from the end of a conversation."""
ANSWERS: tuple[str, ...] = get_args(Answer)
POSTURES: tuple[str, ...] = get_args(Posture)


class DecisionFilter(Struct, frozen=True):
    """A filter for decisions, taken from a page's address."""

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
    """An entry of a conversation: a message, call, result, decision or attestation."""

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
        """Send an event whenever a new decision is logged."""
        given = known_by(request)
        after = int(given) if given.isascii() and given.isdigit() and len(given) < 16 else 0

        return changes(lambda known: self._last(visitor.tenant, known), after)

    def _last(self, tenant: str, after: int) -> int:
        found = self._service.log.latest(tenant, "decision", after=after, limit=1)
        return found[0].number if found else after

    @shown("/live/c/{name:path}")
    def conversation(self, asked: Asked) -> Response:
        """Show a conversation together with its decisions."""
        name = from_path(asked.path["name"])
        entries = self._service.entries(asked.visitor.tenant, name)
        happened = list(self._happened(entries))
        if not happened:
            raise Refused("this conversation is not in the log", status=404)
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
    return f"{', '.join(map(in_words, ground.missing))} was not looked up" if ground.missing else ""


def _item(event: dict[str, Any]) -> TimelineItem:
    if event["type"] == "call":
        return TimelineItem("call", "agent", f"{event['tool']}({spelled(event['arguments'], 600)})")
    who = str(event.get("by") or ("tool" if event["type"] == "result" else "agent"))
    return TimelineItem(str(event["type"]), who, cut(str(event.get("text") or ""), 2000))


TARGETS = {"tool": "A tool", "agent": "An agent", "policy": "All writes under a policy", "all": "Every write"}
SPANS = {"30m": "30 minutes", "2h": "2 hours", "8h": "8 hours", "1d": "a day", "7d": "a week"}
OVER = 50
"""The maximum number of ended stops to list."""
RECENT = 7 * 86_400
"""The page suggests the agents that were seen within this many seconds."""


class StopPages(ServicePages):
    section = "stops"

    @shown("/stops")
    def listed(self, asked: Asked, told: str = "") -> Response:
        """List the current stops and the ended stops."""
        now, tenant = time.time(), asked.visitor.tenant
        every = self._service.log.every_stop(tenant)
        tools = self._service.pack.schema.tools
        return self._page(
            "stops.html",
            asked,
            told=told,
            standing=[each.stop for each in reversed(every) if each.stands(now)],
            over=[each for each in reversed(every) if not each.stands(now)][:OVER],
            targets=TARGETS,
            spans=SPANS,
            names={
                "tool": sorted(name for name, tool in tools.items() if tool.effect == "write")[:300],
                "agent": self._agents(tenant, now),
                "policy": sorted(self._service.pack.policies)[:300],
            },
            ago=lambda then: running(now - then),
            left=lambda then: running(then - now, down=True),
        )

    @changed("/stops/make")
    def make(self, asked: Asked) -> Response:
        asked.needs_answering()
        what, name = asked.form.get("what", ""), asked.form.get("name", "").strip()
        if what not in get_args(Target):
            raise UsageError("choose what to stop: a tool, an agent, a policy or every write")
        if what == "all" and name:
            raise UsageError("a stop of all writes cannot have a name", hint="leave the name empty")
        check_target(self._service.pack, cast("Target", what), name)
        seconds = read_duration(asked.form.get("span", ""), unit=True)
        if seconds is None:
            raise UsageError("choose a duration", hint="such as 30m, 2h or 7d")
        made = self._service.log.stop(
            cast("Target", what),
            name,
            by=asked.signed(),
            reason=asked.form.get("reason", ""),
            until=time.time() + seconds,
            answer="ask" if asked.form.get("answer") == "ask" else "deny",
            tenant=asked.visitor.tenant,
        )
        warning = unheard_of(self._service.log, asked.visitor.tenant, made.what, made.name)
        told = f"{made.id}: {made.stopped} is stopped until {made.end}."
        return self.listed(asked, f"{told} Warning: {warning}." if warning else told)

    @changed("/stops/lift")
    def lift(self, asked: Asked) -> Response:
        asked.needs_answering()
        reason = asked.form.get("reason", "")
        if not reason.strip():
            raise UsageError("enter a reason for lifting the stop")
        id, tenant = asked.form.get("id", ""), asked.visitor.tenant
        lifted = self._service.log.lift(id, by=asked.signed(), reason=reason[:500], tenant=tenant)
        return self.listed(asked, f"{lifted.stop.id}: {lifted.stop.stopped} is no longer stopped.")

    def _agents(self, tenant: str, now: float) -> list[str]:
        bodies = self._service.log.openings(tenant, since=now - RECENT)[-1000:]
        return sorted({agent for body in bodies if (agent := read_opening(body).agent)})[:300]
