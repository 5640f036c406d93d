"""A guard that speaks against an outlying share of logged calls: perhaps all who read its sentence misread it alike.

Two generations that agree are never put to the referee. Such a guard's logged calls are: a reader who sees the
sentences and the calls alone says what they say, and where that is another reading, the owner is shown both.
"""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bylaw.compile.bench import Bench, Case
from bylaw.engine.finished import verdicts
from bylaw.engine.judgement import moment_of
from bylaw.engine.settlement import CallVerdict, PolicyVerdict
from bylaw.guard import Guard
from bylaw.policy.statement import Policy
from bylaw.review.case import CaseResult
from bylaw.trace import Call

_FEWEST = 5
"""Fewer flagged calls are a few careless agents."""
_SHARE = 0.1
"""A guard that speaks against more of the calls it binds is more likely wrong than they are."""
_SHOWN = 3


class Outlier(Struct, frozen=True):
    """A guard that flags too much to be believed at once."""

    flagged: int
    judged: int
    situations: tuple[Case, ...]
    """A few of the flagged calls, with the facts that the guard went by; none where these were never shown."""
    reasons: tuple[str, ...]
    """Why the guard denies each."""

    @property
    def words(self) -> str:
        """How much it flags."""
        return f"the guard speaks against {self.flagged} of {self.judged} logged calls"


def outlier(bench: Bench, policy: Policy, code: str, guard: Guard) -> Outlier | None:
    """What a guard flags in the bench's logs, where that is an outlying share; None where it is not."""

    def find() -> Outlier | None:
        pack = replace(
            bench.base,
            now=bench.base.now if bench.is_timed else None,
            policies={policy.id: policy},
            guards={policy.id: guard},
            by_tool=dict.fromkeys(policy.tools, ((policy, guard),)),
        )
        judged = 0
        flagged: list[tuple[CallVerdict, PolicyVerdict]] = []
        for trajectory in bench.trajectories:
            if not any(isinstance(event, Call) and event.tool in policy.tools for event in trajectory.events):
                continue
            for call in verdicts(pack, trajectory).calls:
                judged += len(call.policies)
                flagged += [(call, each) for each in call.policies if each.determined == "violation"]
        if len(flagged) < _FEWEST or len(flagged) < _SHARE * judged:
            return None
        shown = _situations(bench, policy, guard, flagged)
        return Outlier(len(flagged), judged, tuple(shown.values()), tuple(shown))

    return bench.once(("outlier", policy.id, policy.tools, code), find)


def _situations(
    bench: Bench, policy: Policy, guard: Guard, flagged: Sequence[tuple[CallVerdict, PolicyVerdict]]
) -> dict[str, Case]:
    """Flagged calls as cases, by why they are denied; only those that the guard denies as told, too."""
    found: dict[str, Case] = {}
    for call, said in flagged:
        if len(found) == _SHOWN:
            break
        if said.because in found:
            continue
        case = _case(call, said)
        (result,) = bench.run(policy, guard, [{"note": "logged", **case, "want": "deny"}])
        if isinstance(result, CaseResult) and result.passed:
            found[said.because] = case
    return found


def _case(call: CallVerdict, said: PolicyVerdict) -> Case:
    facts: dict[str, Any] = {}
    for known in said.known:
        key = ", ".join(map(str, known.fact.key or ()))
        thing = f"{known.fact.entity}[{key}]" if key else known.fact.entity
        value = str(known.value) if isinstance(known.value, Decimal | date) else known.value
        if known.fact.field == "exists":
            facts.setdefault(thing, {} if known.value else None)
        else:
            facts[thing] = {**(facts.get(thing) or {}), known.fact.field: value}
    case: Case = {
        "policy": said.policy.id,
        "call": {call.made.call.tool: dict(call.made.call.arguments)},
        "facts": facts,
    }
    moment = moment_of(call.made.call)
    return {**case, "now": moment.replace(tzinfo=None).isoformat()} if moment is not None else case
