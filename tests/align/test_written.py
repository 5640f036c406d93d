"""Thoughts that a model writes: generated, judged on four rubrics, summed up, refined, dropped after the last round."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from bylaw.align.matcher import Matcher, check
from bylaw.align.thoughts import RUBRICS, THRESHOLDS, Turn, requests_for, write_thoughts
from bylaw.align.turn_evidence import TurnEvidence
from bylaw.llm import Answer, Request
from tests.engine import clinic

PACK = clinic.pack()
TURNS = [
    Turn(f"t{number}", "- Only active patients are booked.", f"User: book me {number}", "get") for number in range(3)
]


class Desk:
    """A chat that answers by rule; `rating` decides from the turn, the round and the rubric."""

    def __init__(self, rating: Callable[[str, int, str], int]) -> None:
        self.rating = rating
        self.asked: list[Request] = []
        self.rounds: dict[str, int] = {}

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        self.asked += requests
        return [Answer(json.dumps(self._answer(request))) for request in requests]

    def _answer(self, request: Request) -> dict[str, Any]:
        text = request.messages[0].content
        if request.name in ("generate", "refine"):
            turn = text.split("book me ")[1][0]
            self.rounds[turn] = self.rounds.get(turn, -1) + 1
            return {"notes": "n", "thought": f"thought of {turn} round {self.rounds[turn]}"}
        turn, _, number = text.split("thought of ")[1].partition(" round ")
        if request.name == "summary":
            return {"errors": [{"words": "w", "why": "y", "grave": 3}], "good": "g", "advice": f"mend {turn}"}
        return {"analysis": "a", "rating": self.rating(turn, int(number[0]), request.name), "advice": ""}


def test_a_thought_that_reaches_every_threshold_is_taken_at_once() -> None:
    desk = Desk(lambda turn, number, rubric: THRESHOLDS[rubric])  # type: ignore[index]
    found = write_thoughts(TURNS, desk)
    assert [each.thought for each in found] == [f"thought of {number} round 0" for number in range(3)]
    assert all(len(each.rounds) == 1 and each.rounds[0].passed for each in found)
    assert len(desk.asked) == 3 * 5
    assert found[0].rounds[0].scores == dict(THRESHOLDS)


@pytest.mark.parametrize("rubric", RUBRICS)
def test_one_rubric_below_its_threshold_sends_a_thought_back(rubric: str) -> None:
    def rating(turn: str, number: int, each: str) -> int:
        low = turn == "1" and number == 0 and each == rubric
        return THRESHOLDS[each] - 1 if low else 10  # type: ignore[index]

    found = write_thoughts(TURNS, Desk(rating))
    assert [len(each.rounds) for each in found] == [1, 2, 1]
    assert found[1].thought == "thought of 1 round 1"
    assert [each.passed for each in found[1].rounds] == [False, True]


def test_after_four_refinements_a_turn_is_dropped_and_its_scores_are_kept() -> None:
    desk = Desk(lambda turn, number, rubric: 1 if turn == "2" else 10)
    found = write_thoughts(TURNS, desk)
    assert found[2].thought is None
    assert found[2].why == "not good enough after 4 refinements"
    assert [each.round for each in found[2].rounds] == [0, 1, 2, 3, 4]
    assert len(desk.asked) == 3 * 5 + 4 * 6


def test_thresholds_and_rounds_can_be_set() -> None:
    desk = Desk(lambda turn, number, rubric: 5)
    loose = dict.fromkeys(THRESHOLDS, 5)
    assert all(each.thought for each in write_thoughts(TURNS, desk, thresholds=loose))
    none = write_thoughts(TURNS, Desk(lambda turn, number, rubric: 5), rounds=0)
    assert all(each.thought is None and len(each.rounds) == 1 for each in none)


def test_a_refinement_is_given_the_summary_and_a_reviewer_only_what_it_needs() -> None:
    desk = Desk(lambda turn, number, rubric: 10 if number else 1)
    write_thoughts(TURNS[:1], desk)
    by_name = {request.name: request.messages[0].content for request in desk.asked}
    assert "mend 0" in by_name["refine"]
    assert "thought of 0 round 0" in by_name["refine"]
    for name in ("generate", "refine", "faithfulness", "completeness", "atomicity"):
        assert "Only active patients are booked" in by_name[name]
    for name in ("style", "summary"):
        assert "Only active patients are booked" not in by_name[name]
        assert "User: book me" not in by_name[name]
    assert all("{" not in text.split("Answer with JSON")[0] for text in by_name.values())


class Broken:
    """Answers one request of a kind in a way that cannot be read."""

    def __init__(self, name: str, answer: Answer) -> None:
        self.name, self.answer, self.desk = name, answer, Desk(lambda *_: 10)

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        answers = self.desk.ask(requests)
        return [
            self.answer if r.name == self.name and i == 0 else a
            for i, (r, a) in enumerate(zip(requests, answers, strict=True))
        ]


@pytest.mark.parametrize("name", ["generate", "faithfulness"])
@pytest.mark.parametrize(
    "answer",
    [Answer("no json"), Answer("", "refused", "I cannot"), Answer("{", "truncated", "cut"), Answer('{"rating": 99}')],
)
def test_a_turn_whose_answer_cannot_be_read_is_dropped_and_the_others_go_on(name: str, answer: Answer) -> None:
    found = write_thoughts(TURNS, Broken(name, answer))
    assert found[0].thought is None
    assert found[0].why
    assert [bool(each.thought) for each in found[1:]] == [True, True]


def test_the_first_questions_can_be_counted_without_asking() -> None:
    assert len(requests_for(TURNS)) == 3
    assert requests_for(TURNS)[0].key == requests_for(TURNS)[0].key != requests_for(TURNS)[1].key


def test_any_thought_is_checked_against_what_the_guards_found() -> None:
    policies = tuple(PACK.policies[name] for name in ("booking-balance", "booking-active-patient"))
    found = TurnEvidence("look_up", None, policies)
    reader = Matcher(PACK)
    said = "Result: balance due $180.00"
    good = "Only active patients are booked. Owing more than $150.00, they need a payment plan to book. Due: $180.00."
    checked = check(PACK, good, found, reader, said)
    assert checked.is_faithful
    assert checked.is_complete
    short = check(PACK, "Only active patients are booked. I look it up.", found, reader, said)
    assert (short.is_complete, short.missing) == (False, ("booking-balance",))
    wrong = check(PACK, good.replace("$150.00", "$250.00"), found, reader, said)
    assert not wrong.is_faithful
    stray = check(PACK, f"{good} The visit was on 2025-03-14.", found, reader, said)
    assert (stray.is_faithful, stray.made_up) == (False, ("2025-03-14",))
    beside = check(PACK, f"{good} Only a paid invoice is refunded.", found, reader, said)
    assert (beside.is_faithful, beside.beside) == (True, ("refund-paid",))
