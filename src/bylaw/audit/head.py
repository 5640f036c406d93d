"""What the tables tell of every conversation, flagged or not."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from bylaw.audit.finding import SEVERITIES
from bylaw.audit.line import writable
from bylaw.engine.rule_finding import RuleFinding
from bylaw.engine.settlement import CallVerdict
from bylaw.engine.verdict import WORST_FIRST
from bylaw.pack import Criterion, Pack
from bylaw.trace.trajectory import TaskOutcome, Trajectory

if TYPE_CHECKING:
    from bylaw.audit.cover import Cover


class Head(Struct, frozen=True, omit_defaults=True):
    """One conversation: who, where, when, how it ended, and what its calls come to.

    It counts as `Tally.add` does, so that rates made from it are those of `summary.json`.
    """

    agent: str
    file: str
    position: int
    pack: str
    good: bool | None = None
    outcome_source: str | None = None
    started: float | None = None
    ended: float | None = None
    writes: bool = False
    strict: tuple[str, ...] = ()
    """The verdicts on its executed calls, the worst first."""
    determined: tuple[str, ...] = ()
    violated: tuple[str, ...] = ()
    """The severities of the policies that its executed calls violate (determined), the gravest first."""
    violated_strict: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    """The severities of the rules that were broken, the gravest first."""


def head_of(
    pack: Pack,
    trajectory: Trajectory,
    agent: str,
    outcome: TaskOutcome | None,
    verdicts: Sequence[CallVerdict],
    broken: Sequence[RuleFinding],
    cover: "Cover | None",
) -> Head:
    """What is told of a conversation, with what must not be told covered."""
    shown: dict[str, Any] = {"agent": agent, "file": writable(trajectory.file), "events": []}
    if cover is not None:
        shown = cover.conversation(shown)
    times = [event.time for event in trajectory.events if event.time is not None]
    executed = [v for v in verdicts if v.made.accepted is not False and v.made.tool is not None]
    return Head(
        shown["agent"],
        shown["file"],
        trajectory.position,
        pack.name,
        good=outcome.good if outcome is not None else None,
        outcome_source=outcome.source if outcome is not None else None,
        started=min(times, default=None),
        ended=max(times, default=None),
        writes=any(v.made.tool is not None and v.made.tool.effect != "read" for v in executed),
        strict=_in_order(WORST_FIRST, {v.strict for v in executed}),
        determined=_in_order(WORST_FIRST, {v.determined for v in executed}),
        violated=_violated(executed, "determined"),
        violated_strict=_violated(executed, "strict"),
        rules=_in_order(SEVERITIES, {pack.policies[each.rule.policy].severity for each in broken}),
    )


def _violated(executed: Sequence[CallVerdict], criterion: Criterion) -> tuple[str, ...]:
    broken = {p.policy.severity for v in executed for p in v.policies if getattr(p, criterion) == "violation"}
    return _in_order(SEVERITIES, broken)


def _in_order(order: Sequence[str], found: set[str]) -> tuple[str, ...]:
    return tuple(each for each in order if each in found)
