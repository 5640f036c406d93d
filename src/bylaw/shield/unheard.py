"""Where a host does not tell what the user says: who answers what only the user could.

To ask the user again would go on for ever, since the answer never comes here. Where the pack says so (`stands_in`), a
person may answer in the user's place: that is an override, in the log by name, and never the user's yes. A user whose
only word is the answer to a card cannot take a no back by saying so: the agent is told when they can be asked again.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from bylaw.engine.wording import AFTER_NO
from bylaw.policy.posture import ApprovalTerms
from bylaw.shield.decision import Ground
from bylaw.trace.event import Call, Event, Message


def stood_in(
    grounds: Sequence[Ground], terms: ApprovalTerms, *, hears: bool = False, files: bool = False
) -> list[Ground]:
    """The grounds, their questions for the user put to a person if the pack lets one stand in, or the host `files` all
    of them; if what the user says next is heard, others stay questions for them."""
    return [_stood_in(each, terms, hears, files) for each in grounds]


def _stood_in(ground: Ground, terms: ApprovalTerms, hears: bool, files: bool) -> Ground:
    if ground.answer != "ask" or all(each.whom != "user" for each in ground.questions):
        return ground
    if ground.policy not in terms.stands_in and not files:
        return ground if hears else replace(ground, is_unheard=True)
    asked = tuple(replace(each, whom="person") for each in ground.questions)
    return replace(ground, questions=asked, stands_in=True)


def until_when(grounds: Sequence[Ground], events: Sequence[Event], digest: str) -> Sequence[Ground]:
    """The grounds, where the user declined a card of this digest: with when their no ends, which holds as long as the
    card would have."""
    if not any(AFTER_NO in each.for_agent for each in grounds):
        return grounds
    cards = {event.card.id: event.card for event in events if isinstance(event, Call) and event.card is not None}
    said = [event.confirmation for event in events if isinstance(event, Message) and event.confirmation is not None]
    ends = [cards[each.card].expires for each in said if not each.yes and cards[each.card].digest == digest]
    if not ends or ends[-1] is None:
        return grounds
    when = datetime.fromtimestamp(ends[-1] + 60, UTC).isoformat(" ", "minutes")[:16]
    later = f"Do not make this call again before {when} UTC: the user is asked once more only then"
    return [replace(each, for_agent=each.for_agent.replace(AFTER_NO, later)) for each in grounds]
