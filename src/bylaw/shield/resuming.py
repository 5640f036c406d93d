"""Calls that were allowed and have no result yet: whether what is known by now still allows one."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from bylaw.shield.call_decisions import CallDecisions
from bylaw.shield.decision import Answer, Decision, gravest
from bylaw.shield.grounds import find_grounds, weigh
from bylaw.trace.event import Call, Event, Message, Result


def may_go_on(state: CallDecisions, id: str, tool: str, arguments: Mapping[str, Any], by: str) -> Decision | None:
    """The decision on a call that was interrupted and may go on now; None where it is to be decided anew."""
    before = state.interrupted.get(id)
    if before is None or (before.tool, before.arguments) != (tool, dict(arguments)):
        return None
    events = state.open().events
    made = max((at for at, event in enumerate(events) if isinstance(event, Call) and event.id == id), default=-1)
    if made < 0 or any(isinstance(event, Result) and event.call == made for event in events[made:]):
        # It has been answered: to go on would make it twice.
        return None
    return replace(before, repeats="resumed") if still_stands(state, before, made, by) else None


def still_stands(state: CallDecisions, decision: Decision, made: int, by: str) -> bool:
    """Whether a call that was allowed at a step, and has no result, may run by all that is known now: the user has not
    spoken since, nobody has stopped or doubted it, and no policy objects to it more than it did then."""
    events = state.open().events
    call = events[made]
    if not isinstance(call, Call) or any(isinstance(each, Message) and each.by == "user" for each in events[made:]):
        return False
    if state.stop_on(call, by) is not None or state.has_new_doubt(decision):
        return False
    # As if it had not been made yet: what it would change is as it was.
    held = [*events[:made], replace(call, refused=True, card=None), *events[made + 1 :]]
    turn = max(event.turn for event in events if not isinstance(event, Result)) + 1
    again = replace(call, turn=turn, time=state.now, context=dict(state.vouched) or None)
    then, now = _said_of(state, events[:made], call), _said_of(state, held, again, state.lacks)
    # A person's yes may have answered what was said then.
    return all(gravest((answer, before := then.get(whose, "allow"))) == before for whose, answer in now.items())


def _said_of(
    state: CallDecisions, events: Sequence[Event], call: Call, lacks: str = ""
) -> dict[tuple[str, str], Answer]:
    """What each policy says of a call after these events."""
    judgement, session = state.open().judged_after(events, call)
    found: dict[tuple[str, str], Answer] = {}
    for each in find_grounds(session, state.postures, judgement, lacks, weigh(session, judgement)):
        whose = (each.kind, each.policy)
        found[whose] = gravest((each.answer, found.get(whose, "allow")))
    return found
