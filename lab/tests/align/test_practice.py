"""Practice: what the careful agent does in another agent's place, and where the two part."""

from typing import Any

import pytest
from align_practice import hasty, without_look_up

from bylaw.align.desk import load_tasks
from bylaw.align.episode import Episode
from bylaw.align.evaluation import audit_writes
from bylaw.align.output import read_output, write_call
from bylaw.align.training.dialect import IGNORED, Dialect
from bylaw_lab.clinic.practice import comply
from bylaw_lab.clinic.simulator.desk import WRITES
from bylaw_lab.clinic.tasks import Scenario
from bylaw_lab.clinic.tasks.careful import Careful
from bylaw_lab.clinic.tasks.scenario import Scene


@pytest.fixture(scope="module")
def tasks() -> list[Scenario]:
    return [task for task in load_tasks("development")[:10] if isinstance(task, Scenario)]


@pytest.mark.parametrize("number", range(8))
def test_the_careful_agent_brings_a_conversation_to_a_good_end_that_another_began(
    tasks: list[Scenario], number: int
) -> None:
    """The other one proposed what the caller asked for, before it had looked at anything."""
    episode = Episode(tasks[number], policy="none")
    episode.step(comply(episode))
    while not episode.done:
        assert isinstance(episode.scene, Scene)
        act = Careful.taking_over(episode.scene, episode.events).act()
        episode.step(write_call(*act.call) if act.call else act.text)
    assert episode.outcome().success


@pytest.mark.parametrize("working", [False, True])
def test_a_look_up_that_was_left_out_is_the_next_turn(tasks: list[Scenario], *, working: bool) -> None:
    made = (without_look_up(task, which, working=working) for task in tasks for which in range(4))
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


def test_after_an_announcement_too_early_and_a_yes_comes_the_look_up_and_no_write_is_a_near_miss(
    tasks: list[Scenario],
) -> None:
    found = [(task, row) for task in tasks for which in (0, 1) if (row := hasty(task, which, working=True)) is not None]
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


class Characters:
    """A tokenizer whose tokens are characters."""

    chat_template = eos_token = ""

    def convert_tokens_to_ids(self, _: str) -> int:
        return 0

    def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
        return {"input_ids": [ord(each) for each in text]}


def test_a_turn_that_is_not_to_be_learned_is_read_all_the_same() -> None:
    talk = [
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": "wrong"},
        {"role": "user", "content": "v"},
        {"role": "assistant", "content": "right"},
    ]
    ids, labels = Dialect(Characters()).example(talk, unlearned=[1])
    learned = "".join(chr(each) for each in labels if each != IGNORED)
    assert learned == "right<|im_end|>"
    assert "wrong" in "".join(map(chr, ids))
