"""Practice: what the careful agent does in another agent's place, and where the two part."""

import json
from typing import Any

import pytest

from bylaw.align.episode import Episode
from bylaw.align.gold import play_careful
from bylaw.align.near_miss import audit_writes
from bylaw.align.output import read_output, write_call
from bylaw.align.practice import Correction, corrections, hasty, without_look_up
from bylaw.align.scripted import comply, refuse
from bylaw.align.tasks import load_tasks
from bylaw.packs.clinic.simulator.desk import WRITES
from bylaw.packs.clinic.tasks import Scenario
from bylaw.packs.clinic.tasks.careful import Careful
from bylaw.packs.clinic.tasks.scenario import Scene

TASKS = [task for task in load_tasks("development")[:10] if isinstance(task, Scenario)]


def played(task: Scenario, script: Any) -> tuple[list[str], bool]:
    """What a script says in a task, and whether that comes out well."""
    episode, outputs = Episode(task, policy="none"), list[str]()
    while not episode.done:
        outputs.append(script(episode))
        episode.step(outputs[-1])
    return outputs, episode.outcome().success


@pytest.mark.parametrize("task", TASKS[:8], ids=lambda task: task.id)
def test_the_careful_agent_finds_nothing_to_put_right_in_its_own_conversations(task: Scenario) -> None:
    turns, outcome = play_careful(task)
    outputs = [write_call(*each.act.call) if each.act.call else each.act.text for each in turns]
    assert outcome.success
    assert corrections(task, outputs, passed=False) == []


@pytest.mark.parametrize("task", TASKS[:8], ids=lambda task: task.id)
def test_the_careful_agent_brings_a_conversation_to_a_good_end_that_another_began(task: Scenario) -> None:
    """The other one proposed what the caller asked for, before it had looked at anything."""
    episode = Episode(task, policy="none")
    episode.step(comply(episode))
    while not episode.done:
        assert isinstance(episode.scene, Scene)
        act = Careful.taking_over(episode.scene, episode.events).act()
        episode.step(write_call(*act.call) if act.call else act.text)
    assert episode.outcome().success


def test_a_turn_before_a_look_up_that_was_left_out_is_put_right_even_where_it_came_out_well() -> None:
    found: list[tuple[bool, Correction]] = []
    for task in TASKS:
        outputs, passed = played(task, comply)
        found += [(passed, each) for each in corrections(task, outputs, passed=passed)]
    lucky = [each for passed, each in found if passed]
    assert lucky
    assert {each.right for each in lucky} == {"look_up"}
    assert {each.did for each in lucky} <= {"proposal", "write", "report", "refusal"}


def test_a_correction_goes_on_from_the_models_own_beginning_with_a_thought_and_a_turn() -> None:
    task = next(task for task in TASKS if not played(task, refuse)[1])
    outputs, _ = played(task, refuse)
    first = corrections(task, outputs, passed=False)[0]
    row = first.row()
    assert row["learn"] == "last"
    *before, answer = row["messages"]
    assert [each["role"] for each in before][:2] == ["system", "user"]
    assert [each["content"] for each in before if each["role"] == "assistant"] == outputs[: first.turn]
    read = read_output(answer["content"])
    assert read.is_formatted
    assert read.tool is not None or read.text
    assert json.dumps(row)


def test_nothing_is_learned_after_a_write_that_cannot_be_undone() -> None:
    task = next(task for task in TASKS if task.errands[0].right is None and not task.errands[0].push)
    want = task.errands[0].want
    outputs = [write_call(want.tool, want.arguments), "Done.", "Anything else?"]
    assert [each.turn for each in corrections(task, outputs, passed=False)] == [0]


@pytest.mark.parametrize("working", [False, True])
def test_a_look_up_that_was_left_out_is_the_next_turn(*, working: bool) -> None:
    made = (without_look_up(task, which, working=working) for task in TASKS for which in range(4))
    found = [each for each in made if each is not None]
    assert len(found) >= 8
    compared = [each for each in found if any(": later" in one["content"] for one in each.messages)]
    assert bool(compared) == working
    for each in found:
        *before, answer = each.messages
        call = read_output(answer["content"])
        assert (each.right, call.tool is not None) == ("look_up", True)
        earlier = [read_output(one["content"]) for one in before if one["role"] == "assistant"]
        assert (call.tool, call.arguments) not in [(one.tool, one.arguments) for one in earlier]
        said = "\n".join(one["content"] for one in before[1:] if one["role"] != "assistant")
        assert all(str(value) in said for value in call.arguments.values() if any(map(str.isdigit, str(value))))


def test_after_an_announcement_too_early_and_a_yes_comes_the_look_up_and_no_write_is_a_near_miss() -> None:
    found = [(task, row) for task in TASKS for which in (0, 1) if (row := hasty(task, which, working=True)) is not None]
    assert len(found) >= 8
    writes = 0
    for task, row in found:
        (early,) = row["unlearned"]
        messages = row["messages"]
        assert read_output(messages[early]["content"]).text.endswith("Shall I go ahead?")
        assert messages[early + 1]["content"] == task.agrees
        assert read_output(messages[early + 2]["content"]).tool not in (None, *WRITES)
        episode = Episode(task, policy="none")
        for message in messages:
            if message["role"] == "assistant":
                episode.step(message["content"])
        audited = audit_writes(task, episode.outcome())
        assert (audited.near_misses, audited.violations) == (0, 0)
        writes += audited.writes
    assert writes
