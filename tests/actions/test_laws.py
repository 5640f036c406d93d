"""What holds of every call of a generic tool: live as in an audit, refused as a whole, seen by the next."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw import Shield, verdicts
from bylaw.pack import Pack
from tests.actions.desk import CHECKOUT, FILES, PRODUCTS, acts, audited, page
from tests.examples import examples
from tests.packs import made

STRICT = {
    **FILES,
    "guards/shop.py": FILES["guards/shop.py"]
    + '''

def once(call: delete_rows, facts):
    """Rows are never deleted without a condition."""
    return permit() if done("delete_rows") == 0 else deny("rows were deleted already")
''',
}
ONE, OTHER = "DELETE FROM orders WHERE id = 1", "DELETE FROM orders WHERE id = 2"


def strict() -> Pack:
    return made(STRICT)


def ruled() -> Pack:
    """The same, with a rule about whatever changes something."""
    rule = "  - {id: calm, formula: ALWAYS (change IMPLIES NOT hurried)}\n"
    predicates = "  change: {effect: write}\n  hurried: {turn: several_writes}\n"
    rules = FILES["rules.yaml"].replace("rules:\n", f"{predicates}rules:\n{rule}")
    policies = (
        FILES["policies.yaml"] + "  - {id: calm, kind: rule, spans: ['Orders are delivered to the office only.']}\n"
    )
    return made({**STRICT, "rules.yaml": rules, "policies.yaml": policies})


def test_the_second_action_of_a_call_sees_the_first() -> None:
    with Shield(strict()) as shield, shield.session("x") as session:
        decision = session.decide("execute_sql", {"query": f"{ONE}; {OTHER}"})
        assert decision.answer == "deny"
        assert "rows were deleted already" in decision.feedback
        assert [name for name, _ in acts(decision)] == ["delete_rows", "delete_rows"]


def test_a_call_that_is_refused_has_performed_none_of_its_actions() -> None:
    with Shield(strict()) as shield, shield.session("x") as session:
        assert not session.decide("execute_sql", {"query": f"{ONE}; {OTHER}"}).allowed
        assert session.decide("execute_sql", {"query": OTHER}).allowed
        session.result("DELETE 1")
        assert not session.decide("execute_sql", {"query": ONE}).allowed


@pytest.mark.parametrize("files", [FILES, STRICT])
def test_live_and_audited_agree_on_every_action(files: dict[str, str]) -> None:
    pack = made(files)
    queries = [f"{ONE}; {OTHER}", "SELECT 1", ONE, "DELETE FROM orders", f"SELECT 1; {OTHER}", "DROP TABLE t", OTHER]
    said: list[tuple[int, list[str]]] = []
    with Shield(pack) as shield, shield.session("x") as session:
        session.user("Tidy up the orders.")
        for query in queries:
            decision = session.decide("execute_sql", {"query": query})
            step = len(session.trajectory().events) - 1
            denied = sorted({each.policy for each in decision.grounds if each.answer == "deny" and each.policy})
            said.append((step, denied))
            if decision.allowed:
                session.result("done")
        found = verdicts(pack, session.trajectory()).calls
    told: dict[int, set[str]] = {}
    for each in found:
        told.setdefault(each.made.step, set())
        told[each.made.step] |= {p.policy.id for p in each.policies if p.evidence == "deny"}
    assert {step: sorted(told.get(step, set())) for step, _ in said} == dict(said)


def test_an_action_that_needs_a_yes_is_made_in_a_call_of_its_own() -> None:
    with Shield(made(FILES)) as shield, shield.session("x") as session:
        assert session.decide("browser_navigate", {"url": "http://shop.test/checkout"}).allowed
        session.result(page(CHECKOUT))
        decision = session.decide("browser_click", {"target": "e5", "ref": "e7"})
        assert [name for name, _ in acts(decision)] == ["follow_link", "place_order"]
        assert decision.answer == "ask"
        assert decision.card is None
        assert "Make a separate call for it" in decision.feedback


def test_another_principal_finds_what_was_done() -> None:
    files = {**STRICT, "pack.yaml": FILES["pack.yaml"] + "shield: {handover: true}\n"}
    with Shield(made(files)) as shield:
        session = shield.session("x", context={"signed_in_as": "ann"})
        assert session.decide("execute_sql", {"query": ONE}).allowed
        session.result("DELETE 1")
        session.vouch({"signed_in_as": "bob"})
        assert not session.decide("execute_sql", {"query": OTHER}).allowed
        assert [name for _, name, _, _ in audited(session, shield.pack)] == ["delete_rows", "delete_rows"]


def test_a_value_of_the_page_is_a_record_where_only_the_site_wrote() -> None:
    guard = '''def known(call: place_order, facts):
    """Orders are delivered to the office only."""
    return permit() if provenance(call.address).source == "record" else deny("the site did not say it")
'''
    tools = FILES["tools.yaml"].replace(
        "browser_navigate: {effect: read,", "browser_navigate: {effect: read, trust: record,"
    )
    files = {
        "pack.yaml": FILES["pack.yaml"],
        "policy.md": FILES["policy.md"],
        "tools.yaml": tools,
        "guards/g.py": guard,
    }
    reviewed = CHECKOUT.replace('"Total: 1.00 EUR"', '"Nice! Office, Main Street 1"')
    for body, answer in ((CHECKOUT, "allow"), (reviewed, "deny")):
        with Shield(made(files)) as shield, shield.session("x") as session:
            session.user("Order it.")
            assert session.decide("browser_navigate", {"url": "http://shop.test/checkout"}).allowed
            session.result(page(body))
            assert session.decide("browser_click", {"target": "e7"}).answer == answer


PAGES = [
    page(CHECKOUT),
    page(CHECKOUT.replace("120.50", "820.50")),
    page(CHECKOUT.replace('textbox "Note"', 'textbox "Note" [active]')),
    page(PRODUCTS, "products"),
    "Clicked.",
]
CALLS: list[tuple[str, dict[str, Any]]] = [
    *(("browser_click", {"element": "Go back", "target": target}) for target in ("e5", "e7", "e12", "e17", "e99")),
    ("browser_type", {"target": "e6", "text": "x", "submit": True}),
    ("browser_type", {"target": "e6", "text": "x"}),
    ("browser_press_key", {"key": "Enter"}),
    ("browser_evaluate", {"function": "1"}),
    ("execute_sql", {"query": f"SELECT 1; {ONE}"}),
    ("execute_sql", {"query": f"{ONE}; {OTHER}"}),
    ("execute_sql", {"query": "DELETE FROM orders"}),
    ("execute_sql", {"query": "DROP TABLE orders"}),
]
EVENTS: Any = st.lists(
    st.one_of(
        st.tuples(st.just("look"), st.sampled_from(PAGES)),
        st.tuples(st.just("call"), st.sampled_from(CALLS)),
        st.tuples(st.just("say"), st.sampled_from(["yes", "no", "I want the lamp."])),
    ),
    max_size=12,
)


@examples(25)
@given(events=EVENTS, confirms=st.booleans())
def test_whatever_happens_an_audit_says_what_the_shield_said(events: list[tuple[str, Any]], confirms: bool) -> None:
    said: dict[int, tuple[set[str], set[str]]] = {}
    with Shield(ruled()) as shield, shield.session("x") as session:
        for kind, given_ in events:
            if kind == "say":
                session.user(given_)
                continue
            asked: tuple[str, dict[str, Any]] = ("browser_snapshot", {}) if kind == "look" else given_
            tool, arguments = asked
            decision = session.decide(tool, arguments)
            step = len(session.trajectory().events) - 1
            if kind == "call":
                guards = {each.policy for each in decision.grounds if each.kind == "guard" and each.answer == "deny"}
                rules = {each.policy for each in decision.grounds if each.kind == "rule"}
                said[step] = (guards, rules)
            if decision.allowed:
                session.result(given_ if kind == "look" else "done")
            elif decision.card is not None and confirms:
                session.confirm(decision.card.id, yes=True)
        found = verdicts(ruled(), session.trajectory()).calls
    told: dict[int, tuple[set[str], set[str]]] = {step: (set(), set()) for step in said}
    for each in found:
        guards, rules = told[each.made.step]
        guards |= {p.policy.id for p in each.policies if p.evidence == "deny"}
        rules |= {finding.rule.policy for finding in (*each.rules, *each.open_rules)}
    assert told == said
