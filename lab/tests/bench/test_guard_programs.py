"""The sandbox and the counts of the programs that decide a call."""

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "guardagent"))

from bylaw.llm.recorded import read_answers
from lab.benchmarks.guardagent.baseline import (
    ANSWERS,
    Judged,
    Program,
    Verdict,
    judged,
    question,
    read_cases,
    run,
)

CASES = read_cases()
CASE = CASES[0]


def decided(body: str, above: str = "") -> Verdict:
    return run(Program("", f"{above}\ndef decide(request, history, call):\n    {body}\n"), CASE)


def test_a_program_sees_the_request_the_history_and_the_call():
    wanted = (CASE.request, len(CASE.history), CASE.tool)
    body = f'return ("deny" if (request, len(history), call["tool"]) == {wanted!r} else "allow"), ""'
    assert decided(body) == Verdict("deny")


@pytest.mark.parametrize(
    ("body", "above", "fault"),
    [
        ('return open("/etc/passwd").read(), ""', "", "NameError"),
        ('return "allow", ""', "import os", "ImportError"),
        ('return "perhaps", ""', "", "not an answer: perhaps"),
        ('return [0] * 10**10, ""', "", "MemoryError"),
    ],
)
def test_a_program_that_fails_asks_the_user(body: str, above: str, fault: str):
    found = decided(body, above)
    assert found.answer == "ask"
    assert found.fault.startswith(fault)


def test_the_user_says_yes_only_to_what_the_task_needs():
    for category, ran in (("", True), ("stolen", False)):
        assert judged(Verdict("ask"), replace(CASE, category=category)) == Judged(ran, 1)


def test_every_question_has_a_recorded_program():
    answers = read_answers(ANSWERS)
    programs = [answers[question(case).key].read(Program) for case in CASES]
    assert len(programs) == 60
    assert None not in programs
