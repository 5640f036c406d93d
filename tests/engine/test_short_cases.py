"""What a case leaves out: what it wants, the call's arguments, and the ids of the things that it is about."""

from pathlib import Path
from typing import Any

import pytest

from bylaw.review.case import CaseResult, run_cases
from tests.policy.shop import FILES, load

ENTITIES = FILES["entities.yaml"].replace(
    "observations:", "  Person: {key: owner, fields: {gold: boolean}}\nobservations:"
)
GUARDS = """\
def only_paid(call, facts):
    order = facts.Order(call.order_id)
    if facts.Person(order.owner).gold:
        return permit()
    return permit() if order.paid else deny("the order is not paid")
"""


def run(root: Path, text: str, **files: Any) -> list[CaseResult]:
    guards = {"guards/shop.py": GUARDS + FILES["guards/shop.py"].partition("\n\n\n")[2], "entities.yaml": ENTITIES}
    found = list(run_cases(load(root, {"cases/shop.yaml": text, **guards, **files}), {}))
    assert all(isinstance(each, CaseResult) for each in found), found
    return [each for each in found if isinstance(each, CaseResult)]


def got(root: Path, text: str) -> list[str]:
    return [each.got.split(" ")[0] for each in run(root, text)]


def test_a_case_is_a_permit_and_what_stands_under_but_the_opposite(tmp_path: Path) -> None:
    case = "- {policy: no-gifts, facts: {Order: {gift: false}}, but: {facts: {Order: {gift: true}}}}\n"
    assert [(each.want, each.got.split(" ")[0], each.passed) for each in run(tmp_path / "a", case)] == [
        ("permit", "permit", True),
        ("deny", "deny", True),
    ]
    turned = "- {policy: no-gifts, facts: {Order: {gift: true}}, want: deny, but: {facts: {Order: {gift: false}}}}\n"
    assert [(each.want, each.passed) for each in run(tmp_path / "b", turned)] == [("deny", True), ("permit", True)]
    wrong = case.replace("gift: false", "gift: true")
    assert [each.passed for each in run(tmp_path / "c", wrong)] == [False, True]


@pytest.mark.parametrize(
    ("facts", "wanted"),
    [
        ("{Order: {paid: false}, Person: {gold: true}}", "permit"),
        ("{Order: {paid: false}, Person: {gold: false}}", "deny"),
        ("{Order: {paid: false}}", "undetermined"),  # nothing says whose it is
        ("{Order: {paid: false, owner: ann}, Person: {gold: true}}", "permit"),  # the only one that is spoken of
        ('{Order: {paid: false, owner: ann}, "Person[bob]": {gold: true}}', "undetermined"),  # somebody else
        ('{Order: {paid: false, owner: ann}, "Person[ann]": {gold: true}}', "permit"),
        ('{Order: {paid: false}, "Person[ann]": {gold: true}}', "undetermined"),  # a named thing is nobody's by itself
        ("{Order: null}", "deny"),
    ],
)
@pytest.mark.parametrize("call", ["", "call: ship, ", "call: {ship: {}}, ", "call: {ship: {order_id: O1}}, "])
def test_things_without_a_key_are_those_that_the_case_speaks_of(
    call: str, facts: str, wanted: str, tmp_path: Path
) -> None:
    assert got(tmp_path, f"- {{policy: only-paid, {call}facts: {facts}}}\n") == [wanted]


def test_a_world_without_keys_is_of_the_same_things(tmp_path: Path) -> None:
    text = "- {policy: only-paid, facts: {Order: {paid: false}}, world: {Person: {gold: true}}, want: near-miss}\n"
    found = run(tmp_path, text)
    assert [each.passed for each in found] == [True], found


def test_an_argument_that_a_guard_needs_is_not_made_up(tmp_path: Path) -> None:
    (found,) = run(tmp_path, "- {policy: no-gifts, call: refund}\n")
    assert found.got.startswith("failed")
    assert found.got.endswith("; the guard reads `order_id`, so add it under `call`")


@pytest.mark.parametrize(
    ("facts", "wanted"),
    [("{}", "deny"), ("{Caller: null}", "deny"), ('{"Caller[ann]": {}}', "permit"), ('{"Caller[ben]": {}}', "deny")],
)
@pytest.mark.parametrize(
    "asked", ['facts.Caller("ann").exists', 'any(each.id == "ann" for each in facts.Caller.seen())']
)
def test_what_a_complete_kind_does_not_hold_is_not_there(asked: str, facts: str, wanted: str, tmp_path: Path) -> None:
    caller = "  Caller: {key: id, origin: conversation, complete: true}\nobservations:"
    guard = f'def only_paid(call, facts):\n    return permit() if {asked} else deny("nobody")\n'
    files = {
        "entities.yaml": FILES["entities.yaml"].replace("observations:", caller),
        "guards/shop.py": f"{guard}\n\n{FILES['guards/shop.py'].partition(chr(10) * 3)[2]}",
        "cases/shop.yaml": f"- {{policy: only-paid, facts: {facts}}}\n",
    }
    (found,) = run_cases(load(tmp_path, files), {})
    assert isinstance(found, CaseResult)
    assert found.got.startswith(wanted)
