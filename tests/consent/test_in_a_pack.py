"""Consent in a rule of a pack: kept, broken or open; who settles what is open; the words of its cards; its faults."""

from typing import Any

import pytest

from bylaw import Pack, Shield
from bylaw.engine.conversation import Conversation, OpenAnswers
from bylaw.engine.judgement import Judgement
from bylaw.engine.predicate_values import Answered, AnswerPredicate
from bylaw.engine.session import Session
from bylaw.errors import PackError
from bylaw.rule.monitor import Act
from bylaw.shield import LiveSession
from bylaw.trace.event import Call
from tests.consent.desk import agent, desk, user

TOOLS = """
tools:
  cancel_order:
    effect: write
    put_as: ["cancel order {order_id}", "cancel order {order_id}: {reason}"]
    parameters:
      order_id: string
      reason: {type: string, enum: [no_longer_needed, ordered_by_mistake], optional: true}
      urgent: {type: boolean, optional: true, title: dringend}
      key: {type: string, optional: true}
    changes: []
"""
ORDER: dict[str, Any] = {"order_id": "R-1001"}
ASKED, OPEN = "Shall I cancel order R-1001?", "I would cancel R-1001. Fine?"


def decided(consented: str, asked: str, said: str, arguments: dict[str, Any] = ORDER) -> str:
    with Shield(desk(TOOLS, consented)).session() as session:
        session.user("Hello.")
        if asked:
            session.agent(asked)
        session.user(said)
        return session.decide("cancel_order", arguments).answer


@pytest.mark.parametrize(
    ("basis", "asked", "said", "answer"),
    [
        ("told", ASKED, "Yes.", "allow"),
        ("told", ASKED, "No.", "deny"),
        ("told", ASKED, "Hm.", "ask"),
        ("told", OPEN, "Yes.", "ask"),
        ("told", OPEN, "No.", "ask"),
        ("told", "", "Cancel order R-1001.", "ask"),
        ("requested", ASKED, "Yes.", "allow"),
        ("requested", "", "Cancel order R-1001.", "ask"),
        ("requested", "", "Did I ask you to cancel order R-1001?", "ask"),
        ("card", ASKED, "Yes.", "ask"),
        ("card", ASKED, "No.", "ask"),
        ("told, must_be_told: [reason]", ASKED, "Yes.", "allow"),
    ],
)
def test_how_sure_it_must_be(basis: str, asked: str, said: str, answer: str) -> None:
    assert decided(basis, asked, said) == answer


def test_a_reason_matters_where_the_pack_says_that_it_must_be_told() -> None:
    noted = ORDER | {"reason": "no_longer_needed"}
    assert decided("told", ASKED, "Yes.", noted) == "allow"
    assert decided("told, must_be_told: [reason]", ASKED, "Yes.", noted) == "ask"
    assert (
        decided("told, must_be_told: [reason]", "Shall I cancel order R-1001: no longer needed?", "Yes.", noted)
        == "allow"
    )


def test_what_need_not_be_told_makes_no_second_call_of_it() -> None:
    for consented in ("told, need_not_be_told: [key]", "card, need_not_be_told: [key]"):
        with Shield(desk(TOOLS, consented)).session() as session:
            session.user("Cancel R-1001.")
            card = session.decide("cancel_order", ORDER | {"key": "k0"}).card
            assert card is not None or consented.startswith("told")
            session.agent(ASKED if card is None else card.text)
            session.user("Yes.")
            ran: list[bool] = []
            for number in range(3):
                ran.append(session.decide("cancel_order", ORDER | {"key": f"k{number}"}).allowed)
                if ran[-1]:
                    session.result("done")
        assert ran == [True, False, False]


@pytest.mark.parametrize("consented", ["told, need_not_be_told: [key]", "card, need_not_be_told: [key]"])
def test_a_yes_to_a_card_counts_for_a_call_with_a_new_key(consented: str) -> None:
    with Shield(desk(TOOLS, consented)).session() as session:
        session.user("Cancel R-1001.")
        card = session.decide("cancel_order", ORDER | {"key": "k0"}).card
        assert card is not None
        session.agent(card.text)
        session.user("Yes.")
        assert session.decide("cancel_order", ORDER | {"key": "k1"}).allowed


GERMAN = (
    'card, card: {heading: "Bitte best\u00e4tigen:", question: "Soll ich das tun? Ja oder nein?", '
    "yes: [ja, jawohl], no: [nein], lifetime: 60}"
)


def test_a_card_speaks_the_language_of_the_pack() -> None:
    with Shield(desk(TOOLS, GERMAN), clock=lambda: 1000.0).session("c") as session:
        session.user("Bitte R-1001 stornieren.")
        wanted = ORDER | {"urgent": True}
        card = session.decide("cancel_order", wanted).card
        assert card is not None
        assert card.text == (
            "Bitte best\u00e4tigen: cancel order\n- order id: R-1001\n- dringend: ja\nSoll ich das tun? Ja oder nein?"
        )
        assert card.expires == 1060.0
        for said, answer in (
            ("Nein!", "deny"),
            ("Ja, aber nur eine", "ask"),
            ("Ja \U0001f44e", "ask"),
            ("JA.", "allow"),
        ):
            session.agent(card.text)
            session.user(said)
            assert session.decide("cancel_order", wanted).answer == answer


def asked_and_declined(session: LiveSession, *, after: float = 0.0) -> str:
    """The user says yes in words, presses no on the card, and thanks. Then the agent tries again."""
    session.user("Cancel R-1001.", time=0.0)
    card = session.decide("cancel_order", ORDER, time=0.0).card
    assert card is not None
    session.agent(ASKED, time=0.0)
    session.user("Yes.", time=0.0)
    session.confirm(card, yes=False, at=1.0)
    session.user("Thanks!", time=2.0)
    return session.decide("cancel_order", ORDER, time=2.0 + after).answer


def test_a_no_between_a_yes_and_thanks_counts() -> None:
    with Shield(desk(TOOLS)).session() as session:
        assert asked_and_declined(session) != "allow"


def test_a_no_on_a_card_that_has_expired_still_ends_an_older_yes() -> None:
    with Shield(desk(TOOLS, "told, card: {lifetime: 60}")).session() as session:
        assert asked_and_declined(session, after=600.0) != "allow"


def test_a_new_card_does_not_renew_a_yes_to_an_expired_one() -> None:
    with Shield(desk(TOOLS, "card, card: {lifetime: 60}")).session() as session:
        session.user("Cancel R-1001.", time=0.0)
        card = session.decide("cancel_order", ORDER, time=0.0).card
        assert card is not None
        session.agent(card.text, time=600.0)
        session.user("Yes, please.", time=600.0)
        assert session.decide("cancel_order", ORDER, time=600.0).card is not None
        session.user("Thanks!", time=601.0)
        assert session.decide("cancel_order", ORDER, time=601.0).answer != "allow"


@pytest.mark.parametrize(
    ("consented", "fault"),
    [
        ("perhaps", "`consented` cannot be `perhaps`; known: card, requested, told"),
        ("card, model: may settle", "`model` cannot be `may settle` with `consented: card`"),
        ("told, model: decides", "`model` cannot be `decides` with `consented: told`"),
        ("told, must_be_told: [resaon]", "`resaon` is not an argument of any tool"),
        ("told, need_not_be_told: [x]", "`x` is not an argument of any tool"),
        (
            "told, need_not_be_told: [reason], must_be_told: [reason]",
            "`reason` is in both `must_be_told` and `need_not_be_told`",
        ),
        (
            "told, need_not_be_told: [key]}, agreed_again: {consented: told",
            "`need_not_be_told` differs from the list of `agreed`",
        ),
        ("told, card: {lifetime: 0}", "`lifetime` of a card cannot be `0`"),
        ("told, card: {yes: [ok], no: [OK]}", "`ok` means both yes and no"),
        ("told, card: {colour: red}", "rules.yaml:1"),
    ],
)
def test_what_cannot_be_is_told_with_its_place(consented: str, fault: str) -> None:
    with pytest.raises(PackError) as caught:
        desk(TOOLS, consented)
    assert any(fault in str(each) and str(each).startswith("rules.yaml:1") for each in caught.value.faults)


def judge(said: str, asked: str = OPEN, answer: AnswerPredicate | None = None) -> Judgement:
    session = Session(desk(TOOLS), answer=answer)
    session.observe_all([user("Hello."), agent(asked), user(said)])
    return session.judge(Call("cancel_order", ORDER, turn=3))


def names(judgement: Judgement) -> tuple[list[str], list[str]]:
    return [each.rule.name for each in judgement.rules], [each.rule.name for each in judgement.open_rules]


def says(value: bool, asked: list[str]) -> OpenAnswers:
    def answer(name: str, act: Act) -> bool:
        assert act.asked
        asked.append(name)
        return value

    return lambda _pack, _events: answer


def test_what_is_open_is_settled_by_who_is_asked_and_nobody_is_asked_for_the_rest() -> None:
    asked: list[str] = []
    yes, no = (says(value, asked)(desk(TOOLS), list) for value in (True, False))
    assert names(judge("Yes.", answer=None)) == ([], ["ask"])
    assert names(judge("Yes.", answer=yes)) == ([], [])
    assert names(judge("Yes.", answer=no)) == (["ask"], [])
    assert asked == ["agreed", "agreed"]
    assert names(judge("Yes.", ASKED, no)) == ([], [])
    assert names(judge("No.", ASKED, yes)) == (["ask"], [])
    assert asked == ["agreed", "agreed"]


def test_a_finding_says_why() -> None:
    (found,) = judge("No.", ASKED).rules
    told = next(each for each in found.record()["predicates"] if each["name"] == "agreed")
    assert told["why"] == {"reason": "declined", "answered_at": 2}
    assert "answer" in found.because


@pytest.mark.parametrize(
    ("consented", "settles"),
    [
        ("told", False),
        ("told, model: may settle", True),
        ("requested", False),
        ("requested, model: may settle", True),
        ("card", False),
    ],
)
def test_live_a_model_settles_consent_only_where_the_pack_lets_it(consented: str, settles: bool) -> None:
    asked: list[str] = []
    with Shield(desk(TOOLS, consented), answers=says(True, asked)).session() as session:
        session.user("Hello.")
        session.agent(OPEN)
        session.user("Yes.")
        assert session.decide("cancel_order", ORDER).answer == ("allow" if settles else "ask")
    assert asked == (["agreed"] if settles else [])


@pytest.mark.parametrize("consented", ["told", "card"])
def test_an_answer_from_before_settles_nothing_that_it_could_not_settle_now(consented: str) -> None:
    live = Conversation(desk(TOOLS, consented), known=[Answered("agreed", 3, True)])
    live.user("Hello.")
    live.agent(OPEN)
    live.user("Yes.")
    assert [each.rule.name for each in live.call("cancel_order", ORDER).open_rules] == ["ask"]


@pytest.mark.parametrize(("consented", "settles"), [("told", True), ("requested", True), ("card", False)])
def test_audited_a_model_settles_what_was_told_and_never_a_card(consented: str, settles: bool) -> None:
    asked: list[str] = []
    pack: Pack = desk(TOOLS, consented)
    session = Session(pack, answer=says(True, asked)(pack, list))
    session.observe_all([user("Hello."), agent(OPEN), user("Yes.")])
    judged = session.judge(Call("cancel_order", ORDER, turn=3))
    assert [each.rule.name for each in judged.open_rules] == ([] if settles else ["ask"])
    assert asked == (["agreed"] if settles else [])


@pytest.mark.parametrize(
    ("told", "said", "feedback", "gets_card"),
    [
        ("", "Cancel R-1001.", "the user has not been asked to confirm this call", True),
        (ASKED, "No.", "Make the call only if the user changes their mind", False),
        (ASKED, "Yes, half of it.", "the user's yes came with a condition, so it does not count", True),
        (OPEN, "Yes.", "the user must answer a card that shows this call", True),
    ],
)
def test_the_agent_is_told_the_next_step(told: str, said: str, feedback: str, gets_card: bool) -> None:
    with Shield(desk(TOOLS)).session() as session:
        if told:
            session.agent(told)
        session.user(said)
        decision = session.decide("cancel_order", ORDER)
    assert not decision.allowed
    assert feedback in decision.feedback
    assert (decision.card is not None) is gets_card
