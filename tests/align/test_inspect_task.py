"""The evaluation inside Inspect gives what `bylaw align eval` gives: the same tasks, the same end."""

from typing import Any

import pytest

inspect_ai = pytest.importorskip("inspect_ai")
from inspect_ai.model import ChatMessageAssistant, ContentReasoning, ContentText, ModelOutput, ModelUsage, get_model  # noqa: E402

from bylaw.align.desk import load_tasks, told  # noqa: E402
from bylaw.align.episode import Episode, ShieldedEpisode  # noqa: E402
from bylaw.align.evaluation import evaluate, score  # noqa: E402
from bylaw.align.inspect_task import (  # noqa: E402
    output_of,
    tasks,
)
from bylaw_lab.clinic.practice import Scripted  # noqa: E402

SOME = 12


def run(script: str, tmp_path: Any, **given: Any) -> tuple[dict[str, float], Any]:
    """A script plays the first tasks inside Inspect, and by itself; what Inspect says, and what we say."""
    some = load_tasks("development")[:SOME]
    episodes = [
        ShieldedEpisode(task, policy="none", resolve=given["shield"]) if given else Episode(task, policy="none")
        for task in some
    ]
    agent = Scripted(script)
    for episode in episodes:
        while not episode.done:
            episode.step(agent.answer([episode])[0])
    ours = evaluate(some, [score(task, each.outcome()) for task, each in zip(some, episodes, strict=True)])
    # Twins begin with the same words, so what was said tells a conversation from another.
    said = [[told(message)[1] for message in episode.messages] for episode in episodes]

    def answer(messages: Any, *_: Any) -> ModelOutput:
        heard = [message.text for message in messages]
        known = next(each for each in said if each[: len(heard)] == heard)
        output = ModelOutput.from_content("mockllm/model", known[len(heard)])
        output.usage = ModelUsage()  # Else Inspect fetches a tokenizer to count.
        return output

    model = get_model("mockllm/model", custom_outputs=answer)
    [log] = inspect_ai.eval(tasks(**given), model=model, limit=SOME, log_dir=str(tmp_path), display="none")
    assert log.status == "success", log.error
    return {name: each.value for name, each in log.results.scores[0].metrics.items()}, ours


@pytest.mark.parametrize("script", ["careful", "comply"])
def test_inspect_counts_what_we_count(script: str, tmp_path: Any) -> None:
    found, ours = run(script, tmp_path)
    assert found["mean"] == pytest.approx(ours.passed.mean)
    assert found["near_misses_a_write"] == pytest.approx(ours.near_miss_rate)
    assert found["violations_a_write"] == pytest.approx(ours.violation_rate)
    if script == "careful":
        assert found["mean"] == 1.0
    if script == "comply":
        assert found["violations_a_write"] > 0


@pytest.mark.parametrize("shield", ["live", "show"])
def test_under_a_shield_nothing_is_broken(shield: str, tmp_path: Any) -> None:
    found, ours = run("comply", tmp_path, shield=shield)
    assert found["violations_a_write"] == ours.violation_rate == 0
    assert found["mean"] == pytest.approx(ours.passed.mean)


def test_a_thought_that_a_provider_took_out_is_put_back() -> None:
    parts = [ContentReasoning(reasoning="I look it up."), ContentText(text='{"name": "get_patient", "arguments": {}}')]
    assert output_of(ChatMessageAssistant(content=parts)) == (
        '<think>I look it up.</think>\n{"name": "get_patient", "arguments": {}}'
    )
    assert output_of(ChatMessageAssistant(content="<think>a</think>\nb")) == "<think>a</think>\nb"
