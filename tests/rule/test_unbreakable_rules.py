"""A rule that no conversation can break protects nothing, so its pack does not load."""

import random
from itertools import product

import pytest

from bylaw import Pack, Shield
from bylaw.errors import PackError
from bylaw.rule.monitor import Monitor
from bylaw.rule.reach import reach
from bylaw.rule.rule import Rule
from tests.rule.temporal.formulas import random_formula

FILES = {
    "pack.yaml": "format: 1\nname: shop\ndocument: policy.md\nshield: {posture: enforce}\n",
    "policy.md": "Refund an order only once.\n",
    "policies.yaml": "policies:\n  - {id: once, kind: rule, spans: [Refund an order only once.]}\n",
    "tools.yaml": """
tools:
  get_order: {effect: read, parameters: {order_id: string}}
  refund: {effect: write, parameters: {order_id: string}, changes: []}
  close: {effect: write, parameters: {account: string}, changes: []}
""",
}
PREDICATES = """
predicates:
  refund: {tool: refund}
  small: {tool: refund, when: "act.arguments.order_id == '7'"}
  look: {tool: get_order}
  change: {effect: write}
  speak: {message: true}
  promise: {pattern: guarantee}
  mail: {detector: email}
  calm: {said: slowly}
  waits: {turn: without_call}
  agreed: {consented: card}
"""


def pack(formula: str) -> Pack:
    return Pack.from_files({**FILES, "rules.yaml": f"{PREDICATES}rules:\n  - {{id: once, formula: '{formula}'}}\n"})


@pytest.mark.parametrize(
    "formula",
    [
        "ALWAYS NOT (refund AND speak)",
        "ALWAYS NOT (refund AND look)",
        "ALWAYS NOT (refund AND promise)",
        "ALWAYS NOT (change AND mail)",
        "ALWAYS NOT (refund AND waits)",
        "ALWAYS NOT (look AND change)",
        "ALWAYS NOT (look AND small)",
        "ALWAYS NOT (look AND agreed)",
        "ALWAYS (refund IMPLIES change)",
        "ALWAYS (refund IMPLIES ONCE refund)",
        "ALWAYS ((refund AND YESTERDAY speak) IMPLIES NOT YESTERDAY change)",
        "EVENTUALLY (refund OR NOT change OR NOT look)",
        "FOR EACH account: ALWAYS NOT refund",
        "FOR EACH orderid: ALWAYS (change IMPLIES NOT YESTERDAY ONCE change)",
    ],
)
def test_a_pack_with_a_rule_that_nothing_can_break_does_not_load(formula: str) -> None:
    with pytest.raises(PackError, match=r"rules.yaml:\d+: rule `once` can never be broken"):
        pack(formula)


@pytest.mark.parametrize(
    "formula",
    [
        "ALWAYS NOT (refund AND change)",
        "ALWAYS NOT (refund AND ONCE promise)",
        "ALWAYS NOT (refund AND calm)",
        "ALWAYS NOT (speak AND mail)",
        "ALWAYS (change IMPLIES agreed)",
        "ALWAYS (refund IMPLIES small)",
        "EVENTUALLY look",
        "FOR EACH order_id: ALWAYS (change IMPLIES NOT YESTERDAY ONCE change)",
    ],
)
def test_a_pack_with_a_rule_that_something_can_break_loads(formula: str) -> None:
    assert [rule.name for rule in pack(formula).book.rules] == ["once"]


def test_a_misspelt_binding_is_reported_with_the_argument_meant() -> None:
    with pytest.raises(PackError, match="did you mean `order_id`"):
        pack("FOR EACH orderid: ALWAYS NOT refund")


def test_a_write_that_no_call_of_it_can_break_a_rule_for_is_unguarded() -> None:
    shield = Shield(pack("FOR EACH order_id: ALWAYS (change IMPLIES NOT YESTERDAY ONCE change)"))
    with shield.session("c") as session:
        session.user("hi")
        assert session.decide("refund", {"order_id": "7"}).answer == "allow"
        decision = session.decide("close", {"account": "a"})
    assert decision.answer == "ask"
    assert decision.unguarded


def test_a_rule_breaks_at_exactly_the_acts_at_which_some_trace_breaks_it() -> None:
    dice = random.Random(5)
    breakable = 0
    for _ in range(150):
        formula = random_formula(dice, dice.randint(2, 6))
        acts = [{"a": dice.choice((True, False, None)), "b": dice.choice((True, False, None))} for _ in range(2)]
        completions = [
            (number, dict(zip("ab", values, strict=True)))
            for number, act in enumerate(acts)
            for values in product(*((True, False) if known is None else (known,) for known in act.values()))
        ]
        broken, at_end = set[int](), False
        for length in (1, 2, 3, 4):
            for trace in product(completions, repeat=length):
                monitor = Monitor(Rule("r", formula))
                reports = [monitor.step(values) for _, values in trace]
                broken |= {trace[-1][0]} if reports[-1].broke else set()
                at_end = at_end or not monitor.finish().holds
        found = reach(formula, acts)
        assert (found.acts, found.at_end) == (broken, at_end), str(formula)
        breakable += bool(broken)
    assert breakable > 20


@pytest.mark.parametrize(
    "given", [{}, {"order_id": None}, {"order_id": ""}, {"order_id": " "}, {"order_id": ["7", "8"]}]
)
@pytest.mark.parametrize("formula", ["ALWAYS NOT refund", "ALWAYS (refund IMPLIES ONCE look)"])
def test_a_call_without_a_binding_is_not_exempt(formula: str, given: dict[str, object]) -> None:
    tools = FILES["tools.yaml"].replace(
        "refund: {effect: write, parameters: {order_id: string}",
        "refund: {effect: write, parameters: {order_id: {optional: true}}",
    )
    rules = f"{PREDICATES}rules:\n  - {{id: once, formula: 'FOR EACH order_id: {formula}'}}\n"
    with Shield(Pack.from_files({**FILES, "tools.yaml": tools, "rules.yaml": rules})).session("c") as session:
        session.user("hi")
        assert session.decide("refund", given).answer in ("ask", "deny")
