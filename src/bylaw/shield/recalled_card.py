"""Cards of hosts that keep the history themselves: each of their requests is a conversation of its own, and the card
that one of them was answered with is found again by the next, with what the user said to it.

It is found by the call, the card's text, the pack and who is signed in, where the history goes on from the one that the
card was put in and the user has said nothing since. Where nobody is signed in, two users may say the very same, so none
is found.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from bylaw.consent import standing_of
from bylaw.engine.door import PRINCIPAL
from bylaw.record.approval import fingerprint
from bylaw.record.entry import Draft
from bylaw.record.log import Log
from bylaw.shield.decision import Decision
from bylaw.shield.history import event_body, read_history
from bylaw.trace.event import Call, Card, Confirmation, Event, Message, Result

AGAIN = 200
"""How many cards for the very same call are looked through."""


class Recalled(Struct, frozen=True):
    """A card that waits, or that the user has said yes to; or, where nothing was found, what to call the entry that
    puts the next."""

    name: str
    card: Card | None = None
    home: str = ""
    """The conversation that put it."""
    yes: Message | None = None

    def name_of(self, decision: Decision) -> str:
        """What the entry of a decision is called, where it puts a card which another request may ask for."""
        return self.name if decision.card is not None and decision.card.id == decision.id else ""

    def used(self, tenant: str, call: Call, decision: str) -> Draft:
        """The entry that tells its home that a call has used it; of two that would, one is written."""
        made = Call(call.tool, call.arguments, decision, turn=call.turn, time=call.time)
        return Draft(tenant, self.home, "event", event_body(made), f"{self.name}:used")


def is_signed_in(context: Mapping[str, Any]) -> bool:
    """Whether the host vouches for somebody; where it does not, the same words may be another user's."""
    return bool(str(context.get(PRINCIPAL) or "").strip())


def recalled(
    log: Log, tenant: str, card: Card, context: Mapping[str, Any], pin: str, before: Sequence[Event], now: float
) -> Recalled:
    """What was put before in place of a card; `before` is what happened before its call."""
    if not is_signed_in(context):
        return Recalled("")
    key = fingerprint([card.digest, card.text, context[PRINCIPAL], pin])[:32]
    for number in range(1, AGAIN):
        name = f"card:{key}/{number}"
        entry = log.named(tenant, name)
        if entry is None:
            return Recalled(name)
        home = entry.conversation or ""
        history = read_history(log.conversation(tenant, home))
        events = history.events if history is not None else []
        put = next((at for at, each in enumerate(events) if isinstance(each, Call) and each.card is not None), None)
        if put is None or not continues(events[:put], before) or _has_spoken(before[put:]):
            continue
        known = events[put]
        assert isinstance(known, Call)
        assert known.card is not None
        standing = standing_of(events, known.card.id)
        is_over = known.card.expires is not None and now >= known.card.expires
        if is_over or standing is None or standing.used_by is not None or standing.answer is False:
            continue
        yes = next((each for each in events[put:] if isinstance(each, Message) and each.confirmation is not None), None)
        return Recalled(name, known.card, home, yes if standing.answer else None)
    return Recalled("")


def confirmation_of(found: Recalled) -> Confirmation | None:
    """What the user answered to it; None where they have not yet."""
    return found.yes.confirmation if found.yes is not None else None


def is_of_one_chat(first: Sequence[Event], then: Sequence[Event]) -> bool:
    """Whether a history goes on from another that has the user's words, or neither has any: without them, every chat
    would go on from it."""
    return continues(first, then) and (_has_spoken(first) or not _has_spoken(then))


def continues(first: Sequence[Event], then: Sequence[Event]) -> bool:
    """Whether a history begins with all of another."""
    return list(map(_told, first)) == list(map(_told, then[: len(first)]))


def _has_spoken(events: Sequence[Event]) -> bool:
    """Whether the user has."""
    return any(isinstance(each, Message) and each.by == "user" for each in events)


def _told(event: Event) -> tuple[Any, ...]:
    """What an event says, however it was numbered and whenever it was told."""
    match event:
        case Message():
            return "message", event.by, event.text, event.captured
        case Call():
            return "call", event.by, event.tool, event.arguments, event.fault
        case Result():
            return "result", event.call, event.text, event.captured
