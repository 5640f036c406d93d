"""What the page shows of a whole audit: the summary and the policies, with every list and text bounded."""

import math
from typing import Any

from bylaw.audit.finding import SEVERITIES
from bylaw.audit.report.folder import Record, entries, record, text, whole_number
from bylaw.engine.pack import Criterion

ROWS = 400
"""The most rows of one chart or table."""
SKIPPED = 200
"""The most skipped records that are named; the rest is counted."""
RATES = ("violation_rate", "near_miss_rate", "near_miss_rate_of_writing")


def overview(summary: Record, criterion: Criterion) -> Record:
    """The numbers of `summary.json` that the page draws."""
    skipped = entries(summary.get("skipped"))

    def rows(value: Any, shape: Any) -> list[Record]:
        return [
            {"name": text(name)} | shape(record(entry), criterion) for name, entry in list(record(value).items())[:ROWS]
        ]

    return {
        "pack": {key: text(record(summary.get("pack")).get(key)) for key in ("name", "version", "digest", "title")},
        "criterion": criterion,
        "date": text(summary.get("date"), 40),
        "files": [text(name) for name in entries(summary.get("files"))[:ROWS]],
        "period": [text(record(summary.get("period")).get(end), 40) for end in ("from", "to")],
        "evidence": [_evidence(record(lookup)) for lookup in entries(summary.get("evidence"))[:ROWS]],
        "agents": [_agent(record(agent), criterion) for agent in entries(summary.get("agents"))[:ROWS]],
        "by_tool": rows(summary.get("by_tool"), _tool),
        "by_lookup": rows(summary.get("by_lookup"), _lookup),
        "by_policy": rows(summary.get("by_policy"), _policy),
        "by_rule": rows(summary.get("by_rule"), _rule),
        "by_reason": _counts(summary.get("by_reason")),
        "outcome_from": _words(summary.get("outcome_from")),
        "world": text(summary.get("world"), 40),
        "worlds": _notes(summary.get("worlds")),
        "citations": text(summary.get("citations"), 40),
        "unguarded_tools": [text(name) for name in entries(summary.get("unguarded_tools"))[:ROWS]],
        "unknown_tools": _notes(summary.get("unknown_tools")),
        "unmapped_fields": _notes(summary.get("unmapped_fields")),
        "stale_policies": _notes(summary.get("stale_policies")),
        "changed_policy": _notes(summary.get("changed_policy")),
        "skipped": [text(_reason(entry), 500) for entry in skipped[:SKIPPED]],
        "skipped_count": max(len(skipped), whole_number(summary.get("skipped_count")) or 0),
    }


def policies(document: Record) -> list[Record]:
    """The policies by id, with the sentences they cite."""
    kept: list[Record] = []
    for name, entry in list(document.items())[:2000]:
        policy = record(entry)
        kept.append(
            {
                "id": text(name),
                "definition": text(policy.get("definition"), 2000),
                "severity": text(policy.get("severity"), 40),
                "kind": text(policy.get("kind"), 40),
                "unenforced": text(policy.get("unenforced"), 400),
                "citations": [
                    {
                        "document": text(cite.get("document")),
                        "heading": text(cite.get("heading")),
                        "line": text(cite.get("line"), 40),
                        "text": text(cite.get("text"), 2000),
                    }
                    for cite in map(record, entries(policy.get("citations"))[:8])
                ],
            }
        )
    return kept


def _agent(agent: Record, criterion: Criterion) -> Record:
    rates = record(agent.get(criterion))
    return {
        "agent": text(agent.get("agent")),
        "trajectories": whole_number(agent.get("trajectories")),
        "with_write_calls": whole_number(agent.get("with_write_calls")),
        "outcome_known": whole_number(agent.get("outcome_known")),
        "failure_rate": _rate(agent.get("failure_rate")),
        "rule_rate": _rate(agent.get("rule_rate")),
        "rule_rates": _rates(agent.get("rule_rates")),
        "violation_rates": _rates(agent.get("violation_rates")),
        **{name: _rate(rates.get(name)) for name in RATES},
    }


def _rates(value: Any) -> list[Record | None]:
    """Rates by severity, the gravest first."""
    return [_rate(record(value).get(severity)) for severity in SEVERITIES]


def _evidence(lookup: Record) -> Record:
    counted = {name: _number(lookup.get(name)) for name in ("results", "captured", "readable", "shown")}
    return {
        "tool": text(lookup.get("tool")),
        "cures": [text(cure) for cure in entries(lookup.get("cures"))[:5]],
    } | counted


def _rate(value: Any) -> Record | None:
    rate = record(value)
    if not rate:
        return None
    return {key: _number(rate.get(key)) for key in ("value", "low", "high", "count", "of")}


def _number(value: Any) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return round(value, 6)


def _tool(entry: Record, criterion: Criterion) -> Record:
    counted = {name: _number(entry.get(name)) for name in ("calls", "executed")}
    return counted | {"verdicts": _counts(entry.get(criterion))}


def _lookup(entry: Record, criterion: Criterion) -> Record:
    return {"lacked": _number(entry.get(criterion)), "agents": _counts(entry.get("agents"))}


def _policy(entry: Record, criterion: Criterion) -> Record:
    counted = {name: _number(entry.get(name)) for name in ("applied", "could_deny")}
    return counted | {"verdicts": _counts(entry.get(criterion))}


def _rule(entry: Record, criterion: Criterion) -> Record:
    counted = {key: _number(entry.get(key)) for key in ("broken", "trajectories")}
    return {"severity": text(entry.get("severity"), 40), "agents": _counts(entry.get("agents")), **counted}


def _counts(value: Any) -> list[list[Any]]:
    """Pairs, not an object: a name like `__proto__` is then nothing special to the page."""
    return [[text(name), _number(count) or 0] for name, count in list(record(value).items())[:ROWS]]


def _notes(value: Any) -> list[str]:
    """A structure as one line for each of its entries."""
    if isinstance(value, dict):
        return [f"{text(name)}: {_words(entry)}" for name, entry in list(record(value).items())[:ROWS]]
    return [_words(entry) for entry in entries(value)[:ROWS]]


def _words(value: Any) -> str:
    """A small structure in one line."""
    if isinstance(value, dict):
        return text(", ".join(f"{text(name)}: {_words(entry)}" for name, entry in record(value).items()), 2000)
    if isinstance(value, list):
        return text(", ".join(_words(entry) for entry in entries(value)), 2000)
    return text(value, 2000)


def _reason(entry: Any) -> Any:
    fault = record(entry)
    if "place" in fault and ("why" in fault or "message" in fault):
        return f"{text(fault['place'])}: {text(fault.get('why', fault.get('message')))}"
    return entry
