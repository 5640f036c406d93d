"""On every prefix of recorded conversations the shield's grounds are the evidence half that the audit reports."""

import itertools
from pathlib import Path

import pytest

from bylaw import Trajectory, read, verdicts
from bylaw.engine.conversation import Conversation
from bylaw.engine.finished import is_judged
from bylaw.engine.settlement import CallVerdict
from bylaw.shield import Ground, Shield
from bylaw.shield.grounds import find_grounds
from bylaw.trace import Call, Message, Result
from tests.engine.clinic import conversations, pack

DATA = Path(__file__).parents[3] / "shared" / "data" / "tau-airline"
SAYS = {"permit": ("allow",), "deny": ("deny",), "undetermined": ("look_up", "ask", "deny"), "failed": ("deny",)}


def grounds(shield: Shield, trajectory: Trajectory) -> list[list[Ground]]:
    """What the shield says before each call, told the conversation as it went."""
    conversation = Conversation(shield.pack)
    found: list[list[Ground]] = []
    turn = -1
    for event in trajectory.events:
        if not isinstance(event, Result) and event.turn != turn:
            conversation.end_turn()
            turn = event.turn
        if isinstance(event, Message):
            conversation.user(event.text) if event.by == "user" else conversation.agent(event.text)
        elif isinstance(event, Call):
            judgement = conversation.call(event.tool, event.arguments, id=event.id)
            if is_judged(shield.pack, event):
                found.append(find_grounds(conversation.session, shield.postures, judgement))
        else:
            call = trajectory.events[event.call if event.call is not None else -1]
            assert isinstance(call, Call)
            conversation.result(event.content, id=call.id, error=event.error, captured=event.captured)
    return found


def compare(said: list[Ground], verdict: CallVerdict) -> int:
    by_policy = {ground.policy: ground for ground in said if ground.kind == "guard"}
    open_ones = 0
    for policy in verdict.policies:
        ground = by_policy[policy.policy.id]
        assert ground.answer in SAYS[policy.evidence]
        decisive = {str(missing.fact) for missing in policy.missing if missing.decisive}
        assert decisive <= set(ground.missing)
        if policy.evidence == "undetermined" and ground.missing:
            open_ones += 1
            named = [fact for look_up in ground.look_ups for fact in look_up.facts]
            assert named or ground.questions
    refused = {ground.policy for ground in said if ground.kind == "rule" and ground.answer != "allow"}
    assert {finding.rule.policy for finding in (*verdict.rules, *verdict.open_rules)} == refused
    # What the user must be shown is looked up before they are asked.
    asked = {ground.policy for ground in said if ground.kind == "rule" and ground.answer in ("ask", "look_up")}
    waiting = {finding.rule.policy for finding in verdict.rules if finding.puts_card}
    assert {finding.rule.policy for finding in verdict.open_rules} | waiting == asked
    return open_ones


def test_what_the_shield_says_live_is_what_the_audit_reports() -> None:
    shield = Shield(pack())
    open_ones = judged = 0
    for trajectory in conversations()[:120]:
        told = verdicts(pack(), trajectory).calls
        said = grounds(shield, trajectory)
        assert len(told) == len(said)
        for verdict, each in zip(told, said, strict=True):
            judged += 1
            open_ones += compare(each, verdict)
    assert judged > 100
    assert open_ones > 20


@pytest.mark.shared
@pytest.mark.skipif(not DATA.is_dir(), reason="no recorded conversations here")
def test_on_recorded_airline_runs_the_shield_says_what_the_audit_reports() -> None:
    shield = Shield("tau-airline/tau2")
    judged = 0
    for file in sorted((DATA / "tau2" / "runs").glob("*.json*"))[:4]:
        for trajectory in itertools.islice(read(file), 0, None, 3):
            if not isinstance(trajectory, Trajectory) or any(
                isinstance(event, Call) and event.by == "user" for event in trajectory.events
            ):
                continue
            told = verdicts(shield.pack, trajectory).calls
            said = grounds(shield, trajectory)
            assert len(told) == len(said)
            for verdict, each in zip(told, said, strict=True):
                judged += 1
                compare(each, verdict)
    assert judged > 10
