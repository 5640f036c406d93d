"""Calls that go on after a pause: whether one still waits, and what was known when it was allowed still allows it."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from bylaw.engine.session import Session
from bylaw.shield.call_decisions import CallDecisions
from bylaw.shield.deciding import Decider
from bylaw.shield.decision import Answer, Decision, gravest
from bylaw.trace.event import Call, Event, Message, Result


def may_go_on(state: CallDecisions, id: str, tool: str, arguments: Mapping[str, Any], time: float) -> Decision | None:
    """The decision on a call that was interrupted and may go on now; None where it is to be decided anew."""
    before = state.interrupted.get(id)
    if before is None or (before.tool, before.arguments) != (tool, dict(arguments)):
        return None
    conversation = state.open()
    events = conversation.events
    made = max((at for at, event in enumerate(events) if isinstance(event, Call) and event.id == id), default=-1)
    if made < 0 or any(isinstance(event, Message) and event.by == "user" for event in events[made:]):
        return None
    if any(isinstance(event, Result) and event.call == made for event in events[made:]):
        # It has been answered: to go on would make it twice.
        return None
    if _has_new_objection(state.decider, events, made, conversation.context, time):
        return None
    return replace(before, repeats="resumed")


def _has_new_objection(
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
