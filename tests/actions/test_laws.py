"""What holds of every call of a generic tool: live as in an audit, refused as a whole, seen by the next."""

import pytest

from bylaw import Shield, verdicts
from bylaw.pack import Pack
from tests.actions.desk import CHECKOUT, FILES, acts, audited, page
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
        decision = session.decide("browser_type", {"target": "e6", "text": "x", "submit": True})
        assert [name for name, _ in acts(decision)] == ["fill_in", "place_order"]
        assert decision.answer == "deny"
        assert decision.card is None
        assert "a call that does only that" in decision.feedback


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
