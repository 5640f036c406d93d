"""Applies limits that span several recorded conversations.

Only earlier calls that certainly ran count. If a call exceeds the limit only when calls with an unknown time, person or
outcome are included, it is undecided.
"""

import hashlib
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from bylaw.facts.call_record import accepted, declares_refusal, is_readable
from bylaw.pack import Pack
from bylaw.rule.rule import Limit
from bylaw.trace.event import Call, Event, Message, Result, Trajectory

_ANYBODY = "anybody"
"""Used as the hash of the person for a limit that everyone shares."""


class LimitedCall(Struct, frozen=True, array_like=True):
    """A call that counts towards a limit."""

    limit: str
    whose: str | None
    """The hash of the person to whom the limit applies. None if the person is unknown."""
    time: float | None
    is_sure: bool
    is_approved: bool
    """Whether a reviewer approved the call."""
    file: str
    position: int
    step: int
    takes_place: bool = True
    """False if the call was certainly refused, so that it does not count towards the limit."""
    mark: str = ""
    """A hash that identifies the call in several logs. Empty if it might match another call."""
    perhaps: str = ""
    """A hash shared by all spellings of the person's name that a tool may treat as the same person. Empty if it equals
    `whose`.
    """
    tool: str = ""
    agent: str = ""
    verdicts: tuple[str, ...] = ()
    """The guards' verdicts on the call, one per criterion. Empty if the call was not judged."""
    clean: tuple[str, ...] = ()
    """The criteria under which no guard found a violation in the whole conversation."""

    @property
    def kin(self) -> str | None:
        """The key shared by calls that may concern the same person."""
        return self.perhaps or self.whose


def limited_calls(
    pack: Pack, trajectory: Trajectory, key: bytes | None, *, attempted: bool = False
) -> Iterator[LimitedCall]:
    """Yield the calls that count towards the pack's limits. With `attempted`, include calls that did not run."""
    if not pack.book.limits:
        return
    results = {event.call: event for event in trajectory.events if isinstance(event, Result)}
    context = dict(trajectory.context)
    marked: Counter[str] = Counter()
    for step, call in _performed(pack, trajectory.events):
        if isinstance(call, Message) and call.handover is not None:
            context = dict(call.handover)
        if not isinstance(call, Call) or call.by != "agent":
            continue
        context |= call.context or {}
        tool, result = pack.schema.tools.get(call.tool), results.get(step)
        is_done = accepted(tool, result)
        is_refused = result is not None and (result.refused is True or declares_refusal(tool, result))
        takes_place = not (call.refused or (is_done is False and is_refused))
        if not takes_place and not attempted:
            continue
        mark = _mark(trajectory.id, call)
        # A host may have used the same id for several calls.
        marked[mark] += 1
        mark = _hash(f"{mark} {marked[mark]}", key) if mark else ""
        for limit in pack.book.limits:
            if call.tool in limit.tools:
                # If the recorded call is truncated or redacted, its person is unknown.
                is_told = not limit.per.startswith("call.") or is_readable(call, tool)
                whose = limit.whose(call.arguments, trajectory.agent, context) if is_told else None
                counted_for = None if whose is None else _hash(whose, key)
                shared = limit.perhaps(whose) if whose is not None else ""
                perhaps = _hash(shared, key) if shared != (whose or "") else ""
                approved = call.approved is not None and limit.policy in call.approved.policies
                place = (trajectory.file, trajectory.position, step, takes_place, mark, perhaps)
                yield LimitedCall(limit.name, counted_for, call.time, is_done is True, approved, *place)


def _performed(pack: Pack, events: Sequence[Event]) -> Iterator[tuple[int, Event]]:
    if pack.schema.actions is None:
        yield from enumerate(events)
        return
    from bylaw.engine.acting import performed_events

    yield from performed_events(pack.schema.actions, events)


def _mark(conversation: str, call: Call) -> str:
    """Return a hash that identifies the call in every log. Empty if the hash might not be unique."""
    if not call.id or call.time is None:
        return ""
    return repr((conversation, call.id, call.time, call.tool, call.arguments))


def _hash(told: str, key: bytes | None) -> str:
    """Return a hash that links the calls of one person, or the records of one call, without containing the person's
    name.
    """
    return hashlib.blake2b(told.encode("utf-8", "replace"), key=key or b"").hexdigest()[:32]


def over_limits(packs: Iterable[Pack], calls: Iterable[LimitedCall]) -> list[LimitedCall]:
    return [over for limit, made in by_limit(packs, calls) for over in over_and_open(limit, made)[0]]


def by_limit(packs: Iterable[Pack], calls: Iterable[LimitedCall]) -> Iterator[tuple[Limit, list[LimitedCall]]]:
    """Yield each limit with the calls that count towards it. A call recorded in several logs is counted once."""
    found: dict[str, dict[object, LimitedCall]] = defaultdict(dict)
    for call in calls:
        told = found[call.limit]
        which = call.mark or (call.file, call.position, call.step)
        # Keep the most complete record: the one that shows that the call certainly ran. If there is none, keep the last
        # one.
        told[which] = max(call, told.get(which, call), key=_fullness)
    limits = {limit.name: limit for pack in packs for limit in pack.book.limits}
    for name, limit in sorted(limits.items()):
        yield limit, list(found[name].values())


def _fullness(call: LimitedCall) -> tuple[bool, bool, str, int, int]:
    return call.is_sure, call.is_approved, call.file, call.position, call.step


def beyond(limit: Limit, calls: Iterable[LimitedCall]) -> list[LimitedCall]:
    """Return the calls that a shield would block. They can be more, because a shield also counts calls with an unknown
    outcome.
    """
    every = list(calls)
    taken = _Times(call for call in every if call.takes_place and call.whose is not None)
    return [call for call in every if not call.is_approved and taken.before(call, limit.within) >= limit.most]


def over_and_open(limit: Limit, calls: Sequence[LimitedCall]) -> tuple[list[LimitedCall], list[LimitedCall]]:
    """Return, in order, the calls that certainly exceeded the limit and the calls that may have exceeded it."""
    sure = _Times(call for call in calls if call.is_sure and call.whose is not None)
    every = _Times((call for call in calls if call.whose is not None), is_sure=False)
    strays = _Times(call for call in calls if call.whose is None)
    over: list[LimitedCall] = []
    is_open: list[LimitedCall] = []
    ordered = sorted(calls, key=lambda call: (call.time or 0.0, call.file, call.position, call.step))
    for call in ordered:
        if call.is_approved:
            continue
        if call.is_sure and sure.before(call, limit.within) >= limit.most:
            over.append(call)
            continue
        may = every.beside(call, limit.within) + strays.beside(call, limit.within, anybody=True)
        # A call without a time counts itself, so subtract it.
        if may - (call.time is None) >= limit.most:
            is_open.append(call)
    return over, is_open


class _Times:
    """Call times by person. If `is_sure` is False, a call is listed for every spelling of its person."""

    def __init__(self, calls: Iterable[LimitedCall], *, is_sure: bool = True) -> None:
        self._is_sure = is_sure
        self._made: dict[str, list[tuple[float, str, int, int]]] = defaultdict(list)
        self._untimed: Counter[str] = Counter()
        for call in calls:
            for whose in (self._whose(call) or "", _ANYBODY):
                if call.time is None:
                    self._untimed[whose] += 1
                else:
                    self._made[whose].append((call.time, call.file, call.position, call.step))
        for made in self._made.values():
            made.sort()

    def _whose(self, call: LimitedCall) -> str | None:
        return call.whose if self._is_sure else call.kin

    def before(self, call: LimitedCall, within: float) -> int:
        """Return how many calls by the same person certainly ran within the period that ends with this call."""
        return 0 if call.time is None or call.whose is None else self._between(call.whose, call, within)

    def beside(self, call: LimitedCall, within: float, *, anybody: bool = False) -> int:
        """Return how many calls may have run within the period that ends with this call."""
        told = self._whose(call)
        whose = _ANYBODY if anybody or told is None else told
        if call.time is None:
            return len(self._made[whose]) + self._untimed[whose]
        return self._between(whose, call, within) + self._untimed[whose]

    def _between(self, whose: str, call: LimitedCall, within: float) -> int:
        assert call.time is not None
        made = self._made[whose]
        first = bisect_right(made, (call.time - within, "\U0010ffff", 0, 0))
        return max(0, bisect_left(made, (call.time, call.file, call.position, call.step)) - first)
