"""What a shield would have said of a recorded conversation, call by call, each on what came before it.

The calls were made, whatever it would have said: nothing here guesses how a conversation would have gone on.
"""

from typing import Any

from msgspec import Struct

from bylaw.engine.finished import judged_steps
from bylaw.engine.judgement import Judgement
from bylaw.engine.session import Session
from bylaw.engine.settlement import CallVerdict
from bylaw.engine.verdict import Verdict
from bylaw.shield.approving import lift
from bylaw.shield.deciding import Decider
from bylaw.shield.decision import Answer, Ground, outcome
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


def replay(decider: Decider, trajectory: Trajectory) -> list[Replayed]:
    """Every call of the agent that has a verdict, in order."""
    pack, events = decider.pack, trajectory.events
    session = Session(pack, context=trajectory.context)
    asked: list[tuple[int, Call, Judgement, tuple[Ground, ...]]] = []
    for judged in session.follow(events, judged_steps(pack, events)):
        call = events[judged.made.step]
        assert isinstance(call, Call)
        weighed = session.weigh(call) if decider.must_weigh(judged) else None
        grounds = decider.grounds(judged, session.ledger, weighed=weighed)
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
