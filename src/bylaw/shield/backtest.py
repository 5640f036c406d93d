"""What a change of a pack would have done to recorded conversations: decisions and verdicts that are not the same."""

from collections.abc import Iterable

from msgspec import Struct

from bylaw.engine.verdict import Verdict
from bylaw.pack import Pack
from bylaw.pack.review import held_to
from bylaw.shield.deciding import Decider
from bylaw.shield.decision import Answer
from bylaw.shield.replay import Replayed, replay
from bylaw.trace.trajectory import Trajectory


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


def backtest(old: Pack, new: Pack, trajectories: Iterable[Trajectory]) -> Backtest:
    """Hold the same conversations to both versions."""
    before, after = (Decider(each, held_to(each.postures, each.held_back)) for each in (old, new))
    conversations = calls = differing = stopped = allowed = 0
    changed: list[Changed] = []
    for trajectory in trajectories:
        conversations += 1
        was = {each.step: each for each in replay(before, trajectory)}
        is_now = {each.step: each for each in replay(after, trajectory)}
        for step in sorted(was.keys() | is_now.keys()):
            calls += 1
            ours, theirs = was.get(step), is_now.get(step)
            before_it, after_it = _whole(ours), _whole(theirs)
            stopped += before_it.runs and not after_it.runs
            allowed += after_it.runs and not before_it.runs
            differing += before_it.decision != after_it.decision
            changed += _changes(trajectory, step, ours, theirs)
    told = (f"{old.name} {old.version}", f"{new.name} {new.version}", conversations, calls)
    return Backtest(*told, differing, stopped, allowed, tuple(changed))


def _whole(replayed: Replayed | None) -> Whole:
    # A call that a version has no word on would have run.
    return Whole("allow", True) if replayed is None else Whole(replayed.answer, replayed.allowed)


def _changes(trajectory: Trajectory, step: int, old: Replayed | None, new: Replayed | None) -> list[Changed]:
    found: list[Changed] = []
    either = old or new
    assert either is not None
    for policy in dict.fromkeys(ground.policy for each in (old, new) if each is not None for ground in each.grounds):
        was, is_now = _said(old, policy), _said(new, policy)
        if (was.decision, was.verdict, was.stops) != (is_now.decision, is_now.verdict, is_now.stops):
            said = (was, is_now, _whole(old), _whole(new))
            found.append(Changed(policy, trajectory.id, step, either.tool, *said, file=trajectory.file))
    return found


def _said(replayed: Replayed | None, policy: str) -> Said:
    if replayed is None:
        return Said(None, None)
    mine = [ground for ground in replayed.grounds if ground.policy == policy]
    stops = any(ground.answer != "allow" and ground.posture == "enforce" for ground in mine)
    return Said(*replayed.says(policy), mine[0].because if mine else "", stops)
