"""The page of stops: list, add and lift them."""
# pyright: basic, reportMissingImports=false

import time
from typing import cast, get_args

from starlette.responses import Response

from bylaw.console.app import changed, shown
from bylaw.console.door import Asked
from bylaw.console.page import running
from bylaw.console.service_log import ServicePages
from bylaw.errors import UsageError
from bylaw.record.stop import Target
from bylaw.shield.history import read_opening
from bylaw.shield.stopping import check_target, unheard_of
from bylaw.text.duration import read_duration

TARGETS = {"tool": "A tool", "agent": "An agent", "policy": "Whatever a policy binds", "all": "Every write"}
SPANS = {"30m": "30 minutes", "2h": "2 hours", "8h": "8 hours", "1d": "a day", "7d": "a week"}
OVER = 50
"""Most past stops that are listed."""
RECENT = 7 * 86_400
"""Agents of the last so many seconds are suggested."""


class StopPages(ServicePages):
    section = "stops"

    @shown("/stops")
    def listed(self, asked: Asked, told: str = "") -> Response:
        """The current and the past stops."""
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
            raise UsageError("say what to stop: a tool, an agent, a policy or every write")
        if what == "all" and name:
            raise UsageError("every write is stopped without a name", hint="leave the name empty")
        check_target(self._service.pack, cast("Target", what), name)
        seconds = read_duration(asked.form.get("span", ""), unit=True)
        if seconds is None:
            raise UsageError("say how long it lasts", hint="such as 30m, 2h or 7d")
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
        return self.listed(asked, f"{told} Mind: {warning}." if warning else told)

    @changed("/stops/lift")
    def lift(self, asked: Asked) -> Response:
        asked.needs_answering()
        reason = asked.form.get("reason", "")
        if not reason.strip():
            raise UsageError("give a reason to lift it")
        id, tenant = asked.form.get("id", ""), asked.visitor.tenant
        lifted = self._service.log.lift(id, by=asked.signed(), reason=reason[:500], tenant=tenant)
        return self.listed(asked, f"{lifted.stop.id}: {lifted.stop.stopped} is no longer stopped.")

    def _agents(self, tenant: str, now: float) -> list[str]:
        """Agents of recent conversations."""
        bodies = self._service.log.openings(tenant, since=now - RECENT)[-1000:]
        return sorted({agent for body in bodies if (agent := read_opening(body).agent)})[:300]
