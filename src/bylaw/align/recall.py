"""How many policies the thoughts of an episode state, and how many they make up."""

from functools import cache

from msgspec import Struct

from bylaw.align.episode import Outcome
from bylaw.align.matcher import Matcher
from bylaw.align.prompt import pack_named
from bylaw.align.stem import values_in
from bylaw.trace.event import Call, Message


class Recall(Struct, frozen=True):
    """Statements of policies in thoughts."""

    recalled: int = 0
    made_up: int = 0


@cache
def matcher(pack: str) -> Matcher:
    """The pack's matcher."""
    return Matcher(pack_named(pack))


def recall(pack: str, outcome: Outcome) -> Recall:
    """What the thoughts of an episode state. Values that the conversation showed belong to no rule."""
    if not outcome.thoughts:
        return Recall()
    shown: set[tuple[str, str]] = set()
    for event in outcome.events:
        if not isinstance(event, Call):
            text = event.text if isinstance(event, Message) else str(event.content)
            shown |= {value.key for value in values_in(text)}
    found = [matcher(pack).mentions(thought, shown) for thought in outcome.thoughts]
    return Recall(sum(len(one.recalled) for one in found), sum(len(one.made_up) for one in found))
