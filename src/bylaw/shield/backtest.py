"""Replays recorded conversations under two pack versions and lists the decisions and verdicts that differ."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from bylaw.engine.finished import judged_steps
from bylaw.engine.limited import LimitedCall, beyond, by_limit, limited_calls
from bylaw.engine.session import Session
from bylaw.engine.settlement import CallVerdict
from bylaw.engine.verdict import Verdict
from bylaw.pack import Pack
from bylaw.pack.review import held_to
from bylaw.policy.tool import Postures
from bylaw.rule.rule import Limit
from bylaw.shield.approving import lift
from bylaw.shield.decision import Answer, Ground, outcome
from bylaw.shield.grounds import Binding, find_grounds, weigh
from bylaw.shield.limiting import recorded_ground
from bylaw.trace.event import Approved, Call, Trajectory

Place = tuple[str, int, int]
"""The file of a conversation, the conversation's position in the file, and the step of a call."""


class PolicyAnswer(Struct, frozen=True):
    """What one pack version decides before the call, and its verdict after the call. Both are None if no policy
    applies.
    """

    decision: Answer | None
    verdict: Verdict | None
    because: str = ""
    stops: bool = False
    """Whether the decision stops the call under the policy's posture."""


class CallOutcome(Struct, frozen=True):
    decision: Answer
    runs: bool


class Changed(Struct, frozen=True):
    """One policy's results on one call under both versions, if they differ."""

    policy: str
    conversation: str
    step: int
    tool: str
    old: PolicyAnswer
    new: PolicyAnswer
    old_call: CallOutcome
    new_call: CallOutcome
    file: str = ""

    @property
    def is_flip(self) -> bool:
        return self.old_call != self.new_call


class Backtest(Struct, frozen=True):
    old: str
    new: str
    conversations: int
    calls: int
    """The number of calls that at least one version decided."""
    changed_calls: int
    """The number of calls on which the overall decisions differ."""
    now_stopped: int
    """The number of calls that the new version stops and the old version does not."""
    now_allowed: int
    changed: tuple[Changed, ...]
    uncounted: int = 0
    """The number of calls without a time. Limits cannot be checked for these calls."""


class Replayed(Struct):
    """One version's result for a recorded call. It has no verdict if only a limit applies to the call."""

    grounds: tuple[Ground, ...] = ()
    verdict: CallVerdict | None = None

    @property
    def whole(self) -> CallOutcome:
        """The overall outcome. If no policy applies to the call, the outcome is that it ran."""
        return CallOutcome(*outcome(self.grounds)[:2])

    def said(self, policy: str) -> PolicyAnswer:
        mine = [ground for ground in self.grounds if ground.policy == policy]
        if not mine:
            return PolicyAnswer(None, None)
        verdict: Verdict | None = None
        if self.verdict is not None:
            verdict = next((each.determined for each in self.verdict.policies if each.policy.id == policy), None)
            verdict = "violation" if any(each.rule.policy == policy for each in self.verdict.rules) else verdict
        stops = any(ground.answer != "allow" and ground.posture == "enforce" for ground in mine)
        return PolicyAnswer(mine[0].answer, verdict, mine[0].because, stops)


def replay(pack: Pack, postures: Postures, trajectory: Trajectory) -> dict[int, Replayed]:
    """Decide and judge each recorded call of the agent, using only the events before the call. Return the results by
    step.

    The calls are replayed as recorded, including calls after one that the shield would have stopped.
    """
    events, found = trajectory.events, dict[int, Replayed]()
    session = Session(pack, context=trajectory.context)
    for judged in session.follow(events, judged_steps(pack, events)):
        call = events[judged.made.step]
        assert isinstance(call, Call)
        grounds = find_grounds(session, postures, judged, weighed=weigh(session, judged))
        found[judged.made.step] = Replayed(tuple(_lifted(ground, call.approved) for ground in grounds))
    for verdict in session.settle():
        found[verdict.made.step].verdict = verdict
    return found


def _lifted(ground: Ground, approved: Approved | None) -> Ground:
    return ground if approved is None or ground.policy not in approved.policies else lift(ground, approved.by)


class _Version:
    def __init__(self, pack: Pack) -> None:
        self.pack = pack
        self.name = f"{pack.name} {pack.version}"
        self._postures = held_to(pack.postures, pack.held_back)
        self._limited: list[LimitedCall] = []

    def replay(self, trajectory: Trajectory) -> tuple[dict[int, Replayed], set[int]]:
        limited = list(limited_calls(self.pack, trajectory, None, attempted=True))
        self._limited += limited
        return replay(self.pack, self._postures, trajectory), {call.step for call in limited}

    def untimed(self) -> set[Place]:
        return {_place(call) for call in self._limited if call.time is None}

    def limits(self) -> Iterator[tuple[Place, Limit, bool]]:
        """Yield the calls that a limit stops, each with whether it is known who made the call."""
        for limit, made in by_limit([self.pack], self._limited):
            yield from ((_place(call), limit, True) for call in beyond(limit, made))
            yield from ((_place(call), limit, False) for call in made if call.whose is None and not call.is_approved)

    def ground(self, limit: Limit, tool: str, *, is_told: bool) -> Ground:
        return recorded_ground(Binding(self.pack, self._postures, tool), limit, is_told=is_told)


def backtest(old: Pack, new: Pack, trajectories: Iterable[Trajectory]) -> Backtest:
    """Replay the same conversations under both versions.

    Limits are compared last, because they count calls in all conversations in order of time.
    """
    versions, conversations = (_Version(old), _Version(new)), 0
    limited: dict[Place, tuple[Trajectory, Call, list[Replayed]]] = {}
    counts, changed = Counter[str](), list[Changed]()
    for conversations, trajectory in enumerate(trajectories, 1):  # noqa: B007
        (was, first), (is_now, then) = (version.replay(trajectory) for version in versions)
        for step in sorted(was.keys() | is_now.keys() | first | then):
            call = trajectory.events[step]
            assert isinstance(call, Call)
            both = [said.get(step) or Replayed() for said in (was, is_now)]
            if step in first | then:
                without_events = Trajectory(trajectory.id, [], file=trajectory.file)
                limited[trajectory.file, trajectory.position, step] = (without_events, call, both)
            else:
                changed += _compare(trajectory, step, call.tool, both, counts)
    for place, version in enumerate(versions):
        for at, limit, is_told in version.limits():
            _, call, both = limited[at]
            ground = version.ground(limit, call.tool, is_told=is_told)
            both[place] = Replayed((*both[place].grounds, ground), both[place].verdict)
    for (_, _, step), (trajectory, call, both) in limited.items():
        changed += _compare(trajectory, step, call.tool, both, counts)
    uncounted = len(versions[0].untimed() | versions[1].untimed())
    totals = (counts["calls"], counts["changed"], counts["stopped"], counts["allowed"])
    return Backtest(versions[0].name, versions[1].name, conversations, *totals, tuple(changed), uncounted)


def _compare(
    trajectory: Trajectory, step: int, tool: str, both: Sequence[Replayed], counts: Counter[str]
) -> Iterator[Changed]:
    old, new = both
    before, after = old.whole, new.whole
    counts["calls"] += 1
    counts["stopped"] += before.runs and not after.runs
    counts["allowed"] += after.runs and not before.runs
    counts["changed"] += before.decision != after.decision
    for policy in dict.fromkeys(ground.policy for ground in (*old.grounds, *new.grounds)):
        was, is_now = old.said(policy), new.said(policy)
        if (was.decision, was.verdict, was.stops) != (is_now.decision, is_now.verdict, is_now.stops):
            yield Changed(policy, trajectory.id, step, tool, was, is_now, before, after, trajectory.file)


def _place(call: LimitedCall) -> Place:
    return call.file, call.position, call.step
