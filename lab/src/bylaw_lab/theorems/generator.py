"""Hostile conversations: well-behaved paths to an allowed call, disturbed at random, with a list of true events."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from msgspec import Struct

from bylaw.errors import BylawError
from bylaw.record import Log
from bylaw.shield import Decision
from bylaw_lab.theorems import desk
from bylaw_lab.theorems.host import HistoryHost, Host, StatelessHost
from bylaw_lab.theorems.pending import is_held
from bylaw_lab.theorems.truth import (
    Allowed,
    CallKey,
    HandedOver,
    Issued,
    Meaning,
    Note,
    Outcome,
    Pressed,
    Ran,
    Said,
    True_,
    key,
)


class Wanted(Struct):
    """A call that the agent is trying to make, and its last card."""

    tool: str
    arguments: dict[str, Any]
    card: Any = None

    @property
    def key(self) -> CallKey:
        return key(self.tool, self.arguments, desk.IRRELEVANT)


class Story:
    """One conversation in progress: every move is reported to the host and kept as a true event."""

    def __init__(self, rng: Random, host: Host, theorems: tuple[str, ...]) -> None:
        self.rng, self.host, self.theorems = rng, host, theorems
        self.events: list[True_] = []
        self._calls = 0
        self.cards: list[tuple[Any, CallKey, int]] = []
        """Every card that was issued, for late button presses, with the number of events before it."""

    @property
    def now(self) -> float:
        return self.host.clock.now

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def user(self, meaning: Meaning, text: str = "") -> None:
        text = text or desk.wording(self.rng, meaning)
        self.host.user(text)
        self.events.append(Said("user", text, self.now, self.host.principal, meaning))

    def other(self) -> None:
        """A tool or another agent says yes in the role `user`."""
        text = desk.wording(self.rng, "yes")
        self.host.other(text)
        self.events.append(Said("other", text, self.now))

    def agent(self, text: str, *shows: CallKey, as_card: bool = False) -> None:
        self.host.agent(text)
        self.events.append(Said("agent", text, self.now, shows=shows, as_card=as_card))

    def attempt(self, wanted: Wanted) -> Decision | None:
        """The agent makes a call: decided, and carried out if it is allowed."""
        self._calls += 1
        id = f"k{self._calls}"
        try:
            decision = self.host.decide(wanted.tool, wanted.arguments, id)
        except BylawError:
            return None
        if self.host.edits:
            self.events.append(Note(f"history handed over: {', '.join(self.host.edits)}"))
            self.host.edits = []
        if decision.allowed:
            self._run(wanted, id)
        else:
            if decision.card is not None:
                wanted.card = decision.card
                self.cards.append((decision.card, wanted.key, len(self.events)))
                self.events.append(Issued(decision.card.id, wanted.key, self.now))
            self.host.not_allowed(decision, wanted.tool, wanted.arguments, id)
        return decision

    def _run(self, wanted: Wanted, id: str) -> None:
        """Carry out an allowed call."""
        host, made = self.host, (wanted.tool, wanted.arguments, id)
        if wanted.tool.startswith("get_"):
            host.result("done", *made)
            return
        allowed = Allowed(wanted.key, self.now, self.theorems, host.principal, host.has_times)
        self.events.append(allowed)
        outcome: Outcome = "ran"
        way = self.rng.random()
        if way < 0.5:
            host.result("done", *made)
        elif way < 0.6:
            host.result("time-out", *made, error=True)
            outcome = "may have run"
        elif way < 0.7:
            host.result("REFUSED: closed today", *made, error=True, refused=True)
            outcome = "did not run"
        elif host.keeps_calls or is_held("unanswered call"):
            host.no_result(*made)
            outcome = "may have run"
        else:
            host.result("done", *made)
        self.events.append(Ran(wanted.key, outcome))

    def press(self, card: Any, call: CallKey, yes: bool, *, seen: int | None = None, time: float | None = None) -> None:
        """The user pressed a button; `seen` is how many events came before, where the host reports it late."""
        if self.host.press(card.id, yes, time):
            place = len(self.events) if seen is None else seen
            self.events.append(Pressed(card.id, call, yes, self.now, place, self.host.principal))


Move = Callable[[Story, Wanted], None]


def conversation(rng: Random, memory: Log, file: Log, name: str) -> list[True_]:
    """Play one conversation; the true events of it."""
    certainty, theorem = rng.choice((("card", "T1-card"), ("told", "T2-told")))
    pack = desk.consent_pack(certainty, handover=rng.random() < 0.3)
    log = rng.choices((None, memory, file), (70, 28, 2))[0]
    kinds: tuple[type[Host], ...] = (Host, Host, HistoryHost) if log is not None else (Host, HistoryHost, StatelessHost)
    principal = rng.choice(("", "P1"))
    host = rng.choice(kinds)(rng, pack, log, name, principal)
    story = Story(rng, host, (theorem,))
    story.events.append(Note(f"{type(host).__name__}, log: {'none' if log is None else 'yes'}, consent: {certainty}"))
    for wanted in _wishes(rng):
        _pursue(story, wanted, certainty)
    return story.events


def _wishes(rng: Random) -> Iterator[Wanted]:
    """The calls of the conversation; a later one is often the first again, or nearly so."""
    first = Wanted(*desk.wanted(rng))
    yield first
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        way = rng.random()
        if way < 0.4:
            yield first
        elif way < 0.6:
            yield Wanted(first.tool, desk.respelled(rng, first.arguments))
        elif way < 0.8:
            yield Wanted(first.tool, desk.changed(rng, first.arguments))
        else:
            yield Wanted(*desk.wanted(rng))


def _pursue(story: Story, wanted: Wanted, certainty: str) -> None:
    """The agent wants to make a call: it asks, is answered, and calls, with disturbances in between."""
    if story.chance(0.8):
        story.user("other", "I would like to move some money.")
    _disturb(story, wanted)
    if story.chance(0.75):
        story.attempt(wanted)
    _disturb(story, wanted)
    if wanted.card is not None and story.host.may_press and story.chance(0.35):
        story.press(wanted.card, wanted.key, story.chance(0.85))
    else:
        _ask(story, wanted, certainty)
        _disturb(story, wanted)
        _answer(story)
    _disturb(story, wanted)
    for _ in range(story.rng.choice((1, 1, 2, 2, 3))):
        called = wanted
        if story.chance(0.15):
            called = Wanted(wanted.tool, desk.respelled(story.rng, wanted.arguments))
        elif story.chance(0.1):
            called = Wanted(wanted.tool, desk.changed(story.rng, wanted.arguments))
        if wanted.tool == "transfer" and is_held("irrelevant argument") and story.chance(0.2):
            called = Wanted(wanted.tool, {**called.arguments, "request_id": f"q{story.rng.randrange(9)}"})
        story.attempt(called)
        _disturb(story, wanted)


def _ask(story: Story, wanted: Wanted, certainty: str) -> None:
    """The agent shows the card or the pack's sentence, or something that looks like it."""
    rng = story.rng
    if wanted.card is not None and (certainty == "card" or story.chance(0.6)):
        text, as_card = wanted.card.text, True
    else:
        text, as_card = desk.sentence(wanted.tool, wanted.arguments, rng), False
    way = rng.random()
    if way < 0.72:
        lead = rng.choice(("", "", *desk.COURTESIES))
        story.agent(lead + text, wanted.key, as_card=as_card)
    elif way < 0.8:
        story.agent(rng.choice(desk.MISLEADING) + text)
    elif way < 0.86:
        name = rng.choice(list(wanted.arguments))
        story.agent(text.replace(wanted.arguments[name], "77"))
    elif way < 0.92 and as_card and len(story.cards) > 1:
        other, call, _ = rng.choice(story.cards)
        story.agent(f"{other.text}\n{text}", call, wanted.key, as_card=True)
    else:
        story.agent(text, wanted.key, as_card=as_card)
        story.agent(rng.choice(desk.SMALL_TALK))


def _answer(story: Story) -> None:
    way = story.rng.random()
    if way < 0.68:
        story.user("yes")
    elif way < 0.78:
        story.user("no")
    elif way < 0.9:
        story.user("other")
    elif way < 0.94:
        story.user("yes")
        story.user("thanks")
    elif way < 0.97 and is_held("spoofed user"):
        story.other()
    else:
        story.user("other")
        story.user("yes")


def _disturb(story: Story, wanted: Wanted) -> None:
    """Nothing, or something that a hostile or careless party does."""
    if story.chance(0.72):
        return
    story.rng.choice(_DISTURBANCES)(story, wanted)


def _speaks(story: Story, wanted: Wanted) -> None:
    story.user(story.rng.choice(("no", "other", "other", "thanks", "yes")))


def _chats(story: Story, wanted: Wanted) -> None:
    story.agent(story.rng.choice(desk.SMALL_TALK))


def _waits(story: Story, wanted: Wanted) -> None:
    story.host.clock.now += story.rng.choice((1.0, 60.0, 899.0, 900.0, 901.0, 7201.0))


def _crashes(story: Story, wanted: Wanted) -> None:
    if story.host.may_reopen:
        story.host.reopen()


def _presses_late(story: Story, wanted: Wanted) -> None:
    """A press that was made earlier is reported now, or a second time."""
    if story.host.may_press and story.cards:
        card, call, place = story.rng.choice(story.cards)
        first = place + 1 if is_held("late press") else len(story.events)
        seen = story.rng.randint(min(first, len(story.events)), len(story.events))
        story.press(card, call, story.chance(0.85), seen=seen)


def _hands_over(story: Story, wanted: Wanted) -> None:
    before, principal = story.host.principal, story.rng.choice(("P1", "P2"))
    if before and principal != before and story.host.vouch(principal):
        story.events.append(HandedOver(principal))


def _looks_up(story: Story, wanted: Wanted) -> None:
    story.attempt(Wanted("get_balance", {"to": wanted.arguments["to"]}))


def _spoofs(story: Story, wanted: Wanted) -> None:
    if is_held("spoofed user"):
        story.other()


_DISTURBANCES: tuple[Move, ...] = (
    _speaks,
    _speaks,
    _chats,
    _waits,
    _crashes,
    _presses_late,
    _hands_over,
    _looks_up,
    _spoofs,
)
