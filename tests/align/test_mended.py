"""A model's own conversation, brought to a good end: what stays, what is put right, what is not learned."""

from typing import Any

import pytest

from bylaw.align.episode import Episode
from bylaw.align.gold import play_careful
from bylaw.align.mended import mend
from bylaw.align.output import read_output, write_call
from bylaw.align.scripted import comply, refuse
from bylaw.align.tasks import load_tasks
from bylaw.align.training.dialect import IGNORED, Dialect
from bylaw.packs.clinic.tasks import Scenario


@pytest.fixture(scope="module")
def tasks() -> list[Scenario]:
    return [task for task in load_tasks("development")[:16] if isinstance(task, Scenario)]


def played(task: Scenario, script: Any) -> tuple[list[str], bool]:
    """What a script says in a task, and whether that comes out well."""
    episode, outputs = Episode(task, policy="none"), list[str]()
    while not episode.done:
        outputs.append(script(episode))
        episode.step(outputs[-1])
    return outputs, episode.outcome().success


def said(messages: Any) -> list[str]:
    return [each["content"] for each in messages if each["role"] == "assistant"]


def again(task: Scenario, outputs: list[str]) -> bool:
    """Whether outputs come out well when they are played once more."""
    episode = Episode(task, policy="none")
    for output in outputs:
        if episode.done:
            return False
        episode.step(output)
    return episode.outcome().success


@pytest.mark.parametrize("number", range(8))
def test_a_conversation_that_was_right_stays_as_it_is(tasks: list[Scenario], number: int) -> None:
    task = tasks[number]
    turns, _ = play_careful(task)
    outputs = [write_call(*each.act.call) if each.act.call else each.act.text for each in turns]
    mended = mend(task, outputs, passed=True)
    assert mended is not None
    assert (mended.mistake, mended.unlearned) == (None, ())
    assert said(mended.messages) == outputs
    assert mend(task, outputs, passed=True, keeps_mistake=True) is None


@pytest.mark.parametrize("script", [comply, refuse])
def test_the_careful_agent_takes_over_at_the_first_mistake_and_ends_well(tasks: list[Scenario], script: Any) -> None:
    wrong = 0
    for task in tasks:
        outputs, passed = played(task, script)
        mended = mend(task, outputs, passed=passed)
        if mended is None or mended.mistake is None:
            continue
        wrong += 1
        turns = said(mended.messages)
        assert turns[: mended.mistake.turn] == outputs[: mended.mistake.turn]
        assert turns[mended.mistake.turn] != outputs[mended.mistake.turn]
        assert all(read_output(each).is_formatted for each in turns[mended.mistake.turn :])
        assert mended.messages[-1]["role"] == "assistant"
        assert again(task, turns)
    assert wrong >= 8


def test_a_mistake_that_stays_is_made_good_after_it_and_is_not_learned(tasks: list[Scenario]) -> None:
    kept = 0
    for task in tasks:
        outputs, passed = played(task, comply)
        mended = mend(task, outputs, passed=passed, keeps_mistake=True)
        if mended is None:
            continue
        kept += 1
        assert mended.mistake is not None
        (place,) = mended.unlearned
        assert mended.messages[place]["content"] == outputs[mended.mistake.turn]
        assert again(task, said(mended.messages))
        assert mended.row()["unlearned"] == [place]
    assert kept >= 8


def test_a_write_that_cannot_be_undone_is_never_left_in(tasks: list[Scenario]) -> None:
    task = next(task for task in tasks if task.errands[0].right is None and not task.errands[0].push)
    want = task.errands[0].want
    outputs = [write_call(want.tool, want.arguments), "Done."]
    mended = mend(task, outputs, passed=False)
    assert mended is not None
    assert mended.mistake is not None
    assert mended.mistake.did == "write"
    assert mend(task, outputs, passed=False, keeps_mistake=True) is None


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
