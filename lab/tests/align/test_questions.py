"""Questions that are learned, and those that are asked: never on the same policy."""

from functools import cache
from typing import Any

from align_questions import held_out_questions, learned_policies, question_rows

from bylaw.align.dataset import SHAPES, SetName
from bylaw.align.matcher import Matcher
from bylaw.align.output import read_output
from bylaw.align.prompt import pack_named
from bylaw_lab.align.knowledge import read_questions


@cache
def rows(stage: SetName) -> list[dict[str, Any]]:
    return question_rows("clinic", SHAPES[stage])


def test_no_policy_is_both_learned_and_asked() -> None:
    learned = learned_policies("clinic")
    asked = {one.policy for one in held_out_questions("clinic")}
    assert learned
    assert asked
    assert not learned & asked
    assert learned | asked == set(read_questions(pack_named("clinic")))
    assert {row["id"].split("/")[1] for row in rows("stage2")} <= learned


def test_as_many_answers_are_yes_as_no_on_every_policy() -> None:
    answers: dict[str, list[str]] = {}
    for row in rows("stage2"):
        answers.setdefault(row["id"].split("/")[1], []).append(read_output(row["messages"][-1]["content"]).text)
    assert all(each.count("Yes") == each.count("No") > 0 for each in answers.values())


def test_the_thought_states_the_very_policy_and_stage_1_has_none() -> None:
    reader = Matcher(pack_named("clinic"))
    for row in rows("stage2")[::7]:
        found = reader.mentions(read_output(row["messages"][-1]["content"]).thought or "")
        assert found.recalled == {row["id"].split("/")[1]}
        assert not found.made_up
    assert {row["messages"][-1]["content"] for row in rows("stage1")} == {"Yes", "No"}


def test_with_working_the_thought_says_what_decides_and_comes_to_the_answer() -> None:
    plain, worked = rows("stage2"), question_rows("clinic", SHAPES["stage2"], is_worked=True)
    assert [row["messages"][:-1] for row in plain] == [row["messages"][:-1] for row in worked]
    for row in worked:
        said = read_output(row["messages"][-1]["content"])
        assert (said.thought or "").endswith("so yes." if said.text == "Yes" else "so no.")
    compared = [row for row in worked if "more)" in row["messages"][-1]["content"]]
    assert {row["id"].split("/")[1] for row in compared} >= {"refund-cap", "refund-remaining"}
