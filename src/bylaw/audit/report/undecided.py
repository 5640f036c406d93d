"""Undecided calls, for the report: counts by rule and reason, and the calls as work to do."""

from typing import Any

from bylaw.audit.counts import OPEN_REASONS
from bylaw.audit.report.text import cut
from bylaw.audit.store import CALLS, JsonRecord, Store
from bylaw.pack import Criterion

LISTED = 300
"""The most calls that are listed; the rest is counted."""


def undecided(store: Store, summary: JsonRecord, criterion: Criterion) -> JsonRecord:
    """Undecided rules, each with its reasons in words, and the undecided calls."""
    counted: JsonRecord = summary.get("open") or {}
    rules: JsonRecord = cut(counted.get("rules") or {})
    groups: list[list[Any]] = []
    for name, row in sorted(rules.items(), key=lambda item: -item[1]["calls"]):
        reasons = sorted(row["reasons"].items(), key=lambda item: -item[1])
        groups.append([name, row["calls"], [[OPEN_REASONS.get(reason, reason), count] for reason, count in reasons]])
    verdicts: JsonRecord = summary.get("verdicts") or {}
    if without := verdicts.get(criterion, JsonRecord()).get("inconclusive"):
        groups.append(["(guards)", without, [["a guard came to no verdict", without]]])
    calls = counted.get("calls", 0)
    return {"calls": calls, "rules": groups, "list": _listed(store, criterion) if calls else []}


def _listed(store: Store, criterion: Criterion) -> list[JsonRecord]:
    """The first of the executed calls, in the order of the logs."""
    found: list[JsonRecord] = []
    for _, call in store.places(CALLS):
        opened: list[JsonRecord] = call.get("open_rules") or []
        if call.get("executed") is False or not (opened or call[criterion] == "inconclusive"):
            continue
        if call[criterion] == "inconclusive":
            opened = [call, *(policy for policy in call["policies"] if policy[criterion] == "inconclusive"), *opened]
        why = "; ".join(dict.fromkeys(filter(None, (str(each.get("because") or "") for each in opened))))
        found.append(
            cut({"where": call["trajectory"], "step": call["step"], "tool": call["tool"], "because": why}, 500)
        )
        if len(found) == LISTED:
            break
    return found
