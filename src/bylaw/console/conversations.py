"""The pages of conversations: all of them in a list, and one as a timeline."""
# pyright: basic, reportMissingImports=false

from starlette.responses import Response

from bylaw.audit.report.conversation import bounded
from bylaw.audit.report.overview import policies as stated_policies
from bylaw.audit.store import JsonRecord
from bylaw.console.app import shown
from bylaw.console.door import Refused
from bylaw.console.page import from_path, place_in
from bylaw.console.shown import finding_details
from bylaw.console.view import AuditPages
from bylaw.console.visitor import Asked

WINDOW = 400
"""Steps that one page shows."""
LISTED = 100
KINDS = {"flagged": "with findings", "compliant": "compliant", "unjudged": "nothing judged"}
FINDINGS = 60
"""The most findings of one conversation that are told beside it."""


class ConversationPages(AuditPages):
    section = "conversations"

    @shown("/conversations")
    def listed(self, asked: Asked) -> Response:
        query = asked.request.query_params
        agent, q = query.get("agent", "")[:300], query.get("q", "").replace("\0", "")[:300]
        kind, after = query.get("kind", ""), place_in(query.get("after", ""))
        index = self._view.standings().index
        rows = index.conversations(agent=agent, q=q, kind=kind, after=after, limit=LISTED + 1)
        agents: list[JsonRecord] = self._view.summary.get("agents") or []
        listed, logged = index.totals()[0], int(index.about("logged") or 0)
        return self._page(
            "conversations.html",
            asked,
            rows=rows[:LISTED],
            more=len(rows) > LISTED,
            after=after,
            size=LISTED,
            agent=agent,
            kind=kind,
            kinds=KINDS,
            audited=sum(each.get("trajectories", 0) for each in agents),
            listed=listed,
            logged=logged,
            agents=[each["agent"] for each in agents[:500]],
            q=q,
        )

    @shown("/c/{name:path}")
    def one(self, asked: Asked) -> Response:
        """One conversation, or a window of it."""
        index = self._view.standings().index
        row = index.conversation(from_path(asked.request.path_params["name"]))
        if row is None:
            raise Refused("there is no such conversation in this audit", status=404)
        whole = index.events(row)
        if whole is None:
            return self._page("conversation.html", asked, row=row, data=None, start=0, total=0, size=WINDOW)
        total = len(whole["events"])
        start = min(place_in(asked.request.query_params.get("from", "")), max(0, total - 1)) // WINDOW * WINDOW
        found = [finding_details(self._view, index, each) for each in index.of_conversation(row.name)[:FINDINGS]]
        spoken = {finding["step"] - start for finding in found}
        part = whole | {"events": whole["events"][start : start + WINDOW]}
        named = {policy["id"] for finding in found for policy in finding["policies"]}
        data = {
            "conversation": bounded(part, spoken),
            "from": start,
            "window": WINDOW,
            "total": total,
            "findings": found,
            "judged": index.calls(row.number),
            "policies": stated_policies({k: v for k, v in self._view.policies.items() if k in named}),
        }
        if data["conversation"] is None:
            # Even the shortest texts of these steps are too many for one page.
            data["conversation"] = bounded(part | {"events": [_brief(event) for event in part["events"]]}, set())
        return self._page("conversation.html", asked, row=row, data=data, start=start, total=total, size=WINDOW)


def _brief(event: JsonRecord) -> JsonRecord:
    if event["type"] == "call":
        return event | {"arguments": dict(list(event["arguments"].items())[:5])}
    return event | {"text": str(event["text"])[:200]}
