"""Rules refined: the vaguest first, a new form only where it passes the cases, doubles merged, to the end."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from bylaw.compile.assemble import assemble
from bylaw.compile.pipeline import Work, compile_pack
from bylaw.engine.check import check
from bylaw.engine.pack import Pack
from bylaw.llm import Request
from tests.compile.shop import RULES, Scripted, compiled, source

BETTER = """
verifiable: false
why: the write is told by its effect
predicates:
  pays_back: {effect: write, description: the act pays money back}
  agreed: {consented: told, description: the user agreed to it after it was told}
rules:
  - {id: confirm-refunds, formula: ALWAYS (pays_back IMPLIES agreed)}
"""
SPLIT = """
verifiable: false
why: two requirements
predicates:
  refunds: {tool: refund}
  agreed: {consented: told}
  several: {turn: several_writes}
rules:
  - {id: confirm-refunds, formula: ALWAYS (refunds IMPLIES agreed)}
  - {id: confirm-refunds-2, formula: ALWAYS NOT several}
"""
WRONG = BETTER.replace("IMPLIES agreed", "IMPLIES NOT agreed")
Answers = str | list[str] | Callable[[Request], str]


def refined(**answers: Answers) -> tuple[Work, Scripted, dict[str, str]]:
    chat = Scripted(**{"merge": "merges: []", **answers})
    # What the refinement does not touch is taken from one compile for all.
    shop = replace(source(), refinements=4, earlier=None if "rules" in answers else compiled()[0])
    work, _ = compile_pack(shop, chat)
    return work, chat, assemble(shop, work, name="shop")


def test_a_rule_that_is_verifiable_stays_and_the_loop_ends() -> None:
    work, chat, files = refined(refine="verifiable: true")
    assert len(chat.asked("refine")) == 1
    assert [(each.iteration, each.stage, each.changed) for each in work.steps] == [
        (0, "start", 0),
        (1, "refined", 0),
        (1, "pruned", 0),
    ]
    assert "ALWAYS (refunds IMPLIES agreed)" in files["rules.yaml"]


def test_a_refined_rule_is_asked_about_again_and_recorded() -> None:
    work, chat, files = refined(refine=[BETTER, "verifiable: true"])
    assert len(chat.asked("refine")) == 2
    assert "ALWAYS (pays_back IMPLIES agreed)" in files["rules.yaml"]
    assert work.steps[1].changed == 1
    assert "refinement:" in files["compiled.yaml"]
    assert check(Pack.from_files(files)).is_sound


@pytest.mark.parametrize("answer", [WRONG, BETTER.replace("effect: write", "wish: upon a star"), "not: [yaml", "- 1"])
def test_a_new_form_that_does_not_load_or_fails_a_case_is_not_taken(answer: str) -> None:
    work, _, files = refined(refine=answer)
    assert "ALWAYS (refunds IMPLIES agreed)" in files["rules.yaml"]
    assert work.steps[-1].changed == 0


def test_a_rule_that_is_split_shares_its_cases_out() -> None:
    _, _, files = refined(refine=[SPLIT, "verifiable: true"])
    report = check(Pack.from_files(files))
    assert report.is_sound
    assert "confirm-refunds-2" in files["rules.yaml"]
    assert files["cases/rules.yaml"].count("rule: confirm-refunds\n") == 2
    assert files["cases/rules.yaml"].count("rule: confirm-refunds-2\n") == 1, "only the case that keeps both"


def test_the_budget_ends_it() -> None:
    again = BETTER.replace("pays_back", "gives_back")
    chat = Scripted(refine=[BETTER, again, BETTER, again], merge="merges: []")
    work, _ = compile_pack(replace(source(), refinements=2, earlier=compiled()[0]), chat)
    assert sum(step.changed for step in work.steps) == 2


def test_predicates_that_mean_the_same_become_one_where_every_case_still_holds() -> None:
    doubled = RULES.replace("rules:\n", "  has_agreed: {consented: told, description: said yes}\nrules:\n").replace(
        "IMPLIES agreed)", "IMPLIES (agreed AND has_agreed))"
    )
    work, _, files = refined(rules=doubled, refine="verifiable: true")
    assert "has_agreed" not in files["rules.yaml"]
    assert work.steps[0].predicates == 3
    assert work.steps[-1].predicates == 2


def test_a_merge_that_changes_what_a_rule_says_is_refused() -> None:
    _, chat, files = refined(refine="verifiable: true", merge="merges:\n  - {keep: refunds, instead_of: [agreed]}\n")
    assert chat.asked("merge")
    assert "agreed" in files["rules.yaml"]


def test_without_a_budget_nothing_is_asked() -> None:
    chat = Scripted()
    compile_pack(source(), chat)
    assert not chat.asked("refine")
