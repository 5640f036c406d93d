"""A card that was declined: the same call, spelled otherwise, is not put to the user again."""

from collections.abc import Sequence

from bylaw.facts.value import alike
from bylaw.trace.event import Call, Card, Event, Message


def is_declined_otherwise(events: Sequence[Event], call: Call, digest: str, now: float) -> bool:
    """Whether the user has declined a card for another spelling of a call and said nothing since, for as long as that
    card would have held. Of the call as it is spelled here, consent tells."""
    cards: dict[str, Card] | None = None
    for each in reversed(events):
        if not isinstance(each, Message) or each.by != "user":
            continue
        if each.confirmation is None:
            if each.captured:
                return False
            # Nobody told what was said, if anything was.
            continue
        if cards is None:
            cards = _cards_of(events, call)
        card = cards.get(each.confirmation.card)
        if card is not None:
            is_over = card.expires is not None and now >= card.expires
            return card.digest != digest and not each.confirmation.yes and not is_over
    return False


def _cards_of(events: Sequence[Event], call: Call) -> dict[str, Card]:
    """The cards that were put for a call, in whatever spelling."""
    made = call.tool, alike(call.arguments)
    return {
        event.card.id: event.card
        for event in events
        if isinstance(event, Call) and event.card is not None and (event.tool, alike(event.arguments)) == made
    }
