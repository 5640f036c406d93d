"""Agents: endpoints and scripts play the same tasks, and the audit says what they did."""

from typing import Any

import pytest

from bylaw.align.desk import open_agent
from bylaw.align.episode import Episode, Model, play
from bylaw.align.evaluation import evaluate, score
from bylaw.align.output import write_call
from bylaw.errors import UsageError
from bylaw_lab.clinic.practice import Scripted
from bylaw_lab.clinic.tasks import scenarios
from bylaw_lab.clinic.tasks.scenario import Scenario
from tests.llm.scripted import completion, serving


def tasks(count: int = 40) -> tuple[Scenario, ...]:
    return scenarios("development")[:count]


def test_an_endpoint_plays_like_the_script_behind_it() -> None:
    pytest.importorskip("openai")
    some = tasks(6)
    recorded = {}
    for task in some:
        episode, agent = Episode(task, policy="none"), Scripted("careful")
        while not episode.done:
            before = len(episode.messages)
            (output,) = agent.answer([episode])
            recorded[episode.messages[1]["content"], str(task.rows), before] = output
            episode.step(output)
    by_opening: dict[tuple[str, int], list[str]] = {}
    for (opening, _, place), output in recorded.items():
        by_opening.setdefault((opening, place), []).append(output)

    def script(number: int, body: dict[str, Any]) -> Any:
        assert {message["role"] for message in body["messages"]} <= {"system", "user", "assistant"}
        assert body["temperature"] == 0.0
        return 200, {}, completion(by_opening[body["messages"][1]["content"], len(body["messages"])][0])

    with serving(script) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "none")
        outcomes = play(some, open_agent(server.url, "scripted"), policy="none")
    # Twins begin alike, so the script behind the endpoint knows at least one of two.
    assert sum(outcome.success for outcome in outcomes) >= len(some) / 2


def test_what_is_no_agent_is_told() -> None:
    with pytest.raises(UsageError, match="is not an agent"):
        open_agent("nobody")
    with pytest.raises(UsageError, match="needs a model name"):
        open_agent("http://127.0.0.1:1/v1")


def test_the_audit_tells_careful_from_blind() -> None:
    found = {}
    for script in ("careful", "comply"):
        outcomes = play(tasks(), Scripted(script), policy="none")  # type: ignore[arg-type]
        scores = [score(task, outcome) for task, outcome in zip(tasks(), outcomes, strict=True)]
        found[script] = evaluate(tasks(), scores)
    careful, blind = found["careful"], found["comply"]
    assert (careful.near_miss_rate, careful.violation_rate) == (0, 0)
    assert blind.near_miss_rate + blind.violation_rate == 1
    assert careful.words > blind.words
    assert blind.passed.low <= blind.passed.mean <= blind.passed.high < careful.passed.low


def test_batches_do_not_mix_conversations() -> None:
    alone = [play([task], Scripted("comply"), policy="none")[0] for task in tasks(6)]
    together = play(tasks(6), Scripted("comply"), policy="none")
    assert alone == together


def test_a_model_sees_messages_and_nothing_else() -> None:
    seen: list[list[dict[str, Any]]] = []

    def generate(conversations: Any) -> list[str]:
        seen.extend(list(messages) for messages in conversations)
        return [
            write_call("get_patient", {"patient_id": "P1"}) if len(messages) < 4 else "No, I can't."
            for messages in conversations
        ]

    outcomes = play(tasks(2), Model(generate), policy="context")
    assert all(messages[0]["role"] == "system" and "3.1 A visit" in messages[0]["content"] for messages in seen)
    assert not any(outcome.told for outcome in outcomes)


def test_made_up_policies_in_thoughts_are_counted() -> None:
    said = [
        "<think>Only active patients are booked.</think>I can't.",
        "<think>A visit's copay is $99.00 for Gold.</think>I can't.",
        "I can't.",
    ]
    found = []
    for text in said:
        task = tasks()[0]
        (outcome,) = play([task], Model(lambda conversations, text=text: [text] * len(conversations)), policy="none")
        line = score(task, outcome)
        found.append((line.recalled > 0, line.made_up > 0))
    assert found == [(True, False), (False, True), (False, False)]
