"""Whether what was known when a call was allowed still allows it, when the call goes on after a pause."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from bylaw.engine.session import Session
from bylaw.shield.deciding import Decider
from bylaw.shield.decision import Answer, gravest
from bylaw.trace.event import Call, Event, Result


def has_new_objection(
    decider: Decider, events: Sequence[Event], made: int, context: Mapping[str, Any], time: float
) -> bool:
    """Whether a guard objects to the call made at a step by what was shown since, or because what was shown before is
    too old by now: more than it did when the call was made. A person's yes may have answered what it said then."""
    call = events[made]
    assert isinstance(call, Call)
    # As if it had not been made yet: what it would change is as it was.
    held = [*events[:made], replace(call, refused=True, card=None), *events[made + 1 :]]
    then = _guards(decider, events[:made], call, context)
    turn = max(event.turn for event in events if not isinstance(event, Result)) + 1
    now = _guards(decider, held, replace(call, turn=turn, time=time), context)
    return any(gravest((answer, before := then.get(policy, "allow"))) != before for policy, answer in now.items())


def _guards(decider: Decider, events: Sequence[Event], call: Call, context: Mapping[str, Any]) -> dict[str, Answer]:
    """What each guard says of a call, with its policy."""
    session = Session(decider.pack, context=context)
    session.observe_all(events)
    found: dict[str, Answer] = {}
    for each in decider.grounds(session.judge(call), session.ledger):
        if each.kind in ("guard", "call"):
            found[each.policy] = gravest((each.answer, found.get(each.policy, "allow")))
    return found
