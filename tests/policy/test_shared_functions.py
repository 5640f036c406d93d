"""Functions that guards of several files share."""

from pathlib import Path

import pytest

from bylaw.pack.review import sides_of
from bylaw.policy.folder import read_folder
from bylaw.review.case import CaseResult, run_cases
from bylaw.review.check import check
from tests.policy.shop import faults, load, write_pack

PAID = "def only_paid(call, facts):\n    return settled(facts.Order(call.order_id))\n"
GIFTS = """\
def no_gifts(call, facts):
    order = facts.Order(call.order_id)
    return deny("gifts are not refunded") if order.gift else settled(order)
"""
SHARED = """\
def settled(order):
    return permit() if is_paid(order) else deny("the order is not paid")


def is_paid(order):
    return order.paid
"""
CASES = """\
- {policy: only-paid, facts: {Order: {paid: true}}, but: {facts: {Order: {paid: false}}}}
- policy: no-gifts
  facts: {Order: {paid: true, gift: false}}
  but: [{facts: {Order: {gift: true}}}, {facts: {Order: {paid: false}}}]
"""


def files(**more: str | None) -> dict[str, str | None]:
    named = {f"guards/{name}.py": text for name, text in more.items()}
    return {
        "guards/shop.py": PAID,
        "guards/gifts.py": GIFTS,
        "guards/all.py": SHARED,
        "cases/shop.yaml": CASES,
        **named,
    }


def test_a_function_of_another_file_is_called_as_one_of_its_own(tmp_path: Path) -> None:
    found = list(run_cases(load(tmp_path, files()), {}))
    assert [isinstance(each, CaseResult) and each.passed for each in found] == [True] * 5, found


def test_its_faults_stand_where_it_stands(tmp_path: Path) -> None:
    found = faults(tmp_path, files(all=SHARED.replace("order.paid", "order.payed")))
    assert [fault for fault in found if fault.startswith("BY201 guards/all.py:6: ")], found
    assert not [fault for fault in found if "guards/shop.py" in fault], found


def test_of_two_of_one_name_each_file_has_its_own(tmp_path: Path) -> None:
    never = "\n\ndef settled(order):\n    return deny('never')\n"
    pack = load(tmp_path, files(shop=PAID + never, gifts=f"{GIFTS}\n\n{SHARED}", all=None))
    found = [each for each in run_cases(pack, {}) if isinstance(each, CaseResult) and each.want == "permit"]
    assert {each.policy: each.passed for each in found} == {"only-paid": False, "no-gifts": True}


def test_one_that_two_other_files_have_is_nobodys(tmp_path: Path) -> None:
    found = faults(tmp_path, files(more=SHARED))
    assert [fault for fault in found if "guards/shop.py:2" in fault], found


def test_a_word_of_one_file_is_no_function_of_another(tmp_path: Path) -> None:
    named = GIFTS.replace("order = ", "is_paid = True\n    order = ")
    found = faults(tmp_path / "a", files(gifts=named))
    assert len(found) == 1
    assert found[0].startswith("BY201 guards/gifts.py:2: `is_paid`")
    alone = "def no_gifts(call, facts):\n    settled = facts.Order(call.order_id).gift\n"
    alone += "    return deny('a gift') if settled else permit()\n"
    assert load(tmp_path / "b", files(gifts=alone)).guards


def test_one_that_no_guard_calls_is_told(tmp_path: Path) -> None:
    found = faults(tmp_path, files(all=SHARED + "\n\ndef spare(order):\n    return order.gift\n"))
    assert [fault for fault in found if "guards/all.py:9" in fault and "`spare`" in fault], found


@pytest.mark.parametrize("changed", ["order.paid", "not order.gift"])
def test_a_signature_lapses_where_what_is_shared_changes(changed: str, tmp_path: Path) -> None:
    before = sides_of(read_folder(write_pack(tmp_path / "a", files())))
    after = sides_of(read_folder(write_pack(tmp_path / "b", files(all=SHARED.replace("order.paid", changed)))))
    same = changed == "order.paid"
    assert {name: before[name].check == after[name].check for name in ("only-paid", "no-gifts")} == dict.fromkeys(
        ("only-paid", "no-gifts"), same
    )


def test_a_branch_of_a_shared_function_is_covered_once(tmp_path: Path) -> None:
    cases = CASES.replace(
        "{facts: {Order: {gift: true}}}, {facts: {Order: {paid: false}}}", "{facts: {Order: {gift: true}}}"
    )
    pack = load(tmp_path, files() | {"cases/shop.yaml": cases})
    report = check(pack)
    assert not report.untaken, "the cases of `only-paid` take both ways of `settled`"
    assert report.branches < sum(len(guard.branches) for guard in pack.guards.values())
    only = cases.replace(", but: {facts: {Order: {paid: false}}}", "")
    untaken = check(load(tmp_path / "less", files() | {"cases/shop.yaml": only})).untaken
    assert [(each.file, each.kind) for each in untaken] == [("guards/all.py", "else")]
