"""Repeats earlier decisions when an allowed call continues or a request is sent again.

Each request is answered once, and no call is made twice. An earlier decision is repeated only if no newer information
contradicts it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from bylaw.engine.conversation import GIVEN_UP, Conversation
from bylaw.errors import UsageError
from bylaw.policy.tool import Postures
from bylaw.shield.approving import facts_of
from bylaw.shield.decision import Answer, Decision, gravest
from bylaw.shield.grounds import find_grounds, weigh
from bylaw.shield.history import History, Named
from bylaw.shield.resolving import resolved_by
from bylaw.trace.event import Call, Card, Event, LookedUp, Message, Result

DONE_BEFORE = "This call was made before, and its result is known. Do not make it again"
"""The message for a repeated request whose call already has a result."""


Repeated = Decision | int
"""An earlier decision, or the step of a call that must be decided again."""


def has_result(events: Sequence[Event], step: int) -> bool:
    """Whether the call at a step has a result. If it has, the call must not continue, because it would run twice."""
    return any(isinstance(event, Result) and event.call == step for event in events[step:])


def still_allowed(
    conversation: Conversation,
    postures: Postures,
    step: int,
    now: float,
    lacks: str,
    is_rejected: Callable[[Call], bool],
    look_ups: tuple[LookedUp, ...] = (),
    *,
    is_approved: bool,
) -> bool:
    """Whether an allowed call without a result may still run.

    The user must not have written or seen another card for the tool. The call must have the same effect, no reviewer
    may have rejected it, and no policy may object more strongly than before. If a reviewer approved the call
    (`is_approved`), the facts behind the approval must be unchanged. `look_ups` are the shield's own look-ups, which
    must show the same results now as then.
    """
    events = conversation.events
    call = events[step]
    if not isinstance(call, Call) or any(_asks_anew(each, call.tool) for each in events[step:]):
        return False
    # Judge the call as if it had not been made yet.
    held = [*events[:step], replace(call, refused=True, card=None), *events[step + 1 :]]
    turn = max(event.turn for event in events if not isinstance(event, Result)) + 1
    again = replace(call, turn=turn, time=now, context=dict(conversation.context) or None)
    did, then, rested_on = _answers(conversation, postures, events[:step], call, "", look_ups)
    does, answers, rests_on = _answers(conversation, postures, held, again, lacks, look_ups)
    if [(each.tool, each.arguments) for each in did] != [(each.tool, each.arguments) for each in does]:
        return False
    if any(map(is_rejected, did)):
        return False
    if is_approved and rested_on != rests_on:
        return False
    # An earlier objection does not count, because a reviewer may have approved the call.
    return all(gravest((answer, before := then.get(policy, "allow"))) == before for policy, answer in answers.items())


def _asks_anew(event: Event, tool: str) -> bool:
    """Whether the user has written, or was shown a card for the tool. Confirming that card allows another call."""
    match event:
        case Message(by="user"):
            return True
        case Call(card=Card()):
            return event.tool == tool
        case _:
            return False


def _answers(
    conversation: Conversation,
    postures: Postures,
    events: Sequence[Event],
    call: Call,
    lacks: str,
    look_ups: tuple[LookedUp, ...],
) -> tuple[list[Call], dict[tuple[str, str], Answer], Any]:
    """Return the call with its actions, each policy's decision, and the facts for an approval."""
    judgement, session = conversation.judged_after(events, call)
    found: dict[tuple[str, str], Answer] = {}
    grounds = find_grounds(session, postures, judgement, lacks, weigh(session, judgement))
    resolved = resolved_by(look_ups, postures, conversation, judgement, grounds, events)
    for each in resolved.grounds:
        policy = (each.kind, each.policy)
        found[policy] = gravest((each.answer, found.get(policy, "allow")))
    made = [judgement.made.call, *(part.made.call for part in judgement.parts)]
    return made, found, facts_of(resolved.known(), resolved.grounds, postures.approval)


def taken_of(history: History, named: Named) -> list[tuple[Decision, int]] | None:
    """Return, for each call of a request, the last decision and the step. None for a new request.

    Raises an error if a different request used the same key.
    """
    digest, start = history.state.requests.get(named.name, ("", 0))
    if not digest:
        return None
    if digest != named.digest:
        hint = "use a new name for each request"
        raise UsageError(f"request name `{named.name}` was already used for a different request", hint=hint)
    by_step = dict(zip(history.steps, history.decisions, strict=True))
    last = (_last_try(history.events, step) for step in history.steps[start:])
    return [(by_step[step], step) for step in last]


def _last_try(events: Sequence[Event], step: int) -> int:
    for place in range(step + 1, len(events)):
        event = events[place]
        if isinstance(event, Result) and event.call == step and event.content == GIVEN_UP:
            return _last_try(events, place + 1)
    return step
