"""Conversations under a changed policy: which are learned, which are asked, and that they keep to the change."""

from functools import cache

import pytest
from align_changes import (
    Changed,
    change_to,
    changed_tasks,
    held_out_overrides,
    learned_changes,
    override_row,
)

from bylaw.align.dataset import SHAPES
from bylaw.align.evaluation import world_of
from bylaw.align.gold import play_careful
from bylaw.align.output import read_output
from bylaw.engine.session import Session
from bylaw.trace.event import Call
from bylaw_lab.clinic.simulator.truth import POLICIES
from bylaw_lab.clinic.simulator.verdict import run
from bylaw_lab.clinic.simulator.wants import Clinic
from bylaw_lab.clinic.tasks.careful import Careful
from bylaw_lab.clinic.tasks.contraries import OPPOSED, contraries
from bylaw_lab.clinic.tasks.sets import scenarios


@cache
def drawn() -> list[Changed]:
    return list(changed_tasks(scenarios("development")))


def test_no_policy_is_changed_both_in_training_and_in_the_test() -> None:
    learned = learned_changes()
    asked = {case.policy for case in held_out_overrides()}
    assert len(learned) == len(OPPOSED) // 2
    assert asked
    assert not learned & asked
    assert {each.policy for each in drawn()} <= learned


def test_a_change_turns_some_tasks_leaves_some_and_does_not_apply_to_some() -> None:
    before = {task.id: task for task in scenarios("development")}
    kinds: set[tuple[bool, bool]] = set()
    for each in drawn():
        policy = change_to(each.policy, each.words).pack.policies[each.policy]
        old = before[each.task.id if each.task.id in before else each.task.id.rsplit("-", 1)[0]]
        is_turned = old.errands[0].right != each.task.errands[0].right
        kinds.add((is_turned, each.task.errands[0].want.tool in policy.tools))
    assert kinds == {(True, True), (False, True), (False, False)}


@pytest.mark.parametrize("policy", OPPOSED)
def test_the_guard_of_a_contrary_says_what_the_contrary_says(policy: str) -> None:
    """By the simulator's own Python, over what the careful agent saw."""
    tasks = [task for task in scenarios("override") if task.focus[0] == policy][:4]
    for contrary in contraries(policy):
        pack = change_to(policy, contrary.words).pack
        for task in tasks:
            want = task.errands[0].want
            clinic = Clinic(task.open().connection)
            truth = run(POLICIES[policy]._replace(permits=contrary.permits), want.arguments, want.told(), clinic.read)
            clinic.connection.close()
            session = Session(pack, world=world_of(pack, task.rows))
            call = Call(want.tool, want.arguments, turn=1)
            session.judge(call)
            session.observe(call)
            (verdict,) = session.settle()
            found = next(each for each in verdict.policies if each.policy.id == policy)
            assert found.policy.definition == contrary.words
            assert (found.determined != "violation") == truth.permitted, (contrary.words, task.id)


def test_every_conversation_keeps_to_the_changed_pack_and_says_what_has_changed() -> None:
    told = 0
    for each in drawn()[::5]:
        change = change_to(each.policy, each.words)
        row = override_row(each, SHAPES["stage2"], working=True)
        assert row is not None
        system, *rest = row["messages"]
        assert f"New: {each.words}" in system["content"]
        thoughts = [read_output(one["content"]).thought for one in rest if one["role"] == "assistant"]
        assert all(thoughts)
        applies = each.task.errands[0].want.tool in change.pack.policies[each.policy].tools
        assert any(each.words in (thought or "") for thought in thoughts) == applies
        told += applies
        _, outcome = play_careful(each.task, Careful(each.task, (change.policy, change.contrary)))
        assert outcome.success
        session = Session(change.pack, world=world_of(change.pack, each.task.rows))
        for event in outcome.events:
            if isinstance(event, Call):
                session.judge(event)
            session.observe(event)
        assert {verdict.determined for verdict in session.settle()} <= {"compliant"}
    assert told > 5


def test_stage_1_reads_the_change_and_has_no_thought() -> None:
    row = override_row(drawn()[0], SHAPES["stage1"], working=False)
    assert row is not None
    assert "A policy has changed" in row["messages"][0]["content"]
    assert not any("<think>" in one["content"] for one in row["messages"] if one["role"] == "assistant")
