"""Decides the calls of all tenants. Each tenant has its own shield, but all shields share a pack and a log."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from bylaw.engine.conversation import OpenAnswers, OpenRequests
from bylaw.engine.door import AnotherPrincipal
from bylaw.errors import BylawError
from bylaw.pack import Pack
from bylaw.record import Log
from bylaw.record.approval import Approval, Status
from bylaw.record.entry import Entry
from bylaw.record.journal import LogError
from bylaw.record.stop import Stopped
from bylaw.service.fairness import Scheduler
from bylaw.service.metrics import Metrics
from bylaw.service.request import (
    ApprovalAnswer,
    Approvals,
    BadRequest,
    Complaint,
    ConfirmAnswer,
    ConfirmRequest,
    DecideAnswer,
    DecideRequest,
    EventsAnswer,
    EventsRequest,
    Failure,
    StopList,
    StopRequest,
    decided,
    named,
    refusal,
)
from bylaw.shield import Decision, LiveSession
from bylaw.shield.history import linked
from bylaw.shield.session import TurnCall
from bylaw.shield.shield import PinnedPack, Shield
from bylaw.shield.stopping import unheard_of
from bylaw.text.cost import TooCostly
from bylaw.trace.event import Card

SESSIONS = 10_000
"""The maximum number of sessions in memory. Any other session is read from the log when it is needed."""
WRONG = (BylawError, msgspec.MsgspecError, UnicodeError, RecursionError)
"""Errors that are answered with an error response."""
TOGETHER_ASKING = 200
"""The number of concurrent requests per tenant if requests may wait for a model or a host tool."""
PATIENCE = 2.0
"""A log that does not respond for this many seconds counts as unresponsive."""
NO_NAME = "the request names no conversation, so earlier events are unknown"


class Desk:
    """Decides the calls of all tenants in one event loop."""

    def __init__(
        self,
        pack: Pack,
        log: Log,
        *,
        earlier: Iterable[Pack] = (),
        sessions: int = SESSIONS,
        answers: OpenAnswers | None = None,
        requests: OpenRequests | None = None,
    ) -> None:
        self.pack = pack
        self.log = log
        self.metrics = Metrics()
        self._earlier = tuple(earlier)
        self._answers, self._requests = answers, requests
        asks = answers is not None or requests is not None or pack.postures.resolve != "agent"
        self.scheduler = Scheduler(TOGETHER_ASKING) if asks else Scheduler()
        self._shields: dict[str, Shield] = {}
        self._sessions: OrderedDict[tuple[str, str], LiveSession] = OrderedDict()
        self._most = sessions
        self._probe: asyncio.Task[list[Entry]] | None = None
        """The test of the log that is currently running, or None."""

    @property
    def open_sessions(self) -> int:
        return len(self._sessions)

    async def decide(self, tenant: str, request: DecideRequest) -> DecideAnswer:
        """Decide each call of a request. On return, the decisions are on disk."""
        calls = request.asked()
        self._refuse_if_blocked()
        if request.messages is not None:
            session = self._shield(tenant).session(context=request.context, agent=request.agent)
            asked = (request.messages, request.tool, request.arguments)
            found = [await session.decide_after_async(*asked, id=request.id)]
        else:
            session, found = await self._taken(tenant, request, calls)
        self.metrics.events[tenant] += len(request.events)
        for decision in found:
            self.metrics.decisions[tenant, decision.answer, str(decision.allowed).lower()] += 1
        pack = session.pack
        name = f"{pack.name} {pack.version} {pack.digest}"
        return DecideAnswer([decided(each, _home(session.id, each.card), name) for each in found])

    async def take(self, tenant: str, request: EventsRequest) -> EventsAnswer:
        request.check()
        self._refuse_if_blocked()
        session, _ = await self._taken(tenant, request, [])
        self.metrics.events[tenant] += len(request.events)
        return EventsAnswer(session.id, len(request.events), session.position)

    async def _taken(
        self, tenant: str, request: DecideRequest | EventsRequest, calls: Sequence[TurnCall]
    ) -> tuple[LiveSession, list[Decision]]:
        """Record a request's events and decide its calls. If the principal is another one, this happens in a separate
        conversation.
        """
        name, context = request.conversation, request.context
        for each in (name, linked(name, context)) if name and context else (name,):
            session = self._session(tenant, each, context, request.agent)
            try:
                now = session.shield.clock()
                mutations = [event.mutation(now) for event in request.events]
                taken = session.take_async(
                    mutations, calls, named=named(request), agent=request.agent, context=context or {}
                )
                return session, await taken
            except AnotherPrincipal:
                # The conversation keeps its own principal.
                self._sessions.pop((tenant, each), None)
                if each != name:
                    raise
            except BaseException:
                self._discard(session)
                raise
        raise AssertionError("a linked conversation belongs to its own principal")

    async def confirm(self, tenant: str, request: ConfirmRequest) -> ConfirmAnswer:
        request.check()
        self._refuse_if_blocked()
        name, context = request.conversation or request.home, request.context
        if context and request.home == linked(name, context):
            # The person who answers has a separate conversation, whose name hosts do not need to know.
            name = request.home
        session = self._session(tenant, name, context, request.agent)
        try:
            await session.confirm_async(
                request.card,
                request.answer == "yes",
                by=request.by,
                at=request.at,
                after=request.after,
                named=named(request),
                context=context or {},
            )
        except BaseException:
            self._discard(session)
            raise
        # If the host keeps the history, later requests look for the card's answer in the log.
        self._sessions.pop((tenant, session.id), None)
        return ConfirmAnswer(session.id, request.card, request.answer)

    async def approvals(self, tenant: str, status: Status | None) -> Approvals:
        """Return the approvals that were requested by a tenant's agents."""
        return Approvals(*await asyncio.to_thread(lambda: self.log.supported(tenant, status=status)))

    async def answer(self, tenant: str, given: ApprovalAnswer) -> Approval:
        say = self.log.approve if given.answer == "approve" else self.log.reject
        return await asyncio.to_thread(lambda: say(given.id, by=given.by, note=given.note, tenant=tenant))

    async def stops(self, tenant: str, *, every: bool) -> StopList:
        found = await asyncio.to_thread(self.log.every_stop, tenant)
        return StopList([each for each in found if every or each.stands(time.time())])

    async def stop(self, tenant: str, given: StopRequest) -> Stopped:
        """Add or lift a stop. On return, it applies."""
        given.check(self.pack)

        def done() -> Stopped:
            told = {"by": given.by, "reason": given.reason, "tenant": tenant}
            if given.what is None:
                return self.log.lift(given.lift, **told)
            until = time.time() + given.seconds
            made = self.log.stop(given.what, given.name, answer=given.answer, until=until, **told)
            return Stopped(made, warning=unheard_of(self.log, tenant, given.what, given.name))

        return await asyncio.to_thread(done)

    async def log_fault(self) -> str:
        """Return why the log cannot be read or written now. Empty if it can."""
        if blocked := self._blocked():
            return blocked
        if fault := self.log.journal.fault:
            return fault
        try:
            if self._probe is None or self._probe.done():
                # If a test does not return, do not start another.
                self._probe = asyncio.create_task(asyncio.to_thread(self.log.conversation, "", ""))
            await asyncio.wait_for(asyncio.shield(self._probe), PATIENCE)
        except TimeoutError:
            return f"`{self.log.name}` could not be read for {PATIENCE:.0f} seconds"
        except BylawError as error:
            return str(error)
        return ""

    def _blocked(self) -> str:
        """Return why the log cannot be written now. Empty if it can."""
        seconds = self.log.journal.waits_for
        return f"`{self.log.name}` has not finished writing after {seconds:.0f} seconds" if seconds > PATIENCE else ""

    def _refuse_if_blocked(self) -> None:
        """Raise an error if the log cannot be written, because the caller would wait in vain."""
        if blocked := self._blocked():
            raise LogError(blocked)

    def _shield(self, tenant: str) -> Shield:
        shield = self._shields.get(tenant)
        if shield is None:
            shield = self._shields[tenant] = Shield(
                self.pack,
                log=self.log,
                tenant=tenant,
                earlier=self._earlier,
                answers=self._answers,
                requests=self._requests,
            )
            shield.scheduled = partial(self.scheduler.run, tenant)
        return shield

    def _session(self, tenant: str, name: str, context: Mapping[str, Any] | None, agent: str) -> LiveSession:
        shield = self._shield(tenant)
        if not name:
            return shield.session(context=context, agent=agent, lacks=NO_NAME)
        place = (tenant, name)
        session = self._sessions.get(place)
        if session is None:
            session = self._sessions[place] = shield.session(name, context=context, agent=agent)
        self._sessions.move_to_end(place)
        while len(self._sessions) > self._most:
            self._sessions.popitem(last=False)
        return session

    def _discard(self, session: LiveSession) -> None:
        """Discard the conversation that a rejected request would have begun."""
        place = (session.shield.tenant, session.id)
        if not session.has_begun and self._sessions.get(place) is session:
            del self._sessions[place]


def _home(conversation: str, card: Card | str | None) -> str:
    """Return the conversation that contains a decision or its card, because the card may come from an earlier
    conversation.
    """
    name = card.id if isinstance(card, Card) else card
    return name.rpartition("/")[0] if name else conversation


def failure(error: Exception) -> tuple[int, Failure]:
    """Return the response to an error. It states that no call in the request was decided."""
    if not isinstance(error, BylawError):
        return 400, refusal(f"the request cannot be read: {error}")
    status = 400
    if isinstance(error, LogError):
        status = 503
    elif isinstance(error, PinnedPack):
        status = 409
    elif isinstance(error, TooCostly):
        status = 413
    elif not isinstance(error, BadRequest):
        status = 422
    return status, Failure(Complaint(error.code, str(error)))
