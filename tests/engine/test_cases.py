"""Cases: those of the clinic pass, and a case that should fail does."""

from pathlib import Path
from typing import Any

import pytest

from bylaw.errors import BylawError
from bylaw.pack import load_pack
from bylaw.review.case import CaseResult, run_cases, untested
from bylaw.review.check import covered_sentences
from tests.policy.shop import FILES, load

from .clinic import pack as clinic

CASE = """\
- note: the case
  policy: only-paid
  call: {ship: {order_id: O1}}
"""


def run(root: Path, text: str, **files: Any) -> list[CaseResult | BylawError]:
    return list(run_cases(load(root, {"cases/shop.yaml": text, **files}), {}))


def only(root: Path, text: str) -> CaseResult:
    (found,) = run(root, text)
    assert isinstance(found, CaseResult), str(found)
    return found


def fault(root: Path, text: str) -> str:
    (found,) = run(root, text)
    assert isinstance(found, BylawError)
    return f"{found.code} {found}"


def test_every_case_of_the_clinic_comes_out_as_wanted() -> None:
    coverage: dict[str, set[int]] = {}
    results = list(run_cases(clinic(), coverage))
    outcomes = [result for result in results if isinstance(result, CaseResult)]
    assert [str(result) for result in results if isinstance(result, BylawError)] == []
    assert [outcome for outcome in outcomes if not outcome.passed] == []
    assert untested(outcomes, clinic()) == []
    assert len(outcomes) >= 200


def test_every_branch_of_the_clinics_guards_is_taken_by_a_case() -> None:
    coverage: dict[str, set[int]] = {}
    list(run_cases(clinic(), coverage))
    assert {
        name: len(guard.branches) - len(coverage[name]) for name, guard in clinic().guards.items()
    } == dict.fromkeys(clinic().guards, 0)


def test_every_sentence_of_the_handbook_is_enforced_or_listed() -> None:
    assert [entry.sentence.text for entry in covered_sentences(clinic()) if entry.state == "uncovered"] == []
    assert clinic().stale == ()


@pytest.mark.parametrize("name", ["tau-airline/tau1", "tau-airline/tau2"])
def test_policies_of_the_airline_that_nothing_enforces_are_accepted_by_name(name: str) -> None:
    pack = load_pack(name)
    enforced = pack.guards.keys() | {rule.policy for rule in pack.book.rules}
    open_ones = {p.id for p in pack.policies.values() if p.kind in ("guard", "rule") and p.id not in enforced}
    assert open_ones == {p.id for p in pack.policies.values() if p.unenforced is not None}
    assert {"transfer-out-of-scope", "transfer-flown"} <= open_ones


@pytest.mark.parametrize(
    ("facts", "got"),
    [
        ('  facts: {"Order[O1]": {paid: true}}\n', "permit"),
        ('  facts: {"Order[O1]": {paid: false}}\n', "deny"),
        ('  facts: {"Order[O1]": null}\n', "deny"),
        ('  facts: {"Order[O2]": {paid: true}}\n', "undetermined"),
        ("", "undetermined"),
        ("  events:\n    - {call: get_order, args: {order_id: O1}, result: {paid: true}}\n", "permit"),
        ("  events:\n    - {call: get_order, args: {order_id: O1}, result: {error: O1 not found}}\n", "deny"),
        ("  events:\n    - {call: get_order, args: {order_id: O1}}\n", "undetermined"),
        ("  events:\n    - {user: I have paid}\n    - {agent: Thank you}\n", "undetermined"),
    ],
)
def test_a_case_is_judged_on_what_was_seen(facts: str, got: str, tmp_path: Path) -> None:
    for want in ("permit", "deny", "undetermined"):
        outcome = only(tmp_path / want, f"{CASE}{facts}  want: {want}\n")
        assert outcome.passed == (want == got)
        assert outcome.got.startswith(got)


@pytest.mark.parametrize(
    ("world", "verdict"),
    [
        ('  world: {"Order[O1]": {paid: true}}\n', "near_miss"),
        ('  world: {"Order[O1]": {paid: false}}\n', "violation"),
        ('  world: {"Order[O1]": null}\n', "violation"),
        ("", "uninformed"),
    ],
)
def test_a_world_settles_what_was_not_seen(world: str, verdict: str, tmp_path: Path) -> None:
    assert only(tmp_path / "facts", f"{CASE}{world}  want: {verdict}\n").passed
    assert only(tmp_path / "events", f"{CASE}  events: [{{user: hi}}]\n{world}  want: {verdict}\n").passed
    wanted = f"  want: {{strict: {verdict}, missing: ['Order[O1].paid']}}\n"
    assert only(tmp_path / "missing", CASE + world + wanted).passed
    assert not only(tmp_path / "wrong", CASE + world + wanted.replace("paid", "gift")).passed


def test_what_both_criteria_come_to_is_told_once(tmp_path: Path) -> None:
    world, wanted = '  world: {"Order[O1]": {paid: false}}\n', "  want: {strict: near_miss, determined: near_miss}\n"
    outcome = only(tmp_path, CASE + world + wanted)
    assert (outcome.passed, outcome.want) == (False, "near_miss")
    assert outcome.got.startswith("violation (")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CASE.replace("only-paid", "say-it") + "  want: permit\n", "`say-it` is not a policy with a guard"),
        (CASE.replace("{ship:", "{refund:") + "  want: permit\n", "policy `only-paid` does not bind `refund`"),
        (CASE.replace("O1}}", "O1}, refund: {}}"), "`call` must contain exactly one tool with its arguments"),
        (CASE + "  want: perhaps\n", "`perhaps` is not a possible outcome"),
        (CASE + "  want: {verdict: permit}\n", "`permit` is not a verdict"),
        (CASE + "  want: {outcome: permit}\n", "`want` has no `outcome`"),
        (CASE + "  now: noon\n  want: permit\n", "`noon` is not a time"),
        (CASE + '  facts: {"Ordr[O1]": {}}\n  want: permit\n', "`Ordr[O1]` is not an entity"),
        (CASE + '  facts: {"Order[O1, O2]": {}}\n  want: permit\n', "the key of `Order[O1, O2]` has 2 parts"),
        (CASE + '  facts: {"Order[]": {}}\n  want: permit\n', "the key of `Order[]` has 0 parts"),
        (CASE + '  facts: {"Order[O1]": {colour: red}}\n  want: permit\n', "`Order` has no field `colour`"),
        (CASE + "  events: [{call: get_order}, {}]\n  want: permit\n", "an event must be `user:`, `agent:` or `call:`"),
    ],
)
def test_a_case_that_makes_no_sense_is_said_to(text: str, said: str, tmp_path: Path) -> None:
    assert fault(tmp_path, text).startswith(f"BY407 cases/shop.yaml:1: {said}")


def test_a_guard_without_both_kinds_of_cases_is_named(tmp_path: Path) -> None:
    text = CASE + '  facts: {"Order[O1]": {paid: true}}\n  want: permit\n'
    pack = load(tmp_path, {"cases/shop.yaml": text})
    outcomes = [result for result in run_cases(pack, {}) if isinstance(result, CaseResult)]
    assert untested(outcomes, pack) == ["only-paid", "no-gifts"]


def test_a_default_counts_in_a_case(tmp_path: Path) -> None:
    entities = {
        "entities.yaml": FILES["entities.yaml"].replace("paid: boolean", 'paid: {type: boolean, default: "yes"}')
    }
    (found,) = run(tmp_path, CASE + '  facts: {"Order[O1]": {gift: true}}\n  want: permit\n', **entities)
    assert isinstance(found, CaseResult)
    assert found.passed


BOTH = """\
- note: paid
  policy: only-paid
  call: {ship: {order_id: O1}}
  facts: {"Order[O1]": {paid: true, gift: false}}
  want: permit
  but:
    - {facts: {"Order[O1]": {paid: false}}, want: deny}
    - {note: no such order, facts: {"Order[O1]": null}, want: deny}
    - {note: another order, call: {ship: {order_id: O2}}, want: undetermined}
"""


def test_a_case_may_be_varied(tmp_path: Path) -> None:
    found = run(tmp_path, BOTH)
    results = [each for each in found if isinstance(each, CaseResult)]
    assert [(each.note, each.got, each.passed) for each in results] == [
        ("paid", "permit", True),
        ("paid, varied", results[1].got, True),
        ("no such order", results[2].got, True),
        ("another order", results[3].got, True),
    ], found
    assert [each.place for each in results] == [f"cases/shop.yaml:{line}" for line in (1, 7, 8, 9)]


def test_a_variation_may_say_what_was_done_before_and_what_the_host_says(tmp_path: Path) -> None:
    guard = """\
def only_paid(call, facts):
    if facts.context.channel == "phone":
        return deny("not by phone")
    return permit() if done("refund", order_id=call.order_id) == 0 else deny("refunded")
"""
    code = {
        "guards/shop.py": guard + "\n\n" + FILES["guards/shop.py"].partition("\n\n\n")[2],
        "entities.yaml": FILES["entities.yaml"].replace("observations:", "context: {channel: string}\nobservations:"),
    }
    text = (
        CASE + "  context: {channel: chat}\n  but: [{done: [{refund: {order_id: O1}}]}, {context: {channel: phone}}]\n"
    )
    found = run(tmp_path, text, **code)
    assert [isinstance(each, CaseResult) and (each.got.split(" ")[0], each.passed) for each in found] == [
        ("permit", True),
        ("deny", True),
        ("deny", True),
    ]


def test_a_variation_says_what_it_wants_and_nothing_else_of_a_case(tmp_path: Path) -> None:
    left_out = BOTH.replace("{paid: false}}, want: deny", "{paid: false}}")
    told = run(tmp_path, left_out.replace("want: permit", "want: compliant"))[1]
    assert isinstance(told, BylawError)
    assert "has no expected result" in str(told)
    with pytest.raises(BylawError, match="policy"):
        run(tmp_path, BOTH.replace("{note: another order,", "{policy: another,"))


def test_what_only_users_tell_is_always_there(tmp_path: Path) -> None:
    entities = FILES["entities.yaml"].replace(
        "entities:\n", "entities:\n  Said: {key: [], fields: {why: {type: string, origin: user}}}\n", 1
    )
    guard = "def only_paid(call, facts):\n    return permit() if facts.Said.exists else deny('nobody')\n"
    guards = FILES["guards/shop.py"].replace("def only_paid", "def unused").partition("def no_gifts")
    code = {"guards/shop.py": guard + "\n\ndef no_gifts" + guards[2], "entities.yaml": entities}
    text = f"{CASE}  events: [{{user: hello}}]\n  want: compliant\n{CASE}  facts: {{Said: null}}\n  want: deny\n"
    found = run(tmp_path, f"{text}{CASE}  want: permit\n", **code)
    assert [isinstance(each, CaseResult) and each.passed for each in found] == [True] * 3, found
