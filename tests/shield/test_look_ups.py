"""Which look-up the agent is told to make first, and when it is not sent to make one."""
# pyright: basic, reportAttributeAccessIssue=false

import pytest

from bylaw import load_pack
from bylaw.shield import Shield
from tests.engine.test_conversation import FILES
from tests.shield.scenes import CANCEL, asked, looked_up, shop


@pytest.fixture(scope="module")
def clinic() -> Shield:
    return Shield(load_pack("clinic"))


def test_the_agent_is_told_which_look_up_to_make_first(clinic: Shield) -> None:
    with clinic.session("conv-17") as session:
        decision = asked(session).decide("cancel_appointment", CANCEL)
        assert (decision.answer, decision.allowed) == ("look_up", False)
        assert decision.policies == ("late-cancel-fee",)
        assert decision.missing == ("Membership[M878].tier",)
        (look_up,) = decision.look_ups
        assert (look_up.tool, look_up.arguments) == ("get_membership", {"membership_id": "M878"})
        assert "get_membership(membership_id=M878)" in decision.feedback
        assert "Gold members are let off" in decision.feedback
        session.result(decision.feedback)
        looked_up(session, "get_membership", look_up.arguments, {"membership_id": "M878", "tier": "gold"})
        again = session.decide("cancel_appointment", CANCEL)
        assert (again.answer, again.allowed, again.feedback) == ("allow", True, "")


def test_look_ups_come_one_link_at_a_time(clinic: Shield) -> None:
    session = clinic.session()
    session.agent("I'm about to cancel appointment A0362 of patient P121 with a fee of $0.00. Shall I go ahead?")
    session.user("Yes, please.")
    decision = session.decide("cancel_appointment", CANCEL)
    assert decision.answer == "look_up"
    assert {look_up.tool for look_up in decision.look_ups} <= {"get_patient", "get_appointment"}


def test_a_look_up_that_was_made_in_vain_is_asked_of_a_person(clinic: Shield) -> None:
    session = asked(clinic.session())
    looked_up(session, "get_membership", {"membership_id": "M878"}, "Error: the service is down")
    decision = session.decide("cancel_appointment", CANCEL)
    assert (decision.answer, decision.allowed, decision.look_ups) == ("ask", False, ())
    assert [(question.fact, question.whom) for question in decision.questions] == [("Membership[M878].tier", "person")]


def test_the_look_up_to_make_is_one_that_may_still_show_the_fact() -> None:
    tools = FILES["tools.yaml"] + "  get_return: {effect: read, parameters: {order_id: string}}\n"
    shows = FILES["entities.yaml"] + "  get_return: [{as: Order}]\n"
    session = Shield(shop(tools_yaml=tools, entities_yaml=shows)).session()
    assert [each.tool for each in session.decide("refund", {"order_id": "7"}).look_ups] == ["get_order"]
    looked_up(session, "get_order", {"order_id": "7"}, {"order_id": "7"})
    assert [each.tool for each in session.decide("refund", {"order_id": "7"}).look_ups] == ["get_return"]


def test_a_look_up_that_failed_may_be_tried_again(clinic: Shield) -> None:
    session = asked(clinic.session())
    looked_up(session, "get_membership", {"membership_id": "M878"}, "Error: the service is down")
    decision = session.decide("cancel_appointment", CANCEL)
    assert [(each.tool, each.arguments) for each in decision.retries] == [("get_membership", {"membership_id": "M878"})]
    assert "Try it again: get_membership(membership_id=M878). If it fails again, ask." in decision.feedback
    session.result(decision.feedback)
    looked_up(session, "get_membership", {"membership_id": "M878"}, {"membership_id": "M878", "tier": "gold"})
    assert session.decide("cancel_appointment", CANCEL).allowed


def test_where_every_value_ends_in_a_denial_the_look_up_that_tells_is_named(clinic: Shield) -> None:
    session = asked(clinic.session())
    decision = session.decide("cancel_appointment", CANCEL | {"late_fee": "13.00"})
    ground = next(each for each in decision.grounds if each.policy == "late-cancel-fee")
    assert (ground.answer, ground.because) == ("deny", "")
    assert [(each.tool, each.arguments) for each in ground.look_ups] == [("get_membership", {"membership_id": "M878"})]


def test_who_is_refused_for_want_of_a_history_is_not_sent_to_look_up_and_try_again() -> None:
    shield = Shield(shop())
    known = shield.session().decide("refund", {"order_id": "7"})
    unknown = shield.session(lacks="nobody said which conversation it is").decide("refund", {"order_id": "7"})
    assert "Look up: get_order(order_id=7). Then make the call again" in known.feedback
    assert "Look up" not in unknown.feedback
    assert unknown.look_ups == known.look_ups
    assert "nobody said which conversation it is" in unknown.feedback


def test_who_is_denied_by_one_policy_is_not_sent_to_look_up_for_another_and_try_again() -> None:
    never = "  - {id: never, tools: [refund], spans: [{quote: Refund an order only after it was returned.}]}\n"
    pack = shop(
        policies_yaml=FILES["policies.yaml"] + never,
        guards__n_py='def never(call, facts):\n    return deny("no refunds")\n',
    )
    decision = Shield(pack).session().decide("refund", {"order_id": "7"})
    assert decision.answer == "deny"
    assert "no refunds" in decision.feedback
    assert not any(part in decision.feedback for part in ("Look up", "make the call again"))
    assert [each.tool for each in decision.look_ups] == ["get_order"]
