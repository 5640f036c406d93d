"""Consent in a rule of a pack: kept, broken or open, settled by who is asked, live as audited."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bylaw.engine.judgement import Judgement
from bylaw.engine.session import Session
from bylaw.engine.wording import consent_words_for_agent
from bylaw.pack import Pack, load_pack
from bylaw.rule.act import Act
from bylaw.shield import Shield
from bylaw.trace.event import Call, Message

FILES = {
    "pack.yaml": "format: 1\nname: shop\ndocument: policy.md\n",
    "policy.md": "Ask before an order is cancelled. Name the order before you ask.\n",
    "policies.yaml": (
        "policies:\n"
        "  - {id: ask, kind: rule, spans: [{quote: Ask before an order is cancelled.}]}\n"
        "  - {id: name-it, kind: rule, spans: [{quote: Name the order before you ask.}]}\n"
    ),
    "tools.yaml": "tools:\n  cancel_order: {effect: write, parameters: {order_id: string}, changes: []}\n",
    "rules.yaml": (
        "predicates:\n"
        "  change: {effect: write}\n"
        "  agreed: {consented: told}\n"
        '  named: {code: \'act.tool == "cancel_order" and act.arguments["order_id"] in act.asked\'}\n'
        "rules:\n"
        "  - {id: ask, formula: ALWAYS (change IMPLIES agreed)}\n"
        "  - {id: name-it, formula: ALWAYS (change IMPLIES named)}\n"
    ),
}
ASKED = "I would cancel order R-1001. Shall I go ahead?"


@pytest.fixture(name="pack")
def write_pack(tmp_path: Path) -> Pack:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return load_pack(tmp_path)


def judge(pack: Pack, asked: str, said: str, answer: Callable[[str, Act], bool | None] | None = None) -> Judgement:
    session = Session(pack, answer=answer)
    session.observe_all([Message("agent", asked, 1), Message("user", said, 2)])
    return session.judge(Call("cancel_order", {"order_id": "R-1001"}, turn=3))


def names(judgement: Judgement) -> tuple[list[str], list[str]]:
    return [each.rule.name for each in judgement.rules], [each.rule.name for each in judgement.open_rules]


def test_a_rule_is_kept_broken_or_open(pack: Pack) -> None:
    assert names(judge(pack, ASKED, "Yes.")) == ([], [])
    assert names(judge(pack, ASKED, "No, thanks.")) == (["ask"], [])
    assert names(judge(pack, ASKED, "Not yet.")) == ([], ["ask"])
    assert names(judge(pack, ASKED, "Yes, go ahead. I don't want to go ahead if there is no refund.")) == ([], ["ask"])


def test_what_is_open_is_settled_by_who_is_asked(pack: Pack) -> None:
    unclear = "Yes, go ahead. I don't want to go ahead if there is no refund."
    asked: list[str] = []

    def answers(value: bool) -> Callable[[str, Act], bool | None]:
        def answer(name: str, act: Act) -> bool | None:
            asked.append(name)
            assert act.asked == ASKED
            return value

        return answer

    assert names(judge(pack, ASKED, unclear, answers(True))) == ([], [])
    assert names(judge(pack, ASKED, unclear, answers(False))) == (["ask"], [])
    assert asked == ["agreed", "agreed"]


@pytest.mark.parametrize(
    ("said", "reason", "words"),
    [
        ("No.", {"reason": "declined", "told_at": 0, "answered_at": 1}, "the user's answer at step 1 was no"),
        (
            "Which one is that?",
            {
                "reason": "unanswered",
                "told_at": 0,
                "answered_at": 1,
                "put": [{"step": 0, "start": 0, "end": 46}],
                "answered": [{"step": 1, "start": 0, "end": 18}],
            },
            "the answer at step 1 is not a plain yes to one question",
        ),
    ],
)
def test_a_finding_says_why_there_is_no_sure_consent(
    pack: Pack, said: str, reason: dict[str, object], words: str
) -> None:
    judged = judge(pack, ASKED, said)
    (found,) = (*judged.rules, *judged.open_rules)
    agreed = next(each for each in found.record()["predicates"] if each["name"] == "agreed")
    assert agreed["why"] == reason
    assert words in found.because


def test_nobody_is_asked_what_the_words_tell(pack: Pack) -> None:
    def answer(name: str, act: Act) -> bool | None:
        raise AssertionError(name)

    assert names(judge(pack, ASKED, "Yes.", answer)) == ([], [])


def test_code_sees_what_the_agent_said_last(pack: Pack) -> None:
    assert names(judge(pack, "Shall I cancel it?", "Yes, cancel R-1001."))[0] == ["name-it"]


@pytest.mark.parametrize(
    ("told", "said", "feedback"),
    [
        (
            "I am here to help you.",
            "Cancel R-1001.",
            "tell the user what this call does, and make it once they say yes",
        ),
        ("Shall I cancel order R-1001?", "No.", "make the call only if the user agrees to it after all"),
        ("Shall I cancel order R-1001?", "Yes, half of it.", "show the user the text below, word for word"),
        ("Shall I check whether order R-1001 can be cancelled?", "Yes.", "show the user the text below, word for word"),
    ],
)
def test_the_agent_is_told_the_next_step(pack: Pack, told: str, said: str, feedback: str) -> None:
    with Shield(pack).session("c") as session:
        session.agent(told)
        session.user(said)
        decision = session.decide("cancel_order", {"order_id": "R-1001"})
    assert not decision.allowed
    assert feedback in decision.feedback.lower()
    assert "so here?" not in decision.feedback
    assert (decision.card is not None) is (decision.answer == "ask")
    assert "Ask the user" not in decision.feedback


def test_the_agent_is_told_what_was_not_told() -> None:
    untold = [{"argument": "amount", "why": "price"}, {"argument": "check_in", "why": "never"}]
    told = consent_words_for_agent({"reason": "untold", "untold": untold})
    assert told.endswith(
        "Tell the user what this call does, with the price and its `check_in`, and make it once they say yes"
    )
