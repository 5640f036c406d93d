"""Conversations about consent: correct ways to get a yes, with random disturbances."""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from random import Random
from typing import Any

from msgspec.structs import replace

from bylaw.record import Log
from bylaw.shield import Decision
from bylaw_lab.theorems import desk
from bylaw_lab.theorems.host import CardsHost, HistoryHost, Host, StatelessHost
from bylaw_lab.theorems.story import Story, Wanted
from bylaw_lab.theorems.truth import Allowed, HandedOver, ModelAnswered, Shown, True_, key

Move = Callable[["Bank", Wanted], None]


def consent_story(rng: Random, log: Log | None, name: str) -> list[True_]:
    """Play one conversation and return its true events."""
    certainty = rng.choice(("card", "told", "requested"))
    fees = rng.random() < 0.35
    pack = desk.consent_pack(certainty, handover=rng.random() < 0.5, fees=fees)
    logged: tuple[type[Host], ...] = (Host, Host, HistoryHost, CardsHost)
    kinds = logged if log is not None else (Host, HistoryHost, StatelessHost)
    principal = rng.choice(("", "P1", "P1"))
    model = Model(rng)
    host = rng.choice(kinds)(rng, pack, log, name, principal, answers=model.open)
    theorem = f"T{desk.CERTAINTIES.index(certainty) + 1}-{certainty}"
    story = Bank(rng, host, (theorem,), f"consent: {certainty}{', fees' if fees else ''}")
    story.has_fees = fees
    model.story = story
    for wanted in _wishes(rng):
        _pursue(story, wanted, certainty)
    return story.events


class Bank(Story):
    """A conversation at the bank, with the true fees of its accounts."""

    has_fees = False
    """Whether the user must be shown the fee of a transfer."""

    def __init__(self, rng: Random, host: Host, theorems: tuple[str, ...], note: str) -> None:
        super().__init__(rng, host, theorems, note)
        self.fees = {names[0]: Decimal("1.50") for names in desk.ACCOUNTS}
        self._last_seen: dict[str, str] = {}

    def read(self, wanted: Wanted, id: str) -> None:
        """Look up an account. If the result is lost or cut off, the agent has seen nothing."""
        to, since, made = wanted.arguments["to"], len(self.events), (wanted.tool, wanted.arguments, id)
        fee = self.fees[next(names[0] for names in desk.ACCOUNTS if to in names)]
        record = json.dumps({"to": to, "fee": f"{fee:.2f}"})
        if self.chance(0.9):
            self.host.result(record, *made)
            self._last_seen[to] = f"{fee:.2f}"
            self.events.append(Shown(to, fee, since, self.now))
        elif self.chance(0.5):
            self.host.result(record[: self.rng.randrange(len(record))], *made)
        else:
            self.host.no_result(*made)

    def claimed_fee(self, wanted: Wanted) -> str:
        """Return the fee that the agent states: the last one that it saw, or any other. Empty if the call has none."""
        if not self.has_fees or wanted.tool != "transfer":
            return ""
        seen = self._last_seen.get(wanted.arguments["to"], "2.50")
        return seen if self.chance(0.85) else self.rng.choice(desk.FEES)

    def allow(self, decision: Decision, wanted: Wanted) -> Allowed:
        return replace(super().allow(decision, wanted), shows_fee=self.has_fees and wanted.tool == "transfer")


class Model:
    """A model that answers at random whether the user agreed."""

    story: Story | None = None

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def open(self, pack: object, events: object) -> Callable[[str, Any], bool | None]:
        return self._answer

    def _answer(self, predicate: str, act: Any) -> bool | None:
        assert self.story is not None
        yes = self._rng.choices((True, False, None), (70, 15, 15))[0]
        self.story.events.append(ModelAnswered(key(act.tool, act.arguments, desk.IRRELEVANT), yes))
        return yes


def _wishes(rng: Random) -> Iterator[Wanted]:
    """Yield the calls of the conversation. A later call often repeats the first, possibly with a small change."""
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


def _pursue(story: Bank, wanted: Wanted, certainty: str) -> None:
    """Play the agent's attempt at a call: it asks, gets an answer, and calls, with disturbances in between."""
    if story.chance(0.8):
        story.user("other", "I would like to move some money.")
    if story.has_fees and story.chance(0.85):
        story.attempt(Wanted("get_balance", {"to": wanted.arguments["to"]}))
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
        if wanted.tool == "transfer" and story.chance(0.2):
            called = Wanted(wanted.tool, {**called.arguments, "request_id": f"q{story.rng.randrange(9)}"})
        if type(story.host) is Host and certainty != "requested" and story.chance(0.08):
            story.race(called, [story.host, story.host])
        else:
            story.attempt(called)
        _disturb(story, wanted)
        while story.paused and story.chance(0.6):
            story.resume()


def _ask(story: Bank, wanted: Wanted, certainty: str) -> None:
    """Show the card, the pack's sentence, or a similar text."""
    rng = story.rng
    if wanted.card is not None and (certainty == "card" or story.chance(0.6)):
        text, as_card, fee = wanted.card.text, True, desk.fee_on(wanted.card.text)
    else:
        fee = story.claimed_fee(wanted)
        text, as_card = desk.sentence(wanted.tool, wanted.arguments, rng, fee), False
    way = rng.random()
    if way < 0.72:
        lead = rng.choice(("", "", *desk.COURTESIES))
        story.agent(lead + text, wanted.key, fees=(fee,), as_card=as_card)
    elif way < 0.8:
        story.agent(rng.choice(desk.MISLEADING) + text)
    elif way < 0.86:
        name = rng.choice(list(wanted.arguments))
        story.agent(text.replace(wanted.arguments[name], "77"))
    elif way < 0.92 and as_card and len(story.cards) > 1:
        other = rng.choice(story.cards)
        fees = (desk.fee_on(other.card.text), fee)
        story.agent(f"{other.card.text}\n{text}", other.call, wanted.key, fees=fees, as_card=True)
    else:
        story.agent(text, wanted.key, fees=(fee,), as_card=as_card)
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
    elif way < 0.97:
        story.other()
    else:
        story.user("other")
        story.user("yes")


def _disturb(story: Bank, wanted: Wanted) -> None:
    """Do nothing, or something that a hostile or careless party might do."""
    if story.chance(0.72):
        return
    story.rng.choice(_DISTURBANCES)(story, wanted)


def _speaks(story: Bank, wanted: Wanted) -> None:
    story.user(story.rng.choice(("no", "other", "other", "thanks", "yes")))


def _chats(story: Bank, wanted: Wanted) -> None:
    story.agent(story.rng.choice(desk.SMALL_TALK))


def _waits(story: Bank, wanted: Wanted) -> None:
    story.host.clock.now += story.rng.choice((1.0, 899.0, 900.0, 901.0, 7199.0, 7201.0, 7300.0))


def _crashes(story: Bank, wanted: Wanted) -> None:
    if story.host.may_reopen:
        story.host.reopen()


def _presses_late(story: Bank, wanted: Wanted) -> None:
    """Report an earlier press now, possibly for a second time."""
    if not story.host.may_press or not story.cards:
        return
    shown = story.rng.choice(story.cards)
    if story.chance(0.7):
        story.press_late(shown, story.chance(0.85))
    else:
        story.press(shown.card, shown.call, story.chance(0.85))


def _hands_over(story: Bank, wanted: Wanted) -> None:
    principal = "P2" if story.host.principal == "P1" else "P1"
    if story.host.principal and story.host.vouch(principal):
        story.events.append(HandedOver(principal))


def _resumes(story: Bank, wanted: Wanted) -> None:
    story.resume()


def _looks_up(story: Bank, wanted: Wanted) -> None:
    story.attempt(Wanted("get_balance", {"to": wanted.arguments["to"]}))


def _changes_fee(story: Bank, wanted: Wanted) -> None:
    account = next(names[0] for names in desk.ACCOUNTS if wanted.arguments["to"] in names)
    story.fees[account] = Decimal(story.rng.choice(desk.FEES))
    if story.chance(0.7):
        _looks_up(story, wanted)


def _spoofs(story: Bank, wanted: Wanted) -> None:
    story.other()


_DISTURBANCES: tuple[Move, ...] = (
    _speaks,
    _speaks,
    _chats,
    _waits,
    _crashes,
    _presses_late,
    _hands_over,
    _hands_over,
    _looks_up,
    _resumes,
    _spoofs,
    _changes_fee,
    _changes_fee,
)
