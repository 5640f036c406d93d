"""Decisions that are wanted again: a call that was allowed and goes on, and a request that is sent again.

Each request is answered once, and a call that it let run is not made twice. An earlier decision is repeated only while
nothing that is known by now speaks against it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bylaw.engine.conversation import GIVEN_UP, Conversation
from bylaw.errors import UsageError
from bylaw.policy.posture import Postures
from bylaw.shield.approving import facts_of
from bylaw.shield.decision import Answer, Decision, gravest
from bylaw.shield.grounds import find_grounds, weigh
from bylaw.shield.history import History, Named
from bylaw.trace.event import Call, Card, Event, Message, Result

DONE_BEFORE = "Made before, and its result is known: do not make it again"
"""What the agent is told if a request comes again after the result of its call."""


class Interruption(Struct, frozen=True):
    """An allowed call stops before it is done."""

    id: str
    decision: Decision


class Resumption(Struct, frozen=True):
    """An interrupted call goes on."""

    id: str
    tool: str
    arguments: Mapping[str, Any]


Repeated = Decision | int
"""The decision that was made, or the step of a call that is to be decided anew."""


def resumable(conversation: Conversation, before: Decision | None, wanted: Resumption) -> int | None:
    """The step of an interrupted call that may go on; None if it is another call, or has its result."""
    if before is None or (before.tool, before.arguments) != (wanted.tool, dict(wanted.arguments)):
        return None
    events = conversation.events
    made = max((at for at, event in enumerate(events) if isinstance(event, Call) and event.id == wanted.id), default=-1)
    return None if made < 0 or has_result(events, made) else made


def has_result(events: Sequence[Event], step: int) -> bool:
    """Whether the call at a step has been answered: to go on would make it twice."""
    return any(isinstance(event, Result) and event.call == step for event in events[step:])


def still_allowed(
    conversation: Conversation, postures: Postures, step: int, now: float, lacks: str, *, is_approved: bool
) -> bool:
    """Whether an allowed call without a result may run by all that is known now: the user has not spoken and was not
    shown another card for the tool since, and no policy objects to it more than it did then. If a person approved it
    (`is_approved`), the facts that the approval rests on must be the same, too."""
    events = conversation.events
    call = events[step]
    if not isinstance(call, Call) or any(_asks_anew(each, call.tool) for each in events[step:]):
        return False
    # As if it had not been made yet: what it would change is as it was.
    held = [*events[:step], replace(call, refused=True, card=None), *events[step + 1 :]]
    turn = max(event.turn for event in events if not isinstance(event, Result)) + 1
    again = replace(call, turn=turn, time=now, context=dict(conversation.context) or None)
    then, rested_on = _answers(conversation, postures, events[:step], call, "")
    answers, rests_on = _answers(conversation, postures, held, again, lacks)
    if is_approved and rested_on != rests_on:
        return False
    # A person's approval may have answered what was said then.
    return all(gravest((answer, before := then.get(policy, "allow"))) == before for policy, answer in answers.items())


def _asks_anew(event: Event, tool: str) -> bool:
    """Whether the user spoke, or was shown a card for the tool: a late yes to that card allows a call of its own."""
    match event:
        case Message(by="user"):
            return True
        case Call(card=Card()):
            return event.tool == tool
        case _:
            return False


def _answers(
    conversation: Conversation, postures: Postures, events: Sequence[Event], call: Call, lacks: str
) -> tuple[dict[tuple[str, str], Answer], Any]:
    """What each policy says of a call after these events, and the facts that an approval of it would rest on."""
    judgement, session = conversation.judged_after(events, call)
    found: dict[tuple[str, str], Answer] = {}
    grounds = find_grounds(session, postures, judgement, lacks, weigh(session, judgement))
    for each in grounds:
        policy = (each.kind, each.policy)
        found[policy] = gravest((each.answer, found.get(policy, "allow")))
    return found, facts_of(judgement, grounds, postures.approval)


def taken_of(history: History, named: Named) -> list[tuple[Decision, int]] | None:
    """The last decision on each call of a request, with the call's step; None if no request of its name was taken. A
    request that uses the name for something else is refused."""
    digest, start = history.state.requests.get(named.name, ("", 0))
    if not digest:
        return None
    if digest != named.digest:
        hint = "give each request a name of its own"
        raise UsageError(f"request `{named.name}` was used for something else", hint=hint)
    by_step = dict(zip(history.steps, history.decisions, strict=True))
    last = (_last_try(history.events, step) for step in history.steps[start:])
    return [(by_step[step], step) for step in last]


def _last_try(events: Sequence[Event], step: int) -> int:
    """The step at which a call was last decided on."""
    for place in range(step + 1, len(events)):
        event = events[place]
        if isinstance(event, Result) and event.call == step and event.content == GIVEN_UP:
            return _last_try(events, place + 1)
    return step
