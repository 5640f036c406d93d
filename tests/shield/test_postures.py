"""How firmly a shield holds to its pack: by policy, by tool, and where nothing can be judged."""

from typing import Any

import pytest

from bylaw import BylawError
from bylaw.policy.tool import Postures
from bylaw.shield import Decision, Shield
from tests.engine.test_conversation import FILES
from tests.shield.scenes import shop


def ask_for_refund(postures: Postures) -> Decision:
    return Shield(shop(), postures=postures).session().decide("refund", {"order_id": "7"})


@pytest.mark.parametrize(
    ("postures", "allowed", "enforced", "is_told"),
    [
        (Postures(), False, "enforce", True),
        (Postures("advise"), True, "advise", True),
        (Postures("shadow"), True, "shadow", False),
        (Postures("shadow", tools={"refund": "enforce"}), False, "enforce", True),
        (Postures("enforce", tools={"refund": "enforce"}, policies={"returned-first": "advise"}), True, "advise", True),
        (Postures("enforce", tools={"get_order": "shadow"}), False, "enforce", True),
    ],
)
def test_policy_beats_tool_beats_pack(postures: Postures, allowed: bool, enforced: str, is_told: bool) -> None:
    decision = ask_for_refund(postures)
    assert decision.answer == "look_up"
    assert (decision.allowed, decision.enforced, bool(decision.feedback)) == (allowed, enforced, is_told)


def test_a_pack_says_its_postures_and_a_wrong_one_does_not_load() -> None:
    said = FILES["pack.yaml"] + "shield: {posture: shadow, policies: {returned-first: advise}}\n"
    decision = Shield(shop(pack_yaml=said)).session().decide("refund", {"order_id": "7"})
    assert (decision.allowed, decision.enforced) == (True, "advise")
    for wrong in ("posture: maybe", "on_error: allow", "tools: {no_tool: shadow}", "policies: {no-policy: shadow}"):
        with pytest.raises(BylawError, match=r"pack\.yaml:4"):
            shop(pack_yaml=FILES["pack.yaml"] + f"shield: {{{wrong}}}\n")


@pytest.mark.parametrize("wrong", [{"posture": "Enforce"}, {"on_error": "allow"}, {"tools": {"refund": "off"}}])
def test_a_posture_that_is_none_lets_nothing_through(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        Postures(**wrong)


@pytest.mark.parametrize(("on_read_error", "answer"), [("deny", "deny"), ("ask", "ask"), ("allow", "allow")])
def test_only_a_read_that_cannot_be_judged_may_be_let_through(on_read_error: Any, answer: str) -> None:
    shield = Shield(shop(), postures=Postures(on_read_error=on_read_error))
    decision = shield.session().decide("get_order", "not json")
    assert (decision.answer, decision.allowed) == (answer, answer == "allow")
    assert decision.grounds[0].because == "arguments are not JSON"
    assert not shield.session().decide("refund", "not json").allowed
    assert not shield.session().decide("erase_all", {}).allowed
