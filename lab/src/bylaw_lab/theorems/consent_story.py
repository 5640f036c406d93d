"""Conversations about consent: well-behaved paths to a yes, disturbed at random."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from bylaw.record import Log
from bylaw_lab.theorems import desk
from bylaw_lab.theorems.host import HistoryHost, Host, StatelessHost
from bylaw_lab.theorems.story import Story, Wanted
from bylaw_lab.theorems.truth import HandedOver, ModelAnswered, True_, key

Move = Callable[[Story, Wanted], None]


def consent_story(rng: Random, log: Log | None, name: str) -> list[True_]:
    """Play one conversation; its true events."""
    certainty = rng.choice(("card", "told", "requested"))
    pack = desk.consent_pack(certainty, handover=rng.random() < 0.5)
    kinds: tuple[type[Host], ...] = (Host, Host, HistoryHost) if log is not None else (Host, HistoryHost, StatelessHost)
    principal = rng.choice(("", "P1", "P1"))
    model = Model(rng)
    host = rng.choice(kinds)(rng, pack, log, name, principal, answers=model.open)
    story = Story(rng, host, (f"T{desk.CERTAINTIES.index(certainty) + 1}-{certainty}",), f"consent: {certainty}")
    model.story = story
    for wanted in _wishes(rng):
        _pursue(story, wanted, certainty)
    return story.events


class Model:
    """A model that is asked whether the user agreed, and answers at random."""

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
        if wanted.tool == "transfer" and story.chance(0.2):
            called = Wanted(wanted.tool, {**called.arguments, "request_id": f"q{story.rng.randrange(9)}"})
        if type(story.host) is Host and certainty != "requested" and story.chance(0.08):
            story.race(called, [story.host, story.host])
        else:
            story.attempt(called)
        _disturb(story, wanted)
        while story.paused and story.chance(0.6):
            story.resume()


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
        other = rng.choice(story.cards)
        story.agent(f"{other.card.text}\n{text}", other.call, wanted.key, as_card=True)
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
    elif way < 0.97:
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
    story.host.clock.now += story.rng.choice((1.0, 899.0, 900.0, 901.0, 7199.0, 7201.0, 7300.0))


def _crashes(story: Story, wanted: Wanted) -> None:
    if story.host.may_reopen:
        story.host.reopen()


def _presses_late(story: Story, wanted: Wanted) -> None:
    """The host reports a press now that the user made earlier, or reports it a second time."""
    if not story.host.may_press or not story.cards:
        return
    shown = story.rng.choice(story.cards)
    if story.chance(0.7):
        story.press_late(shown, story.chance(0.85))
    else:
        story.press(shown.card, shown.call, story.chance(0.85))


def _hands_over(story: Story, wanted: Wanted) -> None:
    principal = "P2" if story.host.principal == "P1" else "P1"
    if story.host.principal and story.host.vouch(principal):
        story.events.append(HandedOver(principal))


def _resumes(story: Story, wanted: Wanted) -> None:
    story.resume()


def _looks_up(story: Story, wanted: Wanted) -> None:
    story.attempt(Wanted("get_balance", {"to": wanted.arguments["to"]}))


def _spoofs(story: Story, wanted: Wanted) -> None:
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
)
