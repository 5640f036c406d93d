"""Counts that pages show are those of the findings one by one, however they are waived, known, attested or sought."""

import json
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bylaw.audit.attestation import Attestation
from bylaw.audit.baseline import compare_audits, read_baseline
from bylaw.audit.row import Finding
from bylaw.audit.store import Store
from bylaw.audit.waiver import read_waivers
from bylaw.console.index import Wanted, open_index
from bylaw.console.records import attest
from bylaw.console.view import Standings, seen_digest


class Everybody:
    """All conversations, whichever."""

    def __contains__(self, name: object) -> bool:
        return True


def waivers_of(dice: random.Random, findings: list[Finding]) -> str:
    """Waivers of every kind: of single findings, of policies, of a policy in some conversations, of agents."""
    sample = dice.sample(findings, 9)
    records: list[dict[str, Any]] = [
        {"finding": each.id, "verdicts": {charge.policy: charge.verdict for charge in each.charges}} for each in sample
    ]
    some = dice.sample(findings, 9)
    records += [{"policy": each.charges[0].policy, "agent": each.agent[:3] + "*"} for each in some[:4]]
    records += [{"policy": each.charges[0].policy, "trajectory": each.trajectory[:-1] + "*"} for each in some[4:8]]
    records += [{"policy": each.charges[0].policy, "tool": each.name} for each in some[8:]]
    dice.shuffle(records)
    ends = [{"owner": "o", "reason": dice.choice(["r", "false alarm: r"]), "expires": "2999-01-01"} for _ in records]
    return json.dumps({"waivers": [record | end for record, end in zip(records, ends, strict=True)]})


@pytest.mark.parametrize("seed", range(6))
def test_counts_by_cell_are_those_of_every_finding_by_itself(out: Path, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    findings = list(Store(out).findings())
    base = tmp_path / "earlier"
    shutil.copytree(out, base, ignore=shutil.ignore_patterns("console.db"))
    for name in ("calls.jsonl", "findings.jsonl"):
        kept = [line for line in (base / name).read_text().splitlines(keepends=True) if dice.random() < 0.5]
        (base / name).write_text("".join(line.replace('"executed":true', '"executed":false') for line in kept))
    waivers = tmp_path / "waivers.yaml"
    waivers.write_text(waivers_of(dice, findings))
    index = open_index(out)
    opened = index.findings(Wanted(state="open"), limit=10_000)
    attestations = tmp_path / "attestations.yaml"
    for row in dice.sample(opened, 2):
        seen = seen_digest(index, row)
        attest(attestations, [Attestation(row.id, "fine", "Mara", "2026-01-01", "seen it", seen=seen)])
    standings = Standings(index, waivers=waivers, attestations=attestations, base=base)
    standings.refresh()
    plain = compare_audits(out, Everybody(), baseline=read_baseline(base), waivers=read_waivers(waivers))
    every = [row for state in ("all", "refused") for row in index.findings(Wanted(state=state), limit=10_000)]
    by_state = {state: {row.id for row in every if row.state == state} for state in index.states(Wanted())}
    assert by_state["waived"] | by_state["false-alarm"] == {finding.id for finding, _ in plain.waived}
    assert by_state["new"] == {finding.id for finding in plain.new}
    assert by_state["still"] == {finding.id for finding in plain.still}
    assert by_state["refused"] >= {finding.id for finding in plain.refused}
    assert len(by_state["attested"]) == 2
    assert len(standings.fixed) + len(standings.gone) == len(plain.fixed)
    for finding, covering in plain.waived:
        assert standings.waivers_of(finding.id) == covering
    row = dice.choice(every)
    for wanted in (
        Wanted(state="all"),
        Wanted(state="all", agent=row.agent),
        Wanted(state="all", policy=row.policy, tool=row.tool),
        Wanted(state="all", q=row.conversation),
        Wanted(state="all", q="gold"),
        Wanted(state="all", q=f"gold {row.agent}"),
    ):
        shown = index.findings(wanted, limit=10_000)
        refused = index.findings(replace(wanted, state="refused"), limit=10_000)
        counts = {state: sum(each.state == state for each in (*shown, *refused)) for state in by_state}
        assert index.states(wanted) == counts
        assert index.verdicts(wanted) == Counter(each.verdict for each in shown)
        for state in by_state:
            of_state = Wanted(**{name: getattr(wanted, name) for name in ("agent", "policy", "tool", "q")}, state=state)
            assert {each.id for each in index.findings(of_state, limit=10_000)} == {
                each.id for each in (*shown, *refused) if each.state == state
            }
            counted = {reason.key: reason.findings for reason in index.reasons(of_state)}
            assert counted == Counter(each.reason for each in (*shown, *refused) if each.state == state)


def test_a_search_counts_anew_once_a_finding_is_waived(out: Path, tmp_path: Path) -> None:
    index = open_index(out)
    standings = Standings(index, waivers=tmp_path / "w.yaml", attestations=tmp_path / "a.yaml")
    standings.refresh()
    before = index.states(Wanted(q="gold"))
    row = index.findings(Wanted(q="gold"), limit=1)[0]
    entry = {
        "finding": row.id,
        "verdicts": standings.verdicts_of(row.id),
        "owner": "o",
        "reason": "r",
        "expires": "2999-01-01",
    }
    (tmp_path / "w.yaml").write_text(json.dumps({"waivers": [entry]}))
    standings.refresh()
    after = index.states(Wanted(q="gold"))
    assert (after["new"], after["waived"]) == (before["new"] - 1, before["waived"] + 1)


def test_more_searches_than_are_kept_can_be_made(out: Path) -> None:
    index = open_index(out)
    for _ in range(2):
        for q in ("gold", "hasty", "patient", "refund", "note", "visit", "plan"):
            shown = index.findings(Wanted(q=q, state="all"), limit=10_000)
            states = index.states(Wanted(q=q))
            assert len(shown) == sum(states.values()) - states["refused"]
