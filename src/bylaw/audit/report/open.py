"""What code left open, for the report: counts by rule and reason, and the calls as work to do."""

from typing import Any

from bylaw.audit.open_rule import OPEN_REASONS
from bylaw.audit.report.text import cut
from bylaw.audit.store import JsonRecord, Store

LISTED = 300
"""The most calls that are listed; the rest is counted."""


def open_rules(folder: Store, summary: JsonRecord) -> JsonRecord:
    """Rules that are open, each with its reasons in words, and the calls they are open at."""
    counted: JsonRecord = summary.get("open") or {}
    rules: JsonRecord = cut(counted.get("rules") or {})
    groups: list[list[Any]] = []
    for name, row in sorted(rules.items(), key=lambda item: -item[1]["calls"]):
        reasons = sorted(row["reasons"].items(), key=lambda item: -item[1])
        groups.append([name, row["calls"], [[OPEN_REASONS.get(reason, reason), count] for reason, count in reasons]])
    calls = counted.get("calls", 0)
    return {"calls": calls, "rules": groups, "list": _listed(folder) if calls else []}


def _listed(folder: Store) -> list[JsonRecord]:
    """The first of the calls that were made, in the order of the logs."""
    found: list[JsonRecord] = []
    for _, call in folder.places("calls.jsonl"):
        if call.get("executed") is False or not call.get("open_rules"):
            continue
        why = "; ".join(dict.fromkeys(str(each.get("because", "")) for each in call["open_rules"]))
        found.append(
            cut({"where": call["trajectory"], "step": call["step"], "tool": call["tool"], "because": why}, 500)
        )
        if len(found) == LISTED:
            break
    return found
