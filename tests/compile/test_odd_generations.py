"""A strange but valid value in generated code ends as a check or as one policy's fault, never as a traceback."""

import pytest

from bylaw.compile.pipeline import compile_pack
from tests.compile.shop import KINDS, LIMIT, WINDOW, Scripted, source

TEXTS = ("9999-12-31", "0001-01-01", "NaN", "sNaN", "Infinity", "1e999999", "1e-999999", "9" * 5000, r"\ud800", "[a-")
NUMBERS = ("10**18", str(10**18), "9" * 400, "1e400", "1e-320")
CONSTANTS = (*(f'"{each}"' for each in TEXTS), *NUMBERS)
READS = (
    "call.amount == {}",
    "money(call.amount) > money({})",
    "facts.Order(call.order_id).delivered_on > date({})",
    "date(now()) - facts.Order(call.order_id).delivered_on > days({})",
    "now() + hours({}) < time(call.amount)",
    "{{{}: 3}}[call.amount] > 5",
)


def window(test: str) -> str:
    return f'def refund_window(call, facts):\n    if {test}:\n        return deny("late")\n    return permit()\n'


@pytest.mark.parametrize("constant", CONSTANTS, ids=lambda text: text[:20])
def test_an_odd_constant_in_a_guard_fails_its_policy_only(constant: str) -> None:
    for read in READS:
        text = window(read.format(constant))
        made = compile_pack(source(), Scripted(guards=[text + LIMIT, WINDOW + LIMIT, text + LIMIT], repair=text))[0]
        assert made.checks["refund-limit"].code, read
        check = made.checks["refund-window"]
        assert bool(check.code) != bool(check.failed), read


@pytest.mark.parametrize("repair", ["x = '", "-" * 3000 + "1", "(" * 300, "\x00", "def refund_window(call, facts):"])
def test_a_repair_that_is_no_code_fails_its_policy(repair: str) -> None:
    wrong = window("facts.Order(call.order_id).delivered_on > date('2024-01-01')")
    made = compile_pack(source(), Scripted(guards=wrong + LIMIT, repair=repair))[0].checks
    assert "no guard passes its cases" in made["refund-window"].failed
    assert made["refund-limit"].code


@pytest.mark.parametrize("rules", ["rules: 5", "cannot: [a]", "predicates: [x]", "rules: [{id: [], formula: {}}]"])
def test_rules_of_the_wrong_form_are_asked_for_again_and_fail_their_policy(rules: str) -> None:
    model = Scripted(rules=rules)
    made = compile_pack(source(), model)[0].checks
    assert made["confirm-refunds"].failed
    assert any("Your answer cannot be used" in each.messages[-1].content for each in model.asked("rules"))
    assert all(made[name].code for name, kind in KINDS.items() if kind == "guard")
