"""Requests that were taken, and may be sent again: each is answered once, and what it let run is not made twice."""

from collections.abc import Sequence

from msgspec.structs import replace

from bylaw.engine.conversation import GIVEN_UP
from bylaw.errors import UsageError
from bylaw.shield.call_decisions import CallDecisions, JudgeCall, Wanted
from bylaw.shield.decision import Decision
from bylaw.shield.history import History, Named
from bylaw.shield.resuming import still_stands
from bylaw.trace.event import Event, Result

DONE_BEFORE = "Made before, and its result is known: do not make it again"
"""What is told of a call whose request comes again after its result."""

Repeated = Decision | int
"""What was answered, or the step of a call that is to be decided anew."""


def taken_of(history: History, named: Named) -> list[tuple[Decision, int]] | None:
    """The last decision on each call of a request, with the call's step; None where no request of its name was taken.
    One that uses the name for something else is refused."""
    digest, start = history.requests.get(named.name, ("", 0))
    if not digest:
        return None
    if digest != named.digest:
        hint = "give each request a name of its own"
        raise UsageError(f"request `{named.name}` was used for something else", hint=hint)
    by_step = dict(zip(history.steps, history.decisions, strict=True))
    last = (_last_try(history.events, step) for step in history.steps[start:])
    return [(by_step[step], step) for step in last]


def _last_try(events: Sequence[Event], step: int) -> int:
    """Where the call that was made at a step was last decided on."""
    for place in range(step + 1, len(events)):
        event = events[place]
        if isinstance(event, Result) and event.call == step and event.content == GIVEN_UP:
            return _last_try(events, place + 1)
    return step


def sent_again(state: CallDecisions, decision: Decision, step: int, by: str) -> Repeated:
    """What was decided, where that still stands; and whether the call has been answered since, so that nobody makes it
    a second time."""
    if not decision.allowed:
        return decision
    if not any(isinstance(event, Result) and event.call == step for event in state.open().since(step)):
        return decision if still_stands(state, decision, step, by) else step
    tool = state.pack.schema.tools.get(decision.tool)
    if tool is not None and tool.effect != "write":
        return replace(decision, is_over=True)
    return replace(decision, is_over=True, allowed=False, to_agent=f"{DONE_BEFORE} ({decision.tool}).")


def left_of(wanted: Wanted, answers: Sequence[Repeated]) -> Wanted:
    """What is still wanted of a request that was taken: what happened before it happened once, and whether a call that
    is decided anew was made meanwhile, nobody knows."""
    steps = {place: each for place, each in enumerate(answers) if not isinstance(each, Decision)}
    asked = [_anew(wanted.asked[place], step) for place, step in steps.items()]
    beside = [wanted.beside[place] for place in steps] if wanted.beside else ()
    return replace(wanted, asked=asked, beside=beside, first=(), named=None)


def _anew(ask: JudgeCall, step: int) -> JudgeCall:
    return lambda conversation: (conversation.give_up(step), ask(conversation))[1]


def filled(answers: Sequence[Repeated], decisions: Sequence[Decision]) -> list[Decision]:
    """The answer to a request, where some of its calls were decided anew."""
    new = iter(decisions)
    return [each if isinstance(each, Decision) else next(new) for each in answers]
