"""Policies that their guards state: the same as if policies.yaml had said it."""

from pathlib import Path

import pytest

from bylaw.pack.review import sides_of
from bylaw.policy.folder import read_folder
from tests.policy.shop import FILES, faults, load, write_pack

GUARDS = FILES["guards/shop.py"]
STATED = GUARDS.replace(
    "def only_paid(call, facts):\n", 'def only_paid(call: ship, facts):\n    """Only paid orders are shipped."""\n'
).replace("def no_gifts(call, facts):\n", 'def no_gifts(call: refund, facts):\n    """Gifts are never refunded."""\n')
LEFT = "policies:\n" + FILES["policies.yaml"][FILES["policies.yaml"].index("  - id: say-it") :]


def stated(call: str = "ship", sentence: str = "Only paid orders are shipped.", policies: str = LEFT) -> dict[str, str]:
    code = STATED.replace("call: ship", f"call: {call}").replace("Only paid orders are shipped.", sentence)
    return {"guards/shop.py": code, "policies.yaml": policies}


def test_a_guard_may_state_its_policy(tmp_path: Path) -> None:
    short, long = load(tmp_path / "short", stated()), load(tmp_path / "long")
    assert short.policies.keys() == long.policies.keys()
    for name, policy in short.policies.items():
        told = long.policies[name]
        assert (policy.kind, policy.tools, policy.citations) == (told.kind, told.tools, told.citations)
    assert short.by_tool.keys() == long.by_tool.keys() == {"ship", "refund"}
    assert (short.policies["only-paid"].severity, short.policies["only-paid"].definition) == ("medium", "")


def test_policies_yaml_may_say_more_of_it(tmp_path: Path) -> None:
    pack = load(tmp_path, stated(policies=LEFT + "  - {id: only-paid, severity: high, definition: Pay first.}\n"))
    policy = pack.policies["only-paid"]
    assert (policy.severity, policy.definition, policy.tools) == ("high", "Pay first.", ("ship",))
    assert [citation.text for citation in policy.citations] == ["Only paid orders are shipped."]


def test_a_guard_may_say_its_tools_alone(tmp_path: Path) -> None:
    code = GUARDS.replace("def only_paid(call, facts)", "def only_paid(call: ship, facts)")
    entry = FILES["policies.yaml"].replace("    tools: [ship]\n", "")
    short, long = load(tmp_path / "short", {"guards/shop.py": code, "policies.yaml": entry}), load(tmp_path / "long")
    assert short.policies == long.policies
    assert short.by_tool.keys() == long.by_tool.keys()


def test_no_policies_yaml_is_needed(tmp_path: Path) -> None:
    pack = load(tmp_path, {**stated(), "policies.yaml": None})
    assert list(pack.policies) == ["only-paid", "no-gifts"]


@pytest.mark.parametrize(
    ("call", "tools"),
    [
        ("ship", ("ship",)),
        ("ship | refund", ("ship", "refund")),
        ('"ship" | refund', ("ship", "refund")),
        ("write", ("ship", "refund")),
        ("write(order_id)", ("ship", "refund")),
        ("write(order_id, amount)", ("refund",)),
        ("read(owner)", ("find_orders",)),
        ("write(amount) | find_orders", ("refund", "find_orders")),
        ("find_orders | write", ("find_orders", "ship", "refund")),
    ],
)
def test_tools_are_named_or_told_by_what_they_do_and_take(call: str, tools: tuple[str, ...], tmp_path: Path) -> None:
    pack = load(tmp_path, stated(call))
    assert pack.policies["only-paid"].tools == tools


def test_each_line_is_a_sentence(tmp_path: Path) -> None:
    pack = load(tmp_path, stated(sentence="Only paid orders\n\n    Nothing is shipped to somebody else.\n    "))
    cited = [citation.text for citation in pack.policies["only-paid"].citations]
    assert cited == ["Only paid orders are shipped.", "Nothing is shipped to somebody else."], "whole sentences"


def test_a_sentence_that_is_nowhere_is_a_fault_at_its_line_of_the_docstring(tmp_path: Path) -> None:
    two = "Nothing is shipped to somebody else.\n\n    Only paid parcels are shipped.\n    "
    (fault,) = faults(tmp_path, stated(sentence=two))
    assert fault.startswith("BY406 guards/shop.py:4: `Only paid parcels are shipped.`, quoted by `only-paid`, is not")
    assert "`Only paid orders are shipped.`, policy.md:5 (Shipping)" in fault


def test_what_is_said_twice_is_to_be_left_out_where_it_stands(tmp_path: Path) -> None:
    (spans,) = faults(tmp_path / "spans", stated(policies=QUOTED_TWICE))
    assert spans.endswith("remove `spans` here, or the docstring there")
    (tools,) = faults(tmp_path / "tools", stated(policies=TWICE))
    assert tools.endswith("remove `tools` here, or the annotation of `call` there")


def test_what_a_guard_states_is_reviewed_as_any_policy(tmp_path: Path) -> None:
    sides = sides_of(read_folder(write_pack(tmp_path / "a", stated())))
    assert sides.keys() == {"only-paid", "no-gifts", "say-it"}
    changed = sides_of(read_folder(write_pack(tmp_path / "b", stated(sentence="Nothing is shipped to somebody else."))))
    assert {name for name in sides if sides[name].sentence != changed[name].sentence} == {"only-paid"}


TWICE = LEFT + "  - {id: only-paid, tools: [ship]}\n"
QUOTED_TWICE = LEFT + "  - {id: only-paid, spans: [Only paid orders]}\n"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (stated("send"), "BY406 guards/shop.py:1: `send` of policy `only-paid` is not a tool"),
        (stated("ship & refund"), "BY201 guards/shop.py:1: annotations are not part of the language"),
        (stated("ship(order_id)"), "BY406 guards/shop.py:1: `only_paid` does not say which tools it applies to"),
        (stated("write(colour)"), "BY406 guards/shop.py:1: no tool matches `tools` of policy `only-paid`"),
        (stated(sentence=""), "BY406 guards/shop.py:1: policy `only-paid` cites no sentence"),
        (
            stated(policies=LEFT + "  - {id: gone}\n"),
            "BY406 policies.yaml:6: policy `gone` has neither tools nor sentences",
        ),
        (stated(policies=QUOTED_TWICE), "BY406 policies.yaml:6: `spans` of policy `only-paid` is declared twice"),
        (stated(policies=TWICE), "BY406 policies.yaml:6: `tools` of policy `only-paid` is declared twice"),
    ],
)
def test_what_it_cannot_mean_is_a_fault(changes: dict[str, str], said: str, tmp_path: Path) -> None:
    found = faults(tmp_path, changes)
    assert any(fault.startswith(said) for fault in found), found


def test_a_text_that_is_no_python_is_told_once(tmp_path: Path) -> None:
    found = faults(tmp_path, {"guards/shop.py": "def only_paid(call: ship, facts):\n  return (\n"})
    assert len([fault for fault in found if "not Python" in fault]) == 1, found


def test_a_tool_that_is_not_there_is_told_at_the_guard_that_names_it(tmp_path: Path) -> None:
    policies = LEFT + "  - {id: only-paid, severity: high}\n"
    (fault,) = faults(tmp_path, stated("write | send", policies=policies))
    assert fault.startswith("BY406 guards/shop.py:")
    assert "`send` of policy `only-paid` is not a tool" in fault


RULES = (
    "predicates: {change: {effect: write}}\nrules:\n  - {id: one-rule, policy: say-it, formula: ALWAYS NOT change}\n"
)


@pytest.mark.parametrize("rules", [RULES, RULES.replace("id: one-rule, policy: say-it", "id: say-it")])
def test_a_policy_that_a_rule_names_is_of_that_kind(rules: str, tmp_path: Path) -> None:
    short = FILES["policies.yaml"].replace("    kind: conversation\n", "")
    pack = load(tmp_path, {"policies.yaml": short, "rules.yaml": rules})
    assert pack.policies["say-it"].kind == "rule"
    assert [rule.policy for rule in pack.book.rules] == ["say-it"]


def test_a_guard_or_the_entry_itself_goes_before_a_rule(tmp_path: Path) -> None:
    guarded = RULES.replace("say-it", "only-paid")
    short = FILES["policies.yaml"].replace("    kind: guard\n", "")
    pack = load(tmp_path / "a", {"policies.yaml": short, "rules.yaml": guarded})
    assert (pack.policies["only-paid"].kind, list(pack.guards)) == ("guard", ["only-paid", "no-gifts"])
    assert load(tmp_path / "b", {"rules.yaml": RULES}).policies["say-it"].kind == "conversation"


def test_a_policy_that_neither_names_is_a_guard_that_is_missing(tmp_path: Path) -> None:
    short = FILES["policies.yaml"].replace("    kind: conversation\n", "")
    found = faults(tmp_path, {"policies.yaml": short})
    assert found[0].startswith("BY406 policies.yaml:13: policy `say-it` applies to no tool")
