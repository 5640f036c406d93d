"""Judges a finished conversation under a pack, without reading any files."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from bylaw.engine.conduct import RuleFinding
from bylaw.engine.predicate_values import AnswerPredicate
from bylaw.engine.session import Mode, Session
from bylaw.engine.settlement import CallVerdict
from bylaw.facts.call_record import CallRecord
from bylaw.facts.world import World
from bylaw.pack import Pack
from bylaw.trace.event import Call, Event, Trajectory


class Verdicts(Struct, frozen=True):
    calls: tuple[CallVerdict, ...]
    """The agent's calls that change or may change something, in order."""
    findings: tuple[RuleFinding, ...]
    """The broken rules, each listed at most once per turn."""


def verdicts(
    pack: Pack,
    trajectory: Trajectory,
    world: World | None = None,
    *,
    mode: Mode = "hindsight",
    context: Mapping[str, Any] | None = None,
    answer: AnswerPredicate | None = None,
) -> Verdicts:
    """Judge a finished conversation. `world` is the ground-truth database before it. `answer` decides what code cannot
    decide.
    """
    session = Session(pack, world=world, mode=mode, context=context or trajectory.context, answer=answer)
    for _ in session.follow(trajectory.events, judged_steps(pack, trajectory.events)):
        pass
    return Verdicts(tuple(session.settle()), tuple(session.findings(ended=True)))


def judged_steps(pack: Pack, events: Sequence[Event]) -> list[int]:
    """Return the steps of the calls that get a verdict."""
    return [step for step, event in enumerate(events) if isinstance(event, Call) and is_judged(pack, event)]


def is_listed(pack: Pack, made: CallRecord) -> bool:
    return made.tool is None or made.tool.effect == "write" or made.call.tool in pack.by_tool


def is_judged(pack: Pack, call: Call) -> bool:
    """Whether a call gets a verdict: it may change something, or its tool has a guard."""
    return call.tool in pack.by_tool or pack.schema.may_write(call.tool)
