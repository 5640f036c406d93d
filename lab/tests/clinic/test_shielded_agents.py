"""Scripted clinic agents that follow a shield make none of the mistakes that they make without one."""

from pathlib import Path
from typing import Any

import pytest

from bylaw.packs.clinic.demo import before_the_change, call_messages
from bylaw.shield import Shield
from bylaw_lab.clinic import story

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def cells() -> Any:
    """8 conversations in every cell except those of `advise`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "lab" / "benchmarks"))
        import shield_clinic

        yield shield_clinic.table([1], 8, settings=("none", "shadow", "enforce"))


def test_unshielded_agents_go_wrong(cells: Any) -> None:
    for agent in ("hasty", "trusting", "forgetful", "over-eager"):
        cell = cells["none", agent]
        assert cell.verdicts["violation"] + cell.verdicts["near_miss"] > 0, agent
        assert cell.success < cells["none", "careful"].success


def test_a_shadow_changes_nothing_and_sees_what_goes_wrong(cells: Any) -> None:
    for agent in ("careful", "hasty", "trusting", "forgetful", "over-eager"):
        plain, shadow = cells["none", agent], cells["shadow", agent]
        assert (plain.good, plain.writes, plain.verdicts) == (shadow.good, shadow.writes, shadow.verdicts)
        wrong = shadow.verdicts["violation"] + shadow.verdicts["near_miss"]
        assert shadow.answers["deny"] + shadow.answers["manner"] + shadow.answers["look_up"] >= wrong


def test_nothing_goes_wrong_under_an_enforcing_shield_and_every_task_is_still_done(cells: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "lab" / "benchmarks"))
        import shield_clinic

    assert list(shield_clinic.faults(cells)) == []
    for agent in ("careful", "hasty", "trusting", "forgetful", "over-eager"):
        cell = cells["enforce", agent]
        assert cell.writes > 6
        assert cell.stuck == 0


def test_where_every_answer_of_the_user_ends_in_a_denial_the_question_is_still_named() -> None:
    messages, tool, arguments = before_the_change(story.tell(*story.LIAR, name="liar"))
    desk = story.open_desk()
    membership = desk.need("Patient", story.LIAR[0])["membership_id"]
    asked = {"membership_id": membership}
    messages += call_messages("get_membership", asked, desk.call("get_membership", asked), "m")
    del arguments["reason"]
    decision = Shield("clinic").decide(messages, tool, arguments | {"late_fee": "25.00"})
    assert (decision.answer, decision.allowed) == ("deny", False)
    assert "Why does the caller want to cancel?" in [each.text for each in decision.questions]
    assert "Ask the user: Why does the caller want to cancel?" in decision.feedback
    assert "whatever the user answers" in decision.feedback
