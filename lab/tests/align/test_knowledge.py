"""The knowledge test: balanced, answered by guards, in words no thought has."""

from collections import Counter
from typing import Any

import pytest

from bylaw.align.agents import leanings
from bylaw.align.gold import gold
from bylaw.align.prompt import pack_named
from bylaw.align.rollout import Model
from bylaw.errors import UsageError
from bylaw_lab.align.knowledge import (
    Situation,
    answer,
    examine,
    prompt,
    questions,
    read_questions,
    situations,
)
from bylaw_lab.clinic.practice import Scripted
from bylaw_lab.clinic.simulator.tables import Key, known, tables
from bylaw_lab.clinic.simulator.truth import POLICIES
from bylaw_lab.clinic.tasks import scenarios


def test_there_are_250_of_each_answer_balanced_on_every_policy() -> None:
    asked = questions()
    assert len({question.text for question in asked}) == len(asked) == 500
    assert sum(question.answer for question in asked) == 250
    counts = Counter((question.policy, question.answer) for question in asked)
    policies = {question.policy for question in asked}
    assert policies == set(pack_named("clinic").guards)
    assert all(counts[policy, True] == counts[policy, False] for policy in policies)
    assert not any("{" in question.text for question in asked)


def test_the_guards_answer_as_the_simulator_s_own_reading_of_the_handbook() -> None:
    pack = pack_named("clinic")
    asked = 0
    for policy, body in read_questions(pack).items():
        for situation in situations(pack, body):
            if (said := answer(pack, policy, situation)) is not None:
                assert truth(policy, situation) is said, (policy, situation)
                asked += 1
    assert asked > 500


def truth(policy: str, situation: Situation) -> bool:
    told = {"Request.reason": situation.arguments.get("reason"), **situation.facts}

    def look(entity: str, key: str | Key, field: str) -> Any:
        value = told[f"{entity}.{field}"]
        return value if entity == "Request" else known(tables()[entity].columns[field].type, value)

    return POLICIES[policy].permits(situation.arguments, look)


def test_no_question_has_a_sentence_of_a_thought() -> None:
    thoughts = " ".join(lesson.thought for task in scenarios("development")[:16] for lesson in gold(task).lessons)
    for question in questions():
        for sentence in question.text.replace("?", ".").split(". "):
            assert sentence.strip(". ") not in thoughts


def test_knowing_all_scores_all_and_always_the_same_scores_half() -> None:
    asked = questions()
    assert examine(asked, [1.0 if question.answer else -1.0 for question in asked]).accuracy == 1
    assert examine(asked, [5.0] * 500).accuracy == 0.5
    shifted = examine(asked, [9.0 if question.answer else 8.0 for question in asked])
    assert shifted.accuracy == 0.5
    assert shifted.balanced == 1.0


def test_agents_are_asked_by_log_probability_or_by_word() -> None:
    asked = [prompt("clinic", question.text, "none") for question in questions()[:4]]

    class Weigher:
        def answer(self, episodes: object) -> list[str]:
            raise AssertionError

        def chances(self, conversations: list[object], choices: tuple[str, ...]) -> list[list[float]]:
            assert choices == ("Yes", "No")
            return [[-1.0, -3.0]] * len(conversations)

    assert leanings(Weigher(), asked) == [2.0] * 4
    assert leanings(Model(lambda conversations: ["yes.", "No", "Yes, it is", "maybe"]), asked) == [1, -1, 1, -1]
    with pytest.raises(UsageError, match="script cannot answer questions"):
        leanings(Scripted("careful"), asked)


def test_the_policy_stands_in_the_prompt_where_it_should() -> None:
    question = questions()[0]
    assert "Harbour Street Clinic: handbook" in prompt("clinic", question.text, "context")[0]["content"]
    assert "handbook for the front desk" not in prompt("clinic", question.text, "none")[0]["content"]
