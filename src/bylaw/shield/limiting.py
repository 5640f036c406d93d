"""Limits that span conversations: whether a call has a place left under each, and what is said where it has none.

What cannot be counted is never allowed: without a log, or without knowing whose count it is, a person is asked.
"""

import time as clocks
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from bylaw.errors import BylawError
from bylaw.pack import Pack
from bylaw.policy.posture import Postures
from bylaw.record.log import Log
from bylaw.record.use import PERHAPS, Use, counted_under, possible_names
from bylaw.rule.rule import Limit
from bylaw.shield.decision import Ground, Question
from bylaw.text.duration import told_duration
from bylaw.trace.event import Call

LatestUses = Callable[[Sequence[str], float, int], Sequence[float]]
"""Given the names that places are counted under, a start and a maximum: the times at which the last were taken."""


class Places(Struct, frozen=True):
    """What limits say of a call: the grounds that stand against it, and the places it takes if it is made."""

    grounds: tuple[Ground, ...] = ()
    uses: tuple[Use, ...] = ()


NO_PLACES = Places()


def places_for(
    pack: Pack,
    postures: Postures,
    call: Call,
    decision: str,
    agent: str,
    context: Mapping[str, Any] | None,
    latest: LatestUses | None,
    now: float,
) -> Places:
    """The places that a call needs; `latest` tells those that are taken, None where nobody counts them."""
    grounds: list[Ground] = []
    uses: list[Use] = []
    for limit in pack.book.limits:
        if call.tool not in limit.tools:
            continue
        whose = limit.whose(call.arguments, agent, context or {})
        times: Sequence[float] | None = None
        near: Sequence[float] = ()
        why = _unknown(limit) if whose is None else "the shield keeps no log"
        perhaps, since = "" if whose is None else limit.perhaps(whose), now - limit.within
        if whose is not None and latest is not None:
            try:
                times = latest([counted_under(limit.name, whose)], since, limit.most)
                near = latest(possible_names(limit.name, perhaps), since, limit.most)
            except BylawError as error:
                why = str(error)
        if whose is None or times is None:
            grounds.append(_uncounted(pack, postures, limit, call.tool, why))
            continue
        is_full, may_be_full = len(times) >= limit.most, len(near) >= limit.most
        if is_full:
            grounds.append(_full(pack, postures, limit, call.tool, times[-1] + limit.within))
        elif may_be_full:
            why = f"{len(near)} may be for the same {limit.whom}"
            grounds.append(_uncounted(pack, postures, limit, call.tool, why))
        # The log counts once more as it writes, unless a person or the posture lets the call through.
        is_over = is_full or (perhaps == whose and may_be_full)
        uses.append(Use(decision, limit.name, whose, most=0 if is_over else limit.most, within=limit.within))
        if perhaps != whose:
            most = 0 if may_be_full else limit.most
            uses.append(Use(decision, limit.name + PERHAPS, perhaps, most=most, within=limit.within))
    return Places(tuple(grounds), tuple(uses))


def latest_uses(log: Log, tenant: str, taking: Sequence[Use], returned: Sequence[str]) -> LatestUses:
    """What a log tells of places, where others of the turn are about to take some, and those of decisions come back."""
    now = clocks.time()

    def latest(names: Sequence[str], since: float, most: int) -> list[float]:
        own = [now for use in taking if use.name in names]
        return [*own, *log.latest_uses(tenant, names, since, most, returned)][:most]

    return latest


def recorded_ground(pack: Pack, postures: Postures, limit: Limit, tool: str, *, is_told: bool) -> Ground:
    """What a limit says of a recorded call that was one too many, or of which nobody says whose it is."""
    if not is_told:
        return _uncounted(pack, postures, limit, tool, _unknown(limit))
    taken = _taken(limit)
    return _ground(pack, postures, limit, tool, limit.over, taken, f"{taken}: should one more be made now?", taken)


def _unknown(limit: Limit) -> str:
    return f"whose {limit.whom} it is, is not known"


def _taken(limit: Limit) -> str:
    return f"{limit.most} of {limit.most} were made in the last {told_duration(limit.within)} (per {limit.whom})"


def _full(pack: Pack, postures: Postures, limit: Limit, tool: str, free: float) -> Ground:
    when = datetime.fromtimestamp(free, UTC).isoformat(" ", "seconds")[:19]
    taken = _taken(limit)
    because = f"{taken}; a call whose end is not known counts; the next place is free at {when} UTC"
    agent = f"{taken}, so this one is too many for now; the next may be made after {when} UTC"
    asked = f"{taken}: should one more be made now?"
    return _ground(pack, postures, limit, tool, limit.over, because, asked, agent)


def _uncounted(pack: Pack, postures: Postures, limit: Limit, tool: str, why: str) -> Ground:
    because = f"how many were made in the last {told_duration(limit.within)} cannot be counted: {why}"
    return _ground(pack, postures, limit, tool, "ask", because, f"{because}; should this one be made?", because)


def _ground(
    pack: Pack, postures: Postures, limit: Limit, tool: str, answer: Any, because: str, asked: str, agent: str
) -> Ground:
    questions = (Question(limit.name, asked, "person"),) if answer == "ask" else ()
    citations = pack.policies[limit.policy].citations
    told = (because, citations, (), (), questions)
    return Ground(limit.policy, "rule", answer, postures.of(tool, limit.policy), *told, for_agent=agent)
