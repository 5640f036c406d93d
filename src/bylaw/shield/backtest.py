"""What a change of a pack would have done to recorded conversations: decisions and verdicts that are not the same."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from bylaw.engine.finished import judged_steps
from bylaw.engine.judgement import Judgement
from bylaw.engine.limited import LimitedCall, beyond, by_limit, limited_calls
from bylaw.engine.session import Session
from bylaw.engine.settlement import CallVerdict
from bylaw.engine.verdict import Verdict
from bylaw.pack import Pack
from bylaw.pack.review import held_to
from bylaw.policy.posture import Postures
from bylaw.rule.rule import Limit
from bylaw.shield.approving import lift
from bylaw.shield.decision import Answer, Ground, outcome
from bylaw.shield.grounds import find_grounds, weigh
from bylaw.shield.limiting import recorded_ground
from bylaw.trace.event import Approved, Call
from bylaw.trace.trajectory import Trajectory


class Replayed(Struct, frozen=True):
    """One recorded call, and what would have been said of it."""

    step: int
    tool: str
    arguments: dict[str, Any]
    answer: Answer
    allowed: bool
    grounds: tuple[Ground, ...]
    judgement: Judgement
    verdict: CallVerdict
    """What an audit says of it in hindsight."""

    def says(self, policy: str) -> tuple[Answer | None, Verdict | None]:
        """What one policy decides, and its verdict; None where it does not bind the call."""
        answer: Answer | None = next((ground.answer for ground in self.grounds if ground.policy == policy), None)
        verdict: Verdict | None = next(
            (each.determined for each in self.verdict.policies if each.policy.id == policy), None
        )
        if any(finding.rule.policy == policy for finding in self.verdict.rules):
            verdict = "violation"
        return answer, verdict


def replay(pack: Pack, postures: Postures, trajectory: Trajectory) -> list[Replayed]:
    """Every call of the agent that has a verdict, in order, each decided on what came before it.

    The calls were made, whatever the shield would have said: how a conversation would have continued is not guessed.
    """
    events = trajectory.events
    session = Session(pack, context=trajectory.context)
    asked: list[tuple[int, Call, Judgement, tuple[Ground, ...]]] = []
    for judged in session.follow(events, judged_steps(pack, events)):
        call = events[judged.made.step]
        assert isinstance(call, Call)
        grounds = find_grounds(session, postures, judged, weighed=weigh(session, judged))
        lifted = tuple(_lifted(ground, call.approved) for ground in grounds)
        asked.append((judged.made.step, call, judged, lifted))
    settled = {verdict.made.step: verdict for verdict in session.settle()}
    return [
        Replayed(step, call.tool, call.arguments, *outcome(grounds)[:2], grounds, judged, settled[step])
        for step, call, judged, grounds in asked
    ]


def _lifted(ground: Ground, approved: Approved | None) -> Ground:
    """A ground, after the yes that the person gave to this call: it answers what they were asked."""
    return ground if approved is None or ground.policy not in approved.policies else lift(ground, approved.by)


class Said(Struct, frozen=True):
    """What one version says: its decision before the call, and its verdict afterwards. None: nothing binds the call."""

    decision: Answer | None
    verdict: Verdict | None
    because: str = ""
    stops: bool = False
    """Its posture makes the decision stop the call."""


class Whole(Struct, frozen=True):
    """What comes of the call over all policies of one version."""

    decision: Answer
    runs: bool


class Changed(Struct, frozen=True):
    """One policy's word on one call, where the two versions differ."""

    policy: str
    conversation: str
    step: int
    tool: str
    old: Said
    new: Said
    old_call: Whole
    new_call: Whole
    file: str = ""
    """Where the conversation stands."""

    @property
    def is_flip(self) -> bool:
        """Whether anything else comes of the call, over all policies."""
        return self.old_call != self.new_call


class Backtest(Struct, frozen=True):
    """Two versions of a pack over the same conversations."""

    old: str
    new: str
    conversations: int
    calls: int
    """Calls that either version has a word on."""
    changed_calls: int
    """Calls of which the decision over all policies differs."""
    now_stopped: int
    """Calls that the old version would have let through and the new one would not."""
    now_allowed: int
    changed: tuple[Changed, ...]
    uncounted: int = 0
    """Calls under limits that bear no time: whether one was too many, nobody can tell."""


class _Word(Struct, frozen=True):
    """What one version says of one call."""

    grounds: tuple[Ground, ...] = ()
    verdicts: Mapping[str, Verdict | None] = {}

    @property
    def whole(self) -> Whole:
        # A call that a version has no word on would have run.
        return Whole(*outcome(self.grounds)[:2])

    def said(self, policy: str) -> Said:
        mine = [ground for ground in self.grounds if ground.policy == policy]
        stops = any(ground.answer != "allow" and ground.posture == "enforce" for ground in mine)
        decision = mine[0].answer if mine else None
        return Said(decision, self.verdicts.get(policy), mine[0].because if mine else "", stops)

    def and_(self, ground: Ground) -> "_Word":
        return _Word((*self.grounds, ground), self.verdicts)

    def policies(self) -> list[str]:
        return [ground.policy for ground in self.grounds]


class _Call(Struct):
    """One recorded call under both versions."""

    conversation: str
    file: str
    step: int
    tool: str
    old: _Word
    new: _Word


def backtest(old: Pack, new: Pack, trajectories: Iterable[Trajectory]) -> Backtest:
    """Hold the same conversations to both versions.

    Limits are counted over all of the conversations by the times that they bear, so calls under them are told last.
    """
    before, after = (held_to(each.postures, each.held_back) for each in (old, new))
    counts = _Counts()
    limited: dict[tuple[str, int, int], _Call] = {}
    under_old, under_new = list[LimitedCall](), list[LimitedCall]()
    for trajectory in trajectories:
        counts.conversations += 1
        was = {each.step: each for each in replay(old, before, trajectory)}
        is_now = {each.step: each for each in replay(new, after, trajectory)}
        bound = {call.step for call in _limited(old, trajectory, under_old) + _limited(new, trajectory, under_new)}
        for step in sorted(was.keys() | is_now.keys() | bound):
            made = trajectory.events[step]
            assert isinstance(made, Call)
            head = (trajectory.id, trajectory.file, step, made.tool)
            call = _Call(*head, _word(was.get(step)), _word(is_now.get(step)))
            if step in bound:
                limited[trajectory.file, trajectory.position, step] = call
            else:
                counts.add(call)
    uncounted = {(each.file, each.position, each.step) for each in under_old + under_new if each.time is None}
    for place, limit, is_told in _beyond(old, under_old):
        call = limited[place]
        call.old = call.old.and_(recorded_ground(old, before, limit, call.tool, is_told=is_told))
    for place, limit, is_told in _beyond(new, under_new):
        call = limited[place]
        call.new = call.new.and_(recorded_ground(new, after, limit, call.tool, is_told=is_told))
    for call in limited.values():
        counts.add(call)
    return counts.total(old, new, len(uncounted))


class _Counts:
    """What differs, added up."""

    def __init__(self) -> None:
        self.conversations = self._calls = self._differing = self._stopped = self._allowed = 0
        self._changed: list[Changed] = []

    def add(self, call: _Call) -> None:
        """One more call."""
        self._calls += 1
        before, after = call.old.whole, call.new.whole
        self._stopped += before.runs and not after.runs
        self._allowed += after.runs and not before.runs
        self._differing += before.decision != after.decision
        for policy in dict.fromkeys([*call.old.policies(), *call.new.policies()]):
            was, is_now = call.old.said(policy), call.new.said(policy)
            if (was.decision, was.verdict, was.stops) != (is_now.decision, is_now.verdict, is_now.stops):
                head = (policy, call.conversation, call.step, call.tool)
                self._changed.append(Changed(*head, was, is_now, before, after, file=call.file))

    def total(self, old: Pack, new: Pack, uncounted: int) -> Backtest:
        """The counts so far."""
        names = (f"{old.name} {old.version}", f"{new.name} {new.version}", self.conversations, self._calls)
        counts = (self._differing, self._stopped, self._allowed)
        return Backtest(*names, *counts, tuple(self._changed), uncounted)


def _word(replayed: Replayed | None) -> _Word:
    if replayed is None:
        return _Word()
    verdicts: dict[str, Verdict | None] = {each.policy: replayed.says(each.policy)[1] for each in replayed.grounds}
    return _Word(replayed.grounds, verdicts)


def _limited(pack: Pack, trajectory: Trajectory, every: list[LimitedCall]) -> list[LimitedCall]:
    """The calls of a conversation that count under a pack's limits, noted among those of all."""
    found = list(limited_calls(pack, trajectory, None, attempted=True))
    every += found
    return found


def _beyond(pack: Pack, calls: Sequence[LimitedCall]) -> Iterator[tuple[tuple[str, int, int], Limit, bool]]:
    """The calls that a shield stops for a limit: those beyond it, and those of which nobody says whose they are."""
    for limit, made in by_limit([pack], calls):
        for call in beyond(limit, made):
            yield (call.file, call.position, call.step), limit, True
        for call in made:
            if call.whose is None and not call.is_approved:
                yield (call.file, call.position, call.step), limit, False
