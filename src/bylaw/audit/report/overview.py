"""The summary and the policies for the page, with every list and text cut to size."""

from itertools import islice
from typing import Any, cast

from bylaw.audit.counts import OPEN_REASONS
from bylaw.audit.finding import SEVERITIES
from bylaw.audit.notes import limits
from bylaw.audit.report.conversation import cut
from bylaw.audit.store import CALLS, JsonRecord, Store
from bylaw.pack import CRITERIA, Criterion

UNDECIDED = 300
"""The most calls that are listed; the rest is counted."""
ROWS = 400
"""The most rows of one chart or table."""
SKIPPED = 200
"""The most skipped records that are named; the rest is counted."""


def overview(summary: JsonRecord, criterion: Criterion) -> JsonRecord:
    """The numbers of `summary.json` that the page draws."""
    shown: JsonRecord = cut(summary)
    period: JsonRecord = shown["period"] or {}
    return {
        "pack": shown["pack"],
        "criterion": criterion,
        **{name: shown[name] for name in ("date", "citations")},
        **{name: shown[name][:ROWS] for name in ("files", "evidence", "unguarded_tools")},
        "period": [period.get(end, "") for end in ("from", "to")],
        "agents": [_agent(agent, criterion) for agent in shown["agents"][:ROWS]],
        **{name: _rows(shown[name], criterion) for name in ("by_tool", "by_lookup", "by_policy", "by_rule")},
        "by_reason": _pairs(shown["by_reason"]),
        "limits": cut(list(limits(summary)), 600)[:ROWS],
        "skipped": [f"{each['place']}: {each['why']}" for each in shown["skipped"][:SKIPPED]],
        "skipped_count": len(shown["skipped"]),
    }


def policies(document: JsonRecord) -> list[JsonRecord]:
    """The policies by id, with the sentences they cite."""
    told: JsonRecord = cut(document)
    return [
        {"id": name, "unenforced": "", **policy, "citations": policy["citations"][:8]}
        for name, policy in islice(told.items(), 2000)
    ]


def _agent(agent: JsonRecord, criterion: Criterion) -> JsonRecord:
    """An agent's rates, those by severity as a list with the gravest first."""
    shown = {name: value for name, value in agent.items() if name not in CRITERIA} | agent[criterion]
    by_severity: dict[str, JsonRecord] = {name: agent.get(name, {}) for name in ("rule_rates", "violation_rates")}
    return shown | {name: [rates.get(each) for each in SEVERITIES] for name, rates in by_severity.items()}


def _rows(table: JsonRecord, criterion: Criterion) -> list[JsonRecord]:
    """A table by name as rows, its counts by verdict or by agent as pairs."""
    rows: list[JsonRecord] = []
    for name, entry in islice(table.items(), ROWS):
        row: JsonRecord = {"name": name} | {
            key: each for key, each in entry.items() if not isinstance(each, dict | list)
        }
        if "agents" in entry:
            row["agents"] = _pairs(entry["agents"])
        if isinstance(found := entry.get(criterion), dict):
            row["verdicts"] = _pairs(cast(JsonRecord, found))
        rows.append(row | {"lacked": found})
    return rows


def _pairs(counts: JsonRecord) -> list[list[Any]]:
    """Pairs, not an object: a name such as `__proto__` must not be special to the page."""
    return [[name, count] for name, count in islice(counts.items(), ROWS)]


def undecided(store: Store, summary: JsonRecord, criterion: Criterion) -> JsonRecord:
    """Undecided rules, each with its reasons in words, and the undecided calls."""
    counted: JsonRecord = summary["open"]
    rules: JsonRecord = cut(counted["rules"])
    groups: list[list[Any]] = []
    for name, row in sorted(rules.items(), key=lambda item: -item[1]["calls"]):
        reasons = sorted(row["reasons"].items(), key=lambda item: -item[1])
        groups.append([name, row["calls"], [[OPEN_REASONS.get(reason, reason), count] for reason, count in reasons]])
    if without := summary["verdicts"][criterion].get("inconclusive"):
        groups.append(["(guards)", without, [["a guard came to no verdict", without]]])
    calls = counted["calls"]
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
        if len(found) == UNDECIDED:
            break
    return found
