"""`resolve: live`: the shield looks up what is missing; the decision goes by it, the evidence does not."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bylaw import BylawError, verdicts
from bylaw.policy.posture import Postures
from bylaw.shield import Shield
from tests.shield.test_decisions import APPOINTMENT, CANCEL, PATIENT, asked, shop

LIVE = Postures(resolve="live")
REFUND = {"order_id": "7"}


class Host:
    """The host's read tools."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        self.calls.append((tool, dict(arguments)))
        answer = self.answers[tool]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(("returned", "answer"), [(True, "allow"), (False, "deny")])
def test_the_shield_looks_up_what_the_agent_did_not(returned: bool, answer: str) -> None:
    host = Host(get_order={"order_id": "7", "returned": returned})
    session = Shield(shop(), postures=LIVE, tools=host).session()
    decision = session.decide("refund", REFUND)
    assert (decision.answer, [each.answer for each in decision.evidence]) == (answer, ["look_up"])
    assert [(each.tool, each.arguments, each.failed) for each in decision.resolved] == [("get_order", REFUND, False)]
    # The agent has not seen it: the audit says so, and the next call is looked up anew.
    (verdict,) = verdicts(session.shield.pack, session.trajectory(), mode="none").calls
    assert verdict.policies[0].evidence == "undetermined"
    session.decide("refund", REFUND)
    assert len(host.calls) == 2


def test_links_are_followed_one_after_the_other() -> None:
    host = Host(
        get_patient=PATIENT, get_appointment=APPOINTMENT, get_membership={"membership_id": "M878", "tier": "gold"}
    )
    session = Shield("clinic", postures=LIVE, tools=host).session()
    session.user("I'm ill and can't make A0362. I'm P121.")
    session.agent("I'm about to cancel A0362 with a fee of $0.00. Shall I go ahead?")
    session.user("Yes, please.")
    decision = session.decide("cancel_appointment", CANCEL)
    assert decision.answer == "allow"
    assert ("get_membership", {"membership_id": "M878"}) in host.calls
    assert len(decision.resolved) == 3


def test_a_look_up_that_fails_is_asked_of_a_person() -> None:
    decision = Shield(shop(), postures=LIVE, tools=Host(get_order=OSError("down"))).session().decide("refund", REFUND)
    assert (decision.answer, decision.allowed) == ("ask", False)
    assert (decision.resolved[0].failed, decision.resolved[0].content) == (True, "OSError: down")


def test_what_is_seen_already_is_not_looked_up(tmp_path: Path) -> None:
    host = Host(get_membership={"membership_id": "M878", "tier": "standard"})
    with Shield("clinic", postures=LIVE, tools=host, log=tmp_path / "decisions.db") as shield:
        decision = asked(shield.session("c")).decide("cancel_appointment", CANCEL)
    assert (decision.answer, host.calls) == ("deny", [("get_membership", {"membership_id": "M878"})])
    assert decision.grounds[0].because == "the fee is $40.00, not $0.00"


def test_a_broken_rule_is_not_mended_by_a_look_up() -> None:
    host = Host(
        get_patient=PATIENT, get_appointment=APPOINTMENT, get_membership={"membership_id": "M878", "tier": "gold"}
    )
    session = Shield("clinic", postures=LIVE, tools=host).session()
    session.user("Cancel A0362. I'm P121.")
    decision = session.decide("cancel_appointment", CANCEL)
    assert (decision.answer, decision.resolved) == ("deny", ())
    assert host.calls == []


def test_live_needs_tools() -> None:
    with pytest.raises(BylawError, match="needs the host's tools"):
        Shield(shop(), postures=LIVE)
