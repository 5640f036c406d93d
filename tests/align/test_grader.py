"""The reward of what a model wrote, from the text to the total."""

import json
import time
from collections.abc import Sequence
from typing import Any

import pytest

from bylaw.align.grader import Gold, Grader, ModelJudge, UngradedError, gold_of
from bylaw.align.reward import PAPER, Switches
from bylaw.align.training.stage import graded, scorer
from bylaw.errors import UsageError
from bylaw.llm import Answer, Request
from bylaw.llm.chat import ChatError
from tests.engine import clinic

PACK = clinic.pack()
GRADER = Grader(PACK)


class Judging:
    """A model that finds in every thought what `states` says, and gives every reply 7 of 10."""

    def __init__(self, **states: list[str]) -> None:
        self.answers = {"mark": {"analysis": "a", "mark": 7}, "recall": {"recalled": [], "made_up": [], **states}}
        self.asked: list[Request] = []

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        self.asked += requests
        return [Answer(json.dumps(self.answers[each.name])) for each in requests]


READ = '{"name": "get_patient", "arguments": {"patient_id": "P001"}}'
RULE = "Records, contact details and proxies need a checked identity."
LOOK = Gold(("identity-checked",), {"tool": "get_patient", "arguments": {"patient_id": "P001"}})
ROW: dict[str, Any] = {
    "required": ["confirm-before-change", "upgrade-balance"],
    "expected": {"text": "I will change it to Silver for $0.00. Shall I?"},
    "slots": [{"kind": "amount", "value": "0.00"}, {"kind": "question", "value": "confirm", "says": [r"\?"]}],
    "prompt": [
        {"role": "user", "content": "I want to be Silver."},
        {"role": "assistant", "content": f"<think>a</think>{READ}"},
        {"role": "tool", "content": '{"patient_id": "P001", "balance_due": "12.00", "membership_id": "M1"}'},
    ],
}


def test_a_perfect_look_up_has_all_there_is() -> None:
    assert GRADER.grade(f"<think>{RULE} I look it up.</think>{READ}", LOOK).total == 5


def test_each_fault_costs_its_own_term() -> None:
    bare = GRADER.grade(READ, LOOK)
    assert (bare.format, bare.policy_recall, bare.turn) == (0, 0, 3)
    wrong = GRADER.grade(f"<think>{RULE} Every visit costs at most $3.00.</think>{READ}", LOOK)
    assert (wrong.policy_recall, wrong.hallucination) == (1, 0.5)
    long = GRADER.grade(f"<think>{RULE} {'so ' * 400}</think>{READ}", LOOK)
    assert (long.length, long.total) == (1, 4)
    talk = GRADER.grade(f"<think>{RULE}</think>One moment.", LOOK)
    assert (talk.turn, talk.total) == (-3, -1)
    paper = Grader(PACK, switches=PAPER).grade(f"<think>{RULE}</think>One moment.", LOOK)
    assert (paper.turn, paper.total) == (0, 2)


def test_a_thought_that_is_never_closed_costs_its_length() -> None:
    found = GRADER.grade("<think>" + "so " * 400, LOOK)
    assert (found.format, found.length) == (0, 1)


def test_a_reply_is_marked_by_its_slots_or_by_a_judge() -> None:
    gold = gold_of(ROW)
    both = GRADER.grade("<think></think>I will change it for $0.00. Shall I?", gold)
    assert both.turn == 3
    one = GRADER.grade("<think></think>I will change it for $0.00.", gold)
    assert one.turn == pytest.approx(6 * (2 / 3) - 3)
    assert GRADER.grade("<think></think>I will change it. Shall I?", gold).turn == -3  # about nothing it should name
    judged = Grader(PACK, judge=ModelJudge(Judging())).grade("<think></think>Whatever.", gold)
    assert judged.turn == pytest.approx(1.2)


def test_a_judge_reads_replies_and_thoughts_and_is_asked_each_question_once() -> None:
    judge = Judging(recalled=["identity-checked"], made_up=["Psychiatric notes need no consent."])
    grader = Grader(PACK, judge=ModelJudge(judge))
    output = "<think>Psychiatric notes need no consent, and who is who must be known.</think>Shall I do it?"
    gold = Gold(("identity-checked",), {"text": "Shall I?"})
    grader.prepare([(output, gold), (output, gold)])
    found = grader.grade(output, gold)
    assert (found.policy_recall, found.hallucination, found.turn) == (1, 0.5, pytest.approx(1.2))
    assert [each.name for each in judge.asked] == ["recall", "mark"]
    assert "who is who must be known" in judge.asked[0].messages[0].content
    assert "- identity-checked: " in judge.asked[0].messages[0].content
    assert "Shall I do it?" in judge.asked[1].messages[0].content


def test_a_judge_that_cannot_be_read_gives_no_reward() -> None:
    judge = Judging()
    judge.answers["mark"] = {"analysis": "a", "mark": "all"}
    with pytest.raises(ChatError, match="cannot be read"):
        Grader(PACK, judge=ModelJudge(judge)).grade("<think>x</think>ok", gold_of({**ROW, "slots": []}))


def test_a_text_that_nothing_says_what_it_must_tell_is_not_graded_without_a_judge() -> None:
    gold = gold_of({**ROW, "slots": []})
    assert gold.needs_judge
    for output in ("ok", "<think></think>ok", READ):
        with pytest.raises(UngradedError, match="this text has no slots, so code cannot grade it"):
            GRADER.grade(output, gold)
    assert Grader(PACK, judge=ModelJudge(Judging())).grade("<think></think>ok", gold).turn == pytest.approx(1.2)


def test_rows_of_another_pack_are_refused_and_texts_nobody_can_mark_are_counted() -> None:
    texts = {**ROW, "slots": []}
    assert graded([ROW, texts], "clinic") == ([ROW], 1)
    assert graded([ROW, texts], "clinic", has_judge=True) == ([ROW, texts], 0)
    with pytest.raises(UsageError, match="no row can be graded"):
        graded([texts], "clinic")
    with pytest.raises(
        UsageError, match="row 1 needs the policy `upgrade-balance`, which is not in pack `tau-airline/tau2`"
    ):
        graded([ROW], "tau-airline/tau2")


def test_the_compliance_term_is_the_guards_word_on_what_was_seen() -> None:
    grader = Grader(PACK, switches=Switches(compliance=1))
    gold = gold_of(ROW)

    def fault(tool: str, **arguments: str) -> float | None:
        call = json.dumps({"name": tool, "arguments": arguments})
        return grader.grade(f"<think></think>{call}", gold).compliance

    member = {"patient_id": "P001", "membership_id": "M1"}
    assert fault("change_membership", **member, new_tier="silver") == 1  # a balance is owed, and was seen
    assert fault("change_membership", **member, new_tier="standard") == 0
    assert fault("update_contact", patient_id="P002", email="a@example.com") == 1  # identity never looked at
    assert fault("get_patient", patient_id="P001") == 0
    assert fault("fly_to_the_moon") == 0.5
    assert grader.grade("<think></think>Hello.", gold).compliance == 0


def test_only_users_and_tools_show_values() -> None:
    """A model may not excuse a value by saying it first, nor by what its instructions say."""
    text = "A patient who owes $180.00, which is more than $150.00, is booked only with a payment plan."
    for role, recalled in (("user", 1), ("tool", 1), ("assistant", 0), ("system", 0)):
        gold = Gold(("booking-balance",), LOOK.expected, prompt=({"role": role, "content": "That is $180.00."},))
        found = GRADER.grade(f"<think>{text}</think>{READ}", gold)
        assert (found.policy_recall, found.hallucination) == (recalled, 1 - recalled), role


def test_a_wrong_limit_earns_nothing_though_the_caller_named_it() -> None:
    text = "A patient who owes more than $77.00 is booked only with a payment plan."
    gold = Gold(("booking-balance",), LOOK.expected, prompt=({"role": "user", "content": "I owe $77.00."},))
    found = GRADER.grade(f"<think>{text}</think>{READ}", gold)
    assert (found.policy_recall, found.hallucination) == (0, 1)


def test_the_total_is_the_sum_of_the_terms() -> None:
    found = GRADER.grade(f"<think>{RULE} Every visit costs at most $3.00.</think>{READ}", LOOK)
    assert (found.format, found.turn, found.policy_recall, found.hallucination) == (1, 3, 1, 0.5)
    assert found.total == 4.5


def test_rows_may_hold_json_text() -> None:
    texts = {**ROW, "expected": json.dumps(ROW["expected"]), "slots": json.dumps(ROW["slots"])}
    assert gold_of(texts) == gold_of(ROW)


def test_many_outputs_are_graded_quickly() -> None:
    outputs = [f"<think>{RULE} I saw ${n}.00 there. {'so ' * (n % 50)}</think>{READ}" for n in range(512)]
    rows = [{**ROW, "expected": {"tool": "get_patient", "arguments": {"patient_id": "P001"}}}] * 512
    start = time.process_time()
    assert all(GRADER.grade(output, gold_of(row)).total for output, row in zip(outputs, rows, strict=True))
    assert time.process_time() - start < 2


def test_stage_3_counts_the_terms_it_is_asked_for_and_compliance_by_its_weight() -> None:
    change = {"patient_id": "P001", "membership_id": "M1", "new_tier": "silver"}  # a balance is owed, and was seen
    call = json.dumps({"name": "change_membership", "arguments": change})
    totals = [scorer(said)([call], [ROW])[0]["total"] for said in ("full", "full+vc", "tf+pr+hp+lp+vc", "tf+vc=3")]
    assert totals[1] == totals[2] == totals[0] - 1
    assert totals[3] == scorer("tf")([call], [ROW])[0]["total"] - 3
    for said in ("tf+xx", "vc=", "tf=2", "vc=0", "vc=-1", "vc=nan", "vc=much"):
        with pytest.raises(UsageError):
            scorer(said)
