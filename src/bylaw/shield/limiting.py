"""Applies limits across conversations: checks calls against the limits and writes the messages.

If there is no log, or if the person is unknown, calls cannot be counted. In that case, a reviewer is asked.
"""

import time as clocks
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from bylaw.errors import BylawError
from bylaw.record.log import Log
from bylaw.record.use import PERHAPS, Use, counted_under, possible_names
from bylaw.rule.rule import Limit
from bylaw.shield.decision import Answer, Ground, Question
from bylaw.shield.grounds import Binding
from bylaw.text.day import told_duration
from bylaw.trace.event import Call

LatestUses = Callable[[Sequence[str], float, int], Sequence[float]]
"""Given names, a start time and a maximum, returns the times of the latest uses with these names since the start time.
"""


class Places(Struct, frozen=True):
    """The limits' objections to a call, and the uses to count if the call is made."""

    grounds: tuple[Ground, ...] = ()
    uses: tuple[Use, ...] = ()


NO_PLACES = Places()


def places_for(
    binding: Binding,
    call: Call,
    decision: str,
    agent: str,
    context: Mapping[str, Any] | None,
    latest: LatestUses | None,
    now: float,
) -> Places:
    """Check a call against all limits. `latest` finds earlier uses. If it is None, uses are not counted."""
    grounds: list[Ground] = []
    uses: list[Use] = []
    for limit in binding.pack.book.limits:
        if call.tool not in limit.tools:
            continue
        whose = limit.whose(call.arguments, agent, context or {})
        times: Sequence[float] | None = None
        near: Sequence[float] = ()
        why = _unknown(limit) if whose is None else "the shield has no log"
        perhaps, since = "" if whose is None else limit.perhaps(whose), now - limit.within
        if whose is not None and latest is not None:
            try:
                times = latest([counted_under(limit.name, whose)], since, limit.most)
                near = latest(possible_names(limit.name, perhaps), since, limit.most)
            except BylawError as error:
                why = str(error)
        if whose is None or times is None:
            grounds.append(_uncounted(binding, limit, why))
            continue
        is_full, may_be_full = len(times) >= limit.most, len(near) >= limit.most
        if is_full:
            grounds.append(_full(binding, limit, times[-1] + limit.within))
        elif may_be_full:
            why = f"{len(near)} calls may count for the same {limit.whom}"
            grounds.append(_uncounted(binding, limit, why))
        # The log checks the limit again when it writes the decision, except if a reviewer or the posture allowed the
        # call over the limit.
        is_over = is_full or (perhaps == whose and may_be_full)
        uses.append(Use(decision, limit.name, whose, most=0 if is_over else limit.most, within=limit.within))
        if perhaps != whose:
            most = 0 if may_be_full else limit.most
            uses.append(Use(decision, limit.name + PERHAPS, perhaps, most=most, within=limit.within))
    return Places(tuple(grounds), tuple(uses))


def places_beside(binding: Binding, one: Places, other: Places) -> Places:
    """Combine the results for several actions of one call.

    A decision adds at most one use per limit. Two actions under the same limit are therefore denied and must be made in
    separate calls.
    """
    taken = {each.name for each in one.uses}
    again = {each.limit for each in other.uses if each.name in taken}
    told = "this call counts more than once towards a limit. Make a separate call for each action"
    full = [
        binding.ground(limit.policy, "rule", "deny", told, for_agent=told)
        for limit in binding.pack.book.limits
        if limit.name in again
    ]
    return Places((*one.grounds, *other.grounds, *full), (*one.uses, *other.uses))


def latest_uses(log: Log, tenant: str, taking: Sequence[Use], returned: Sequence[str]) -> LatestUses:
    """Return a function that reads earlier uses from a log.

    `taking` contains the new uses of this turn, and `returned` contains the uses that it cancels.
    """
    now = clocks.time()

    def latest(names: Sequence[str], since: float, most: int) -> list[float]:
        own = [now for use in taking if use.name in names]
        return [*own, *log.latest_uses(tenant, names, since, most, returned)][:most]

    return latest


def recorded_ground(binding: Binding, limit: Limit, *, is_told: bool) -> Ground:
    """Return a limit's ground for a recorded call. The call exceeds the limit or, unless `is_told`, its person is
    unknown.
    """
    if not is_told:
        return _uncounted(binding, limit, _unknown(limit))
    taken = _taken(limit)
    return _ground(binding, limit, limit.over, taken, taken, f"{taken}. Should one more call be made now?")


def _unknown(limit: Limit) -> str:
    return f"{limit.whom} is unknown"


def _taken(limit: Limit) -> str:
    return f"{limit.most} of {limit.most} calls were made in the last {told_duration(limit.within)} (per {limit.whom})"


def _full(binding: Binding, limit: Limit, free: float) -> Ground:
    when = datetime.fromtimestamp(free, UTC).isoformat(" ", "seconds")[:19]
    taken = _taken(limit)
    because = f"{taken}, including calls with an unknown result. The next call is possible at {when} UTC"
    agent = f"{taken}. Do not make this call before {when} UTC"
    return _ground(binding, limit, limit.over, because, agent, f"{taken}. Should one more call be made now?")


def _uncounted(binding: Binding, limit: Limit, why: str) -> Ground:
    because = f"the calls made in the last {told_duration(limit.within)} cannot be counted: {why}"
    return _ground(binding, limit, "ask", because, because, f"{because}. Should this call be made?")


def _ground(binding: Binding, limit: Limit, answer: Answer, because: str, for_agent: str, question: str) -> Ground:
    questions = (Question(limit.name, question, "person"),) if answer == "ask" else ()
    return binding.ground(limit.policy, "rule", answer, because, questions=questions, for_agent=for_agent)
