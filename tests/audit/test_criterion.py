"""An audit goes by one criterion: what was seen decides; or, where asked, every fact on the way was seen."""

import json
from pathlib import Path

import pytest

from bylaw.audit.baseline import compare_audits, read_baseline
from bylaw.audit.store import Store
from tests.audit.logs import Shop, call, look, record, ship, user
from tests.docs.walkthrough import run

REFUND = call("refund", {"order_id": "PAID", "amount": "1.00"}, id="r")
SPARED = (user("Please ship PAID."), look("PAID", paid=True, gift=False), REFUND, ship("PAID"))
"""Knows what decides, and no longer what the guard asks first: the refund may have changed it."""


@pytest.fixture
def both(shop: Shop) -> Shop:
    """A shop whose guard asks for a fact that cannot change its answer."""
    guard = shop.pack / "guards" / "shop.py"
    asked = "    order = facts.Order(call.order_id)\n    if order.gift and not order.paid:\n        return deny('no')\n"
    text = guard.read_text()
    guard.write_text(text.replace("only_paid(call, facts):\n", "only_paid(call, facts):\n" + asked))
    tools = shop.pack / "tools.yaml"
    tools.write_text(tools.read_text().rstrip() + "\n    changes: [Order.gift]\n")
    shop.logs(record(*SPARED, id="t1", agent="bot"))
    return shop


def audit(shop: Shop, *options: str) -> str:
    line = f"bylaw audit logs.jsonl --pack {shop.pack} --world world.json {' '.join(options)}"
    done = run(line, shop.root)
    assert done.returncode in (0, 1), done.stdout
    return f"{done.returncode}\n{done.stdout}"


def test_the_default_goes_by_what_decides_and_does_not_name_it(both: Shop) -> None:
    said = audit(both, "--fail-on", "near-miss", "--report")
    assert said.startswith("0\n")
    assert "strict" not in said
    assert "determined" not in said
    _, line = [json.loads(each) for each in (both.root / "out/calls.jsonl").read_text().splitlines()]
    assert (line["strict"], line["determined"]) == ("near_miss", "compliant")
    summary = json.loads((both.root / "out/summary.json").read_text())
    assert summary["criterion"] == "determined"
    assert summary["verdicts"] == {"strict": {"near_miss": 1, "compliant": 1}, "determined": {"compliant": 2}}
    assert summary["by_reason"]["stale"] == 0
    assert list(Store(both.root / "out").findings()) == []
    assert "\ncompliant\n" in run("bylaw explain out t1 5", both.root).stdout


def test_the_papers_criterion_is_asked_for_and_named(both: Shop) -> None:
    said = audit(both, "--criterion", "strict", "--fail-on", "near_miss", "--sarif", "s.sarif", "--junit", "j.xml")
    assert said.startswith("1\n")
    assert "[95% interval], strict\n" in said
    assert "by verdict, strict\n" in said
    summary = json.loads((both.root / "out/summary.json").read_text())
    assert summary["criterion"] == "strict"
    assert summary["by_reason"]["stale"] == 1
    assert summary["by_lookup"]["get_order"]["agents"] == {"bot": 1}
    assert [finding.verdict for finding in Store(both.root / "out").findings()] == ["near_miss"]
    assert len(json.loads((both.root / "s.sarif").read_text())["runs"][0]["results"]) == 1
    assert 'failures="1"' in (both.root / "j.xml").read_text()
    shown = run("bylaw explain out t1 5", both.root).stdout
    assert "near-miss" in shown
    assert "missing  Order[PAID].gift: stale" in shown


def test_a_pack_may_name_the_criterion_of_its_audits(both: Shop) -> None:
    manifest = both.pack / "pack.yaml"
    manifest.write_text(manifest.read_text() + "criterion: strict\n")
    assert "interval], strict\n" in audit(both)
    assert "strict" not in audit(both, "--criterion", "determined")


def test_a_baseline_is_compared_by_the_criterion_of_the_new_audit(both: Shop) -> None:
    audit(both, "--out", "old")
    audit(both, "--criterion", "strict")
    before = read_baseline(both.root / "old")
    found = compare_audits(both.root / "out", {"t1"}, baseline=before)
    assert (len(found.new), len(found.still)) == (0, 1)
    audit(both)
    found = compare_audits(both.root / "out", {"t1"}, baseline=before)
    assert (found.new, found.still, found.fixed) == ([], [], [])


def test_a_bare_want_speaks_of_the_packs_criterion(both: Shop, tmp_path: Path) -> None:
    case = (
        "- note: spared\n  policy: only-paid\n  call: {ship: {order_id: P}}\n"
        '  facts: {"Order[P]": {paid: true}}\n  world: {"Order[P]": {paid: true, gift: true}}\n  want: compliant\n'
    )
    cases = next((both.pack / "cases").glob("*.yaml"))
    cases.write_text(cases.read_text() + case)
    assert "spared" not in run(f"bylaw check {both.pack}", both.root).stdout
    manifest = both.pack / "pack.yaml"
    manifest.write_text(manifest.read_text() + "criterion: strict\n")
    shown = run(f"bylaw check {both.pack}", tmp_path).stdout
    assert "want compliant, got near_miss" in shown
