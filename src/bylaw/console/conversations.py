"""The pages of conversations: all of them in a list, and one as a timeline."""
# pyright: basic, reportMissingImports=false

from typing import Any

from starlette.responses import Response

from bylaw.audit.report.conversation import bounded, cut
from bylaw.audit.report.finding import call_details, rule_details, steps_of
from bylaw.audit.report.overview import policies as stated_policies
from bylaw.audit.store import CALLS, JsonRecord
from bylaw.console.app import shown
from bylaw.console.door import Asked, Refused
from bylaw.console.index.query import FindingRow, Index
from bylaw.console.page import from_path, place_in
from bylaw.console.view import AuditPages, View

WINDOW = 400
"""Steps that one page shows."""
LISTED = 100
KINDS = {"flagged": "with findings", "compliant": "compliant", "unjudged": "nothing judged"}
FINDINGS = 60
"""Findings of one conversation that are shown next to it."""
OTHERS = 12
"""Other findings of the same conversation that a finding links to."""


class ConversationPages(AuditPages):
    section = "conversations"

    @shown("/conversations")
    def listed(self, asked: Asked) -> Response:
        query = {"agent": asked.query.get("agent", "")[:300], "kind": asked.query.get("kind", "")}
        query["q"] = asked.query.get("q", "").replace("\0", "")[:300]
        after = place_in(asked.query.get("after", ""))
        index = self._view.standings().index
        rows = index.conversations(**query, after=after, limit=LISTED + 1)
        return self._page(
            "conversations.html",
            asked,
            rows=rows[:LISTED],
            more=len(rows) > LISTED,
            after=after,
            size=LISTED,
            query=query,
            kinds=KINDS,
            audited=self._view.conversations,
            listed=index.totals()[0],
            logged=int(index.about("logged") or 0),
            agents=[each["agent"] for each in self._view.summary["agents"][:500]],
        )

    @shown("/c/{name:path}")
    def one(self, asked: Asked) -> Response:
        """One conversation, or a window of it."""
        index = self._view.standings().index
        row = index.conversation(from_path(asked.path["name"]))
        if row is None:
            raise Refused("there is no such conversation in this audit", status=404)
        whole = index.events(row)
        total = len(whole["events"]) if whole is not None else 0
        start = min(place_in(asked.query.get("from", "")), max(0, total - 1)) // WINDOW * WINDOW
        data: JsonRecord | None = None
        if whole is not None:
            found = [finding_details(self._view, index, each) for each in index.of_conversation(row.name)[:FINDINGS]]
            part = whole | {"events": whole["events"][start : start + WINDOW]}
            shown = bounded(part, {finding["step"] - start for finding in found})
            # If even the shortest texts of these steps are too many for one page, they are cut.
            shown = shown or bounded(part | {"events": [_brief(event) for event in part["events"]]}, set())
            data = {
                "conversation": shown,
                "from": start,
                "window": WINDOW,
                "total": total,
                "findings": found,
                "judged": index.calls(row.number),
                "policies": _stated(self._view, found),
            }
        return self._page("conversation.html", asked, row=row, data=data, start=start, total=total, size=WINDOW)


def _brief(event: JsonRecord) -> JsonRecord:
    if event["type"] == "call":
        return event | {"arguments": dict(list(event["arguments"].items())[:5])}
    return event | {"text": str(event["text"])[:200]}


def _stated(view: View, found: list[JsonRecord]) -> Any:
    named = {policy["id"] for finding in found for policy in finding["policies"]}
    return stated_policies({name: policy for name, policy in view.policies.items() if name in named})


def finding_data(view: View, index: Index, row: FindingRow) -> JsonRecord:
    """One finding with its conversation, for `<bylaw-finding>`; bounded as in the static report."""
    finding = finding_details(view, index, row)
    whole = whole_conversation(index, row.conversation)
    others = [other for other in index.of_conversation(row.conversation) if other.id != row.id][:OTHERS]
    return {
        "finding": finding,
        "policy": row.policy,
        "conversation": bounded(whole, set(steps_of(finding))) if whole is not None else None,
        "policies": _stated(view, [finding]),
        "others": [{"id": other.id, "step": other.step, "verdict": other.verdict} for other in others],
        "out": view.out.resolve().name,
        "document": view.summary["citations"] == "text",
    }


def finding_details(view: View, index: Index, row: FindingRow) -> JsonRecord:
    """The details of a flagged call, a broken rule, or an undecided rule."""
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


def whole_conversation(index: Index, name: str) -> JsonRecord | None:
    """A conversation as the audit kept it, else as its log had it; None if neither was available."""
    row = index.conversation(name)
    return index.events(row) if row is not None else None


def sentence_of(view: View, policy: str, limit: int = 400) -> str:
    """A policy in the words of its document if it was given, else its definition."""
    stated: JsonRecord = view.policies.get(policy) or {}
    quotes: list[str] = [cite["text"].strip() for cite in stated.get("citations", ()) if cite.get("text")]
    quoted = next(iter(quotes), "")
    if quoted.endswith(":"):
        # The list that follows belongs to it.
        quoted += " " + "; ".join(quotes[1:])
    return cut(quoted or stated.get("definition", ""), limit)
