"""Cases of rules, and cases told by events: what stands under `but`, and what it cannot mean."""

from pathlib import Path

import pytest

from bylaw.engine.session import Session
from bylaw.review.case import CaseResult, run_cases
from bylaw.review.check import check
from bylaw.trace import Call, Message, Result
from tests.policy.shop import FILES, faults, load

RULES = """\
predicates:
  change: {effect: write}
  agreed: {consented: told}
rules:
  - {id: say-it, formula: ALWAYS (change IMPLIES agreed)}
"""
POLICIES = FILES["policies.yaml"].replace("kind: conversation", "kind: rule")
TOOLS = FILES["tools.yaml"].replace("  ship:\n", '  ship:\n    put_as: "ship order {order_id}"\n')
CASE = """\
- note: told and agreed
  rule: say-it
  events:
    - agent: Shall I ship order O1?
    - user: Yes, please.
    - {call: ship, args: {order_id: O1}, result: {sent: O1}}
"""
ORDER = "{order_id: O1, paid: true, gift: false, owner: ann, state: open}"
LOOKED_UP = f"""\
- note: looked up
  policy: only-paid
  events:
    - user: Ship it.
    - {{call: get_order, args: {{order_id: O1}}, result: {ORDER}}}
  call: {{ship: {{order_id: O1}}}}
"""


def files(cases: str) -> dict[str, str]:
    return {"tools.yaml": TOOLS, "rules.yaml": RULES, "policies.yaml": POLICIES, "cases/shop.yaml": cases}


def run(root: Path, cases: str) -> list[tuple[str, str, str, bool]]:
    found = list(run_cases(load(root, files(cases)), {}))
    assert all(isinstance(each, CaseResult) for each in found), found
    return [(each.note, each.want, each.got, each.passed) for each in found if isinstance(each, CaseResult)]


@pytest.mark.parametrize(
    ("but", "want", "got"),
    [
        ("{user: 'No.'}", "broken", "broken"),
        ("{user: 'Yes, if it is free.', want: open}", "open", "open"),
        ("{agent: 'Shall I look it up?', user: 'Yes.', want: open}", "open", "open"),
        ("{agent: null, user: Ship it.}", "broken", "broken"),
        # Where no word of the user's is known, nobody can tell what they said.
        ("{user: null, want: open}", "open", "open"),
        ("{user: 'Yes, do it.', want: kept}", "kept", "kept"),
        ("{call: {ship: {order_id: O2}}, want: open}", "open", "open"),
        ("{events: [{user: Hello.}], want: kept}", "kept", "kept"),
        ("{events: [{user: Hello.}, {call: ship, args: {order_id: O1}, result: {sent: O1}}]}", "broken", "broken"),
    ],
)
def test_a_case_of_a_rule_is_kept_and_what_stands_under_but_breaks_it(
    but: str, want: str, got: str, tmp_path: Path
) -> None:
    assert run(tmp_path, f"{CASE}  but: {but}\n") == [
        ("told and agreed", "kept", "kept", True),
        ("told and agreed, varied", want, got, True),
    ]


def test_what_stands_under_but_goes_over_the_last_message_of_its_side(tmp_path: Path) -> None:
    talk = "    - agent: Good day.\n    - user: Hello.\n"
    longer = CASE.replace("  events:\n", f"  events:\n{talk}")
    found = run(tmp_path, f"{longer}  but:\n    - {{user: 'No.'}}\n    - {{agent: Shall I look it up?, want: open}}\n")
    assert [(want, got) for _, want, got, _ in found] == [("kept", "kept"), ("broken", "broken"), ("open", "open")]


def test_a_wrong_expectation_fails(tmp_path: Path) -> None:
    found = run(tmp_path, f"{CASE}  but: {{note: told twice, user: 'Yes, do it.'}}\n")
    assert [passed for *_, passed in found] == [True, False]


def test_what_broke_is_kept_under_but(tmp_path: Path) -> None:
    broken = CASE.replace("Yes, please.", "No.") + "  want: broken\n  but: {user: 'Yes, please.'}\n"
    assert [(want, got) for _, want, got, _ in run(tmp_path, broken)] == [("broken", "broken"), ("kept", "kept")]


def test_a_case_told_by_events_may_have_other_events(tmp_path: Path) -> None:
    unpaid = ORDER.replace("paid: true", "paid: false")
    but = f"""\
  but:
    - {{events: [{{call: get_order, args: {{order_id: O1}}, result: {unpaid}}}]}}
    - {{user: Ship it!, want: permit}}
    - {{call: {{ship: {{order_id: O2}}}}, want: undetermined}}
"""
    found = run(tmp_path, LOOKED_UP + but)
    assert [(got.split(" ")[0], passed) for _, _, got, passed in found] == [
        ("permit", True),
        ("deny", True),
        ("permit", True),
        ("undetermined", True),
    ]


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (
            f"{CASE}  but: {{facts: {{Order: {{}}}}}}\n",
            "BY408 cases/shop.yaml:7: a case of a rule has `events`, not `facts`",
        ),
        (
            f"{CASE}  but:\n    - {{call: {{refund: {{}}}}}}\n",
            "BY408 cases/shop.yaml:8: the case above has no call of `refund`",
        ),
        (
            f"{CASE}  but: {{events: [{{user: Hi}}], agent: Hi}}\n",
            "BY408 cases/shop.yaml:7: the case above has no agent message that this variation can change",
        ),
        (
            "- {policy: only-paid, facts: {Order: {paid: true}}, but: {user: Hi}}\n",
            "BY408 cases/shop.yaml:1: the case above has no user message that this variation can change",
        ),
    ],
)
def test_what_has_nothing_to_go_over_is_a_fault(case: str, said: str, tmp_path: Path) -> None:
    assert [fault for fault in faults(tmp_path, files(case)) if fault.startswith(said)]


def test_a_rule_is_not_told_by_facts(tmp_path: Path) -> None:
    (found,) = run_cases(load(tmp_path, files(CASE + "  facts: {Order: {paid: true}}\n")), {})
    assert str(found) == ("cases/shop.yaml:1: a rule case uses only `events`, not `facts`")


def test_a_case_of_a_rule_has_a_time_of_its_own(tmp_path: Path) -> None:
    rules = RULES.replace("agreed: {consented: told}", "late: {guard: early}").replace("agreed", "NOT late")
    guard = "def early(call, facts):\n    return permit() if now().hour < 12 else deny('late')\n"
    case = CASE + "  but: {now: 2025-01-01T13:00:00}\n"
    code = FILES["guards/shop.py"] + "\n\n" + guard
    policies = POLICIES + "  - {id: early, tools: [ship], spans: [Nothing is shipped to somebody else.]}\n"
    pack = load(tmp_path, {**files(case), "rules.yaml": rules, "guards/shop.py": code, "policies.yaml": policies})
    assert [isinstance(each, CaseResult) and each.got for each in run_cases(pack, {})] == ["kept", "broken"]


def test_a_case_that_passes_only_because_consent_is_undecided_is_named(tmp_path: Path) -> None:
    asked = CASE.replace("Shall I ship order O1?", "Is it fine if I ship it now?")
    report = check(load(tmp_path, files(asked)))
    assert not report.failed
    assert [case.place for case in report.undecided] == ["cases/shop.yaml:1"]
    assert not check(load(tmp_path / "asked", files(CASE))).undecided


def test_a_consent_sentence_that_can_never_match_is_named(tmp_path: Path) -> None:
    lacking = {"tools.yaml": TOOLS.replace("ship order {order_id}", "ship it")}
    (found,) = check(load(tmp_path, {**files(CASE), **lacking})).unmatched
    assert found == ("ship", "ship it", "the sentence does not contain `order_id`")
    spared = {"rules.yaml": RULES.replace("consented: told", "consented: told, need_not_be_told: [order_id]")}
    assert not check(load(tmp_path / "spared", {**files(CASE), **lacking, **spared})).unmatched


def test_a_finding_of_a_rule_says_what_was_not_looked_up_and_why_a_guard_denies(tmp_path: Path) -> None:
    rules = """\
predicates:
  gift: {tool: ship, when: facts.Order(act.arguments.order_id).gift}
  unpaid: {guard: only-paid}
rules:
  - {id: say-it, formula: ALWAYS NOT (gift OR unpaid)}
"""
    pack = load(tmp_path, {**files(CASE), "rules.yaml": rules, "cases/shop.yaml": "[]"})
    unseen = Session(pack)
    unseen.observe(Message("user", "Ship it.", 1))
    ship = Call("ship", {"order_id": "O1"}, turn=2)
    unseen.judge(ship)
    unseen.observe(ship)
    (found,) = unseen.settle()[-1].open_rules
    assert "not looked up: Order[O1].gift; not looked up: Order[O1].paid" in found.because
    unpaid = Session(pack)
    record = Result(1, '{"order_id": "O1", "paid": false, "gift": false}')
    look_up = Call("get_order", {"order_id": "O1"}, turn=2)
    unpaid.observe_all([Message("user", "Ship it.", 1), look_up, record, Call("ship", {"order_id": "O1"}, turn=3)])
    (broken,) = unpaid.findings()
    assert "the order is not paid" in broken.because
