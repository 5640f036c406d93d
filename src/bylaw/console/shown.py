"""What the elements of a page are fed: a finding with its conversation, bounded as in the static report."""

from bylaw.audit.report.conversation import bounded
from bylaw.audit.report.finding import call_details, rule_details, steps_of
from bylaw.audit.report.overview import policies as stated_policies
from bylaw.audit.report.text import cut
from bylaw.audit.store import CALLS, JsonRecord
from bylaw.console.index.query import FindingRow, Index
from bylaw.console.view import View

OTHERS = 12
"""Other findings of the same conversation that are named."""


def finding_data(view: View, index: Index, row: FindingRow) -> JsonRecord:
    """One finding, for `<bylaw-finding>`."""
    finding = finding_details(view, index, row)
    named = {policy["id"] for policy in finding["policies"]}
    stated = {name: policy for name, policy in view.policies.items() if name in named}
    others = [other for other in index.of_conversation(row.conversation) if other.id != row.id][:OTHERS]
    return {
        "finding": finding,
        "policy": row.policy,
        "conversation": conversation_data(index, row.conversation, set(steps_of(finding))),
        "policies": stated_policies(stated),
        "others": [{"id": other.id, "step": other.step, "verdict": other.verdict} for other in others],
        "out": view.out.resolve().name,
        "document": view.summary.get("citations") == "text",
    }


def finding_details(view: View, index: Index, row: FindingRow) -> JsonRecord:
    """What is shown of a flagged call, a broken rule, or a rule that is open."""
    line = index.line(row)
    if row.file != CALLS:
        return rule_details(line, view.policies) | {"finding": row.id}
    details: JsonRecord = call_details(line, view.criterion) | {"finding": row.id}
    opened: list[JsonRecord] = (line.get("open_rules") or []) if row.verdict == "inconclusive" else []
    if not opened:
        return details
    head = {"finding": row.id, "trajectory": line["trajectory"], "agent": line["agent"]}
    rules = [rule_details(rule | head, view.policies) for rule in opened]
    undecided = [policy | {"verdict": "inconclusive"} for rule in rules for policy in rule["policies"]]
    if line[view.criterion] == "inconclusive":
        return details | {"policies": details["policies"] + undecided}
    return rules[0] | {"verdict": "inconclusive", "policies": undecided, "openRule": opened[0]["rule"]}


def conversation_data(index: Index, name: str, steps: set[int]) -> JsonRecord | None:
    """A conversation with every text cut to size; None where it was not kept and the logs are not there."""
    whole = whole_conversation(index, name)
    return bounded(whole, steps) if whole is not None else None


def whole_conversation(index: Index, name: str) -> JsonRecord | None:
    """A conversation as the audit kept it, else as its log had it; None where neither was at hand."""
    row = index.conversation(name)
    return index.events(row) if row is not None else None


def sentence_of(view: View, policy: str, limit: int = 400) -> str:
    """What a policy says, in the words of its document where they are at hand."""
    stated: JsonRecord = view.policies.get(policy) or {}
    quotes: list[str] = [cite["text"].strip() for cite in stated.get("citations", ()) if cite.get("text")]
    # What ends in a colon says nothing without the list that follows.
    quoted = next(iter(quotes), "")
    if quoted.endswith(":"):
        quoted += " " + "; ".join(quotes[1:])
    return cut(quoted or stated.get("definition", ""), limit)
