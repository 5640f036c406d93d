"""Rules refined: the vaguest first, a new form only where it passes the cases, doubles merged, to the end."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from bylaw.compile.assemble import assemble, count
from bylaw.compile.bench import Bench
from bylaw.compile.desk import Desk
from bylaw.compile.pipeline import Work, compile_pack
from bylaw.compile.refine import refine
from bylaw.compile.update import MadeOf, read_before, write_pack
from bylaw.llm import Request
from bylaw.pack import Pack
from bylaw.policy.yaml import read_yaml
from bylaw.review.check import check
from bylaw.scan.written import dump
from tests.compile.shop import CARDS, RULES, Scripted, compiled, source

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


def read(text: str) -> dict[str, Any]:
    return read_yaml(text, file="answer").data


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
    cases = yaml.safe_load(files["cases/rules.yaml"])
    assert count(each for each in cases if each["rule"] == "confirm-refunds") == 2
    assert files["cases/rules.yaml"].count("rule: confirm-refunds-2\n") == 1, "only the case that keeps both"


def test_the_budget_ends_it() -> None:
    again = BETTER.replace("pays_back", "gives_back")
    third = BETTER.replace("pays_back", "hands_back")
    said = [f"vagueness: {9 - number}\n{answer}" for number, answer in enumerate((BETTER, again, third))]
    chat = Scripted(refine=said, merge="merges: []")
    work, _ = compile_pack(replace(source(), refinements=2, earlier=compiled()[0]), chat)
    assert sum(step.changed for step in work.steps) == 2


@pytest.mark.parametrize(("scores", "taken"), [((4, 3, 4, 4), 2), ((4, 4, 4, 4), 1), ((4, 3, 2, 1), 4)])
def test_a_rule_leaves_the_heap_when_refining_it_makes_it_no_less_vague(scores: tuple[int, ...], taken: int) -> None:
    def answer(request: Request) -> str:
        # However often it is asked, the model finds another gap in the pattern.
        number = request.messages[1].content.count("word")
        words = "|".join(f"word{each}" for each in range(number + 1))
        state = f"  says: {{pattern: '{words}'}}\nrules:"
        score = scores[number] if number < len(scores) else 9
        return f"vagueness: {score}\n" + BETTER.replace("rules:", state).replace(
            "IMPLIES agreed", "IMPLIES (agreed AND NOT says)"
        )

    work, chat, files = refined(refine=answer)
    assert sum(step.changed for step in work.steps) == taken
    assert len(chat.asked("refine")) == min(taken + 1, 4)
    told = "the last refinement did not make the rule less vague" in files["compiled.yaml"]
    assert told == (taken < 4), "what ends by the budget is another matter"
    assert check(Pack.from_files(files)).is_sound


def test_predicates_that_mean_the_same_become_one_where_every_case_still_holds() -> None:
    doubled = RULES.replace("rules:\n", "  has_agreed: {consented: told, description: said yes}\nrules:\n").replace(
        "IMPLIES agreed)", "IMPLIES (agreed AND has_agreed))"
    )
    work, _, files = refined(rules=doubled, refine="verifiable: true")
    assert "has_agreed" not in files["rules.yaml"]
    assert work.steps[0].predicates == 3
    assert work.steps[-1].predicates == 2


TWICE = RULES.replace(
    "rules:\n", "  says_refund: {pattern: refund, description: the text has the word}\nrules:\n"
).replace("IMPLIES agreed)", "IMPLIES (agreed AND NOT says_refund))")
"""A rule with two state predicates, which are asked about together."""


def test_a_merge_that_changes_what_a_rule_says_is_refused() -> None:
    merge = "merges:\n  - {keep: says_refund, instead_of: [agreed]}\n"
    work, chat, files = refined(rules=TWICE, refine="verifiable: true", merge=merge)
    assert chat.asked("merge")
    assert "agreed" in files["rules.yaml"]
    assert (work.steps[-1].changed, work.steps[-1].refused) == (0, 1)


def test_predicates_of_two_types_are_not_asked_about_together() -> None:
    _, chat, _ = refined(refine="verifiable: true")
    assert not chat.asked("merge"), "an act and a state never mean the same"


def test_a_new_form_that_fails_a_case_is_sent_back_once_with_the_case() -> None:
    work, chat, files = refined(refine=[WRONG, BETTER, "verifiable: true"])
    assert "`told and agreed`" in chat.asked("refine")[1].messages[-1].content
    assert "ALWAYS (pays_back IMPLIES agreed)" in files["rules.yaml"]
    assert (work.steps[1].changed, work.steps[1].refused) == (1, 0)


def test_a_refinement_that_is_not_taken_is_shown_to_the_reviewer() -> None:
    work, _, files = refined(refine=WRONG)
    assert (work.steps[1].changed, work.steps[1].refused) == (0, 1)
    assert "a rejected refinement" in files["compiled.yaml"]


def test_going_back_to_an_earlier_form_is_no_refinement() -> None:
    back = (
        "verifiable: false\nwhy: as it was\n"
        + dump({"predicates": read(RULES)["predicates"]})
        + RULES[RULES.index("rules:") :]
    )
    work, chat, _ = refined(refine=[f"vagueness: 5\n{BETTER}", f"vagueness: 3\n{back}"])
    assert len(chat.asked("refine")) == 2
    assert sum(step.changed for step in work.steps) == 1


def test_how_vague_the_model_calls_each_form_is_recorded() -> None:
    work, _, _ = refined(refine=[f"vagueness: 7\n{BETTER}", "vagueness: 2\nverifiable: true"])
    assert [(step.stage, step.judged) for step in work.steps[:2]] == [("start", 7.0), ("refined", 2.0)]


def test_a_split_rule_that_says_nothing_new_goes_again() -> None:
    needless = SPLIT.replace("ALWAYS NOT several", "ALWAYS (refunds IMPLIES (agreed OR several))")
    work, _, files = refined(refine=[needless, "verifiable: true", "verifiable: true"])
    assert [step.rules for step in work.steps[:3]] == [1, 2, 1]
    assert "confirm-refunds-2" not in files["rules.yaml"] + files["cases/rules.yaml"]
    assert "several" not in files["rules.yaml"]
    assert check(Pack.from_files(files)).is_sound


def test_a_split_rule_keeps_its_cases_in_an_update(tmp_path: Path) -> None:
    work, _, files = refined(refine=[SPLIT, "verifiable: true"])
    write_pack(tmp_path, source(), work, MadeOf(("policy.md",), name="shop"))
    before = read_before(tmp_path)
    write_pack(tmp_path, source(), before.work, before.made_of, before=before)
    assert (tmp_path / "cases" / "rules.yaml").read_text() == files["cases/rules.yaml"]


def test_questions_about_several_rules_are_asked_in_one_round() -> None:
    work, _ = compile_pack(source(), Scripted())
    assert work.things is not None
    first = work.checks["confirm-refunds"]
    rules = {**read(RULES), "rules": [{"id": "again", "formula": "ALWAYS (refunds IMPLIES agreed)"}]}
    checks = {first.policy: first, "again": replace(first, policy="again", rules=rules)}
    told = [replace(work.drafts[0], id=name) for name in checks]
    bench = Bench(CARDS, work.things, {}, "2025-01-15T10:00:00")
    desk = Desk()
    waiting: list[int] = []
    for answer in (BETTER, "verifiable: true"):
        assert refine(desk, bench, checks, told, "none", budget=4) is None
        waiting.append(len(desk.wanted))
        desk.fetch(Scripted(refine=partial(_about, answer)))
        desk.begin()
    assert waiting == [2, 2], "two rules, then the new forms of both"
    done = refine(desk, bench, checks, told, "none", budget=4)
    assert done is not None
    assert [step.changed for step in done.steps] == [0, 2, 0, 0, 0]


def _about(answer: str, request: Request) -> str:
    return answer.replace("confirm-refunds", "again") if "- id: again" in request.messages[1].content else answer


def test_without_a_budget_nothing_is_asked() -> None:
    chat = Scripted()
    compile_pack(source(), chat)
    assert not chat.asked("refine")
