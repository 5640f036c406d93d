"""A generated conversation in progress. Every move is reported to a host and kept as a true event."""

from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from bylaw.errors import BylawError
from bylaw.shield import Decision
from bylaw_lab.theorems import desk
from bylaw_lab.theorems.host import Host
from bylaw_lab.theorems.truth import (
    Allowed,
    CallKey,
    Issued,
    Meaning,
    Note,
    Outcome,
    PersonAnswered,
    PersonAsked,
    Pressed,
    Ran,
    Said,
    True_,
    key,
)

_POOL = ThreadPoolExecutor(4)


class Wanted(Struct):
    """A call that the agent is trying to make, with its last card."""

    tool: str
    arguments: dict[str, Any]
    card: Any = None

    @property
    def key(self) -> CallKey:
        return key(self.tool, self.arguments, desk.IRRELEVANT)


class Shown(NamedTuple):
    """A card that the user has seen, and the situation when it was first shown."""

    card: Any
    call: CallKey
    place: int
    """The number of true events before it."""
    at: float
    position: int
    """The number of messages that the shield had counted by then."""


class Story:
    pauses = 0.1
    """The share of allowed calls that are interrupted before they run."""
    reports_resumed = False
    """Whether the host always reports the result of a resumed call."""

    hides_facts = False
    """Whether the history for the last decision had no content in its results."""

    def __init__(self, rng: Random, host: Host, theorems: tuple[str, ...], note: str = "") -> None:
        self.rng, self.host, self.theorems = rng, host, theorems
        log = "no log" if host.log is None else "log"
        self.events: list[True_] = [Note(f"{type(host).__name__}, {log}, {note}")]
        self._calls = 0
        self.cards: list[Shown] = []
        """Every issued card."""
        self.approvals: list[str] = []
        """Every requested approval."""
        self.paused: list[tuple[str, Wanted, int]] = []
        """Allowed calls that were interrupted before they ran."""

    @property
    def now(self) -> float:
        return self.host.clock.now

    @property
    def facts(self) -> str:
        """Return the facts that a reviewer is asked about, in stories with such facts."""
        return ""

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def user(self, meaning: Meaning, text: str = "", **more: Any) -> None:
        text = text or desk.wording(self.rng, meaning)
        self.host.user(text)
        self.events.append(Said("user", text, self.now, self.host.principal, meaning, **more))

    def other(self) -> None:
        """Let a tool or another agent say yes in the role `user`."""
        text = desk.wording(self.rng, "yes")
        self.host.other(text)
        self.events.append(Said("other", text, self.now))

    def agent(self, text: str, *shows: CallKey, fees: tuple[str, ...] = (), as_card: bool = False) -> None:
        self.host.agent(text)
        self.events.append(Said("agent", text, self.now, shows=shows, fees=fees, as_card=as_card))

    def focus(self, wanted: Wanted) -> None:
        """Prepare the decision on a call so that it is based on `facts`."""

    def next_id(self) -> str:
        self._calls += 1
        return f"k{self._calls}"

    def attempt(self, wanted: Wanted) -> Decision | None:
        """Make a call: decide it, and run it if it is allowed."""
        self.focus(wanted)
        id = self.next_id()
        try:
            decision = self.host.decide(wanted.tool, wanted.arguments, id)
        except BylawError as error:
            self.events.append(Note(f"{wanted.tool}: {error}"))
            return None
        self.hides_facts = self.host.sees_only_told and "clear_results" in self.host.edits
        if self.host.edits:
            self.events.append(Note(f"history handed over: {', '.join(self.host.edits)}"))
            self.host.edits = []
        if decision.allowed:
            self.carry_out(decision, wanted, id)
        else:
            self._keep_questions(decision, wanted)
            self.host.not_allowed(decision, wanted.tool, wanted.arguments, id)
        return decision

    def race(self, wanted: Wanted, hosts: list[Host]) -> None:
        """Let these hosts make a call at the same moment, each in its own thread."""
        ids = [self.next_id() for _ in hosts]
        decided = list(_POOL.map(_decide, hosts, [wanted] * len(hosts), ids))
        for host, id, decision in zip(hosts, ids, decided, strict=True):
            if decision is None:
                continue
            self.host = host
            if decision.allowed:
                self.carry_out(decision, wanted, id)
            else:
                self._keep_questions(decision, wanted)

    def _keep_questions(self, decision: Decision, wanted: Wanted) -> None:
        if decision.card is not None:
            wanted.card = decision.card
            position = self.host.position if self.host.may_press else 0
            self.cards.append(Shown(decision.card, wanted.key, len(self.events), self.now, position))
            self.events.append(Issued(decision.card.id, wanted.key, self.now, desk.fee_on(decision.card.text)))
        elif decision.answer == "ask" and decision.approval and decision.approval not in self.approvals:
            self.approvals.append(decision.approval)
            asked = PersonAsked(
                decision.approval, wanted.key, self.now, self.facts, self.host.principal, self.host.chat
            )
            self.events.append(asked)

    def carry_out(self, decision: Decision, wanted: Wanted, id: str) -> None:
        """Run an allowed call, lose it, or pause it."""
        host, made = self.host, (wanted.tool, wanted.arguments, id)
        if wanted.tool.startswith("get_"):
            self.read(wanted, id)
            return
        self.events.append(self.allow(decision, wanted))
        if host.may_pause and self.chance(self.pauses):
            host.session.interrupt(id, decision)
            self.paused.append((id, wanted, len(self.events) - 1))
            self.events.append(Note(f"{id} is paused"))
            return
        way = self.rng.random()
        outcome: Outcome = "ran" if way < 0.5 else "may have run"
        if way < 0.5:
            host.result("done", *made)
        elif way < 0.6:
            host.result("time-out", *made, error=True)
        elif way < 0.7:
            host.result("REFUSED: closed today", *made, error=True, refused=True)
            outcome = "did not run"
        else:
            host.no_result(*made)
        self.events.append(Ran(wanted.key, outcome, host.principal))

    def read(self, wanted: Wanted, id: str) -> None:
        self.host.result("done", wanted.tool, wanted.arguments, id)

    def allow(self, decision: Decision, wanted: Wanted) -> Allowed:
        host = self.host
        has_times, chat = host.has_times, host.chat
        return Allowed(wanted.key, self.now, self.theorems, host.principal, has_times, self.facts, chat=chat)

    def resume(self) -> None:
        """Continue a paused call, which may already have continued."""
        if not self.paused:
            return
        id, wanted, place = self.rng.choice(self.paused)
        self.focus(wanted)
        decision = self.host.session.resume(id, wanted.tool, wanted.arguments)
        self.events.append(Note(f"{id} resumes: {'no' if decision is None else decision.answer}"))
        if decision is not None and decision.allowed:
            first = self.events[place]
            assert isinstance(first, Allowed)
            self.events.append(replace(self.allow(decision, wanted), resumes=place, agent=first.agent))
            # The host must report the result, because only the result shows that the paused call came after later
            # look-ups.
            if self.reports_resumed or self.chance(0.5):
                self.host.result("done", wanted.tool, wanted.arguments, id)
            self.events.append(Ran(wanted.key, "may have run", self.host.principal))

    def press(self, card: Any, call: CallKey, yes: bool) -> None:
        """Let the user press a button on a card, and report this immediately."""
        given: tuple[float | None, int | None] = (None, None)
        if self.chance(0.3):
            given = (self.now, self.host.position)
        if self.host.press(card.id, yes, *given):
            self.events.append(Pressed(card.id, call, yes, self.now, len(self.events), self.host.principal))

    def press_late(self, shown: Shown, yes: bool) -> None:
        """Report a button press from the time when the user first saw the card. The reported data may be wrong."""
        future, beyond = self.now + 9.0, shown.position + 1000
        given = self.rng.choice(
            (
                (None, None),
                (shown.at, None),
                (None, shown.position),
                (shown.at, shown.position),
                (future, shown.position),
                (shown.at, beyond),
            )
        )
        if self.host.press(shown.card.id, yes, *given):
            self.events.append(Note(f"reported with at, after = {given}, position was {shown.position}"))
            place = min(shown.place + 1, len(self.events))
            self.events.append(Pressed(shown.card.id, shown.call, yes, shown.at, place, self.host.principal))

    def person(self, yes: bool) -> None:
        """Let a reviewer answer an approval request, even if it was already answered."""
        log = self.host.log
        if log is None or not self.approvals:
            return
        approval = self.rng.choice(self.approvals[-2:])
        answer = log.approve if yes else log.reject
        try:
            answer(approval, by="ann", tenant=self.host.tenant)
        except BylawError as error:
            self.events.append(Note(f"person: {error}"))
        else:
            self.events.append(PersonAnswered(approval, yes, self.now))


def _decide(host: Host, wanted: Wanted, id: str) -> Decision | None:
    try:
        return host.decide(wanted.tool, wanted.arguments, id)
    except BylawError:
        return None
