"""A card that was declined: the same call, spelled otherwise, is not put to the user again."""

from collections.abc import Sequence

from bylaw.facts.alike import alike
from bylaw.trace.event import Call, Event, Message


def is_declined_otherwise(events: Sequence[Event], call: Call, digest: str, now: float) -> bool:
    """Whether the user has declined a card for another spelling of a call and said nothing since, for as long as that
    card would have held. Of the call as it is spelled here, consent tells."""
    said = [event for event in events if isinstance(event, Message) and event.by == "user"]
    if not said or not any(each.confirmation is not None for each in said):
        return False
    made = call.tool, alike(call.arguments)
    cards = {
        event.card.id: event.card
        for event in events
        if isinstance(event, Call) and event.card is not None and (event.tool, alike(event.arguments)) == made
    }
    for each in reversed(said):
        if each.confirmation is None:
            if each.captured:
                return False
            # Nobody told what was said, if anything was.
            continue
        card = cards.get(each.confirmation.card)
        if card is not None:
            is_over = card.expires is not None and now >= card.expires
            return card.digest != digest and not each.confirmation.yes and not is_over
    return False
