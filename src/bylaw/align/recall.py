"""How many policies the thoughts of an episode state, and how many they make up."""

from functools import cache

from msgspec import Struct

from bylaw.align.episode import Outcome
from bylaw.align.matcher import Matcher
from bylaw.align.prompt import pack_named
from bylaw.align.stem import values_in
from bylaw.trace.event import Message, Result


class Recall(Struct, frozen=True):
    """Statements of policies in thoughts."""

    recalled: int = 0
    made_up: int = 0


@cache
def matcher(pack: str) -> Matcher:
    return Matcher(pack_named(pack))


def recall(pack: str, outcome: Outcome) -> Recall:
    """What the thoughts of an episode state. Values that the user or a tool gave may be facts of the case."""
    if not outcome.thoughts:
        return Recall()
    shown: set[tuple[str, str]] = set()
    for event in outcome.events:
        match event:
            case Message("user", text) | Result(_, text):
                shown |= {value.key for value in values_in(str(text))}
            case _:  # what the agent says itself shows nothing
                pass
    found = [matcher(pack).mentions(thought, shown) for thought in outcome.thoughts]
    return Recall(sum(len(one.recalled) for one in found), sum(len(one.made_up) for one in found))
