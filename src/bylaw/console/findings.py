"""The pages for findings: the list of findings by reason, a single finding, and triage."""
# pyright: basic, reportMissingImports=false

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from msgspec.structs import replace
from starlette.responses import Response

from bylaw.audit.attestation import Attestation, read_attestations
from bylaw.audit.report.finding import call_details, cut, rule_details, steps_of
from bylaw.audit.report.page import bounded
from bylaw.audit.report.page import policies as stated_policies
from bylaw.audit.store import CALLS, JsonRecord
from bylaw.console.app import changed, shown
from bylaw.console.consents import consent_question
from bylaw.console.door import Asked, Refused
from bylaw.console.index.query import PAGE, FindingRow, Index, Wanted
from bylaw.console.pack_state import judged_by, keep_call_case, keep_rule_case
from bylaw.console.page import SETTLED, from_path, place_in
from bylaw.console.records import FALSE_ALARM, Written, attest, unwaive, waive
from bylaw.console.view import AuditPages, Standings, View, seen_digest
from bylaw.errors import UsageError
from bylaw.text.number import counted

WINDOW = 400
"""The maximum number of steps of a conversation on a page."""
LISTED = 100
"""The maximum number of conversations on a page."""
KINDS = {"flagged": "with findings", "compliant": "compliant", "unjudged": "nothing judged"}
FINDINGS = 60
"""The maximum number of findings to show next to their conversation."""
OTHERS = 12
"""The maximum number of links to further findings in the conversation."""


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
            logged=index.logged,
            agents=[each["agent"] for each in self._view.summary["agents"][:500]],
        )

    @shown("/c/{name:path}")
    def one(self, asked: Asked) -> Response:
        """Show a conversation or part of it."""
        index = self._view.standings().index
        row = index.conversation(from_path(asked.path["name"]))
        if row is None:
            raise Refused("this audit has no such conversation", status=404)
        whole = index.events(row)
        total = len(whole["events"]) if whole is not None else 0
        start = min(place_in(asked.query.get("from", "")), max(0, total - 1)) // WINDOW * WINDOW
        data: JsonRecord | None = None
        if whole is not None:
            found = [finding_details(self._view, index, each) for each in index.of_conversation(row.name)[:FINDINGS]]
            part = whole | {"events": whole["events"][start : start + WINDOW]}
            shown = bounded(part, {finding["step"] - start for finding in found})
            # If the messages do not fit even at the minimum length, shorten them further.
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
    """Return a finding and its conversation for the element `<bylaw-finding>`.

    The size limits are those of the static report.
    """
    finding = finding_details(view, index, row)
    whole = index.whole(row.conversation)
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


def sentence_of(view: View, policy: str, limit: int = 400) -> str:
    """Return the sentences that a policy cites. If the pack has no document, return the policy's definition."""
    stated: JsonRecord = view.policies.get(policy) or {}
    quotes: list[str] = [cite["text"].strip() for cite in stated.get("citations", ()) if cite.get("text")]
    quoted = next(iter(quotes), "")
    if quoted.endswith(":"):
        # Keep a list together with the sentence that introduces it.
        quoted += " " + "; ".join(quotes[1:])
    return cut(quoted or stated.get("definition", ""), limit)


AHEAD = timedelta(days=90)
"""The default duration of a waiver."""
BULK = 500
"""The maximum number of findings that can be decided with one form."""
WANTS = {"call": ("permit", "deny", "undetermined"), "rule": ("kept", "broken")}


class FindingPages(AuditPages):
    section = "findings"

    @shown("/findings")
    def listed(self, asked: Asked) -> Response:
        return self._listed(asked)

    def _listed(self, asked: Asked, written: Written | None = None) -> Response:
        query = asked.query
        wanted = Wanted.of(query.items())
        standings = self._view.standings(wanted.base)
        index = standings.index
        after = place_in(query.get("after", ""))
        members = index.findings(wanted, after=after) if wanted.reason else []
        reasons = index.reasons(wanted)
        if named := query.get("open"):
            row = index.finding(named)
        else:
            row = next(iter(members or ()), None) or index.first(wanted)
        return self._page(
            "findings.html",
            asked,
            fault=standings.fault,
            wanted=wanted,
            reasons=reasons,
            members=members,
            groups=grouped(members),
            after=after,
            size=PAGE,
            bulk=BULK,
            states=index.states(wanted),
            facets={name: index.facet(name, wanted) for name in ("verdict", "policy", "tool", "agent")},
            is_open=bool(named),
            decided_many=written,
            **self._detail(standings, row, queue=wanted),
        )

    @shown("/finding/{id:path}")
    def one(self, asked: Asked) -> Response:
        standings, row = self._found(asked)
        return self._page("finding.html", asked, **self._detail(standings, row))

    @changed("/finding/{id:path}/waive")
    def waive(self, asked: Asked) -> Response:
        """Waive one finding, or all findings of its policy."""
        given = asked.form
        return self._waived(asked, given.get("reason", ""), given.get("expires", ""), given.get("of") == "policy")

    @changed("/finding/{id:path}/false-alarm")
    def false_alarm(self, asked: Asked) -> Response:
        return self._waived(asked, _false_alarm(asked), asked.form.get("expires") or _default_expiry(), False)

    def _waived(self, asked: Asked, reason: str, expires: str, of_policy: bool) -> Response:
        standings, row = self._found(asked)
        for waiver in standings.waivers_of(row.id):
            # If the browser sends the form twice, create only one waiver.
            is_same = waiver.owner == asked.signed() and waiver.reason == reason
            if not is_same and (waiver.policy or not of_policy):
                words = f"{waiver.owner} already waived this finding until {waiver.expires}: {waiver.reason}"
                raise UsageError(words, hint="reload the page")
        if row.verdict == "inconclusive" and not of_policy:
            raise UsageError("an undecided call cannot be waived", hint="settle the call instead")
        what: JsonRecord = {"policy": row.policy}
        if not of_policy:
            what = {"finding": row.id, "verdicts": standings.verdicts_of(row.id)}
        following = self._following(asked, row)
        written = waive(self._view.waivers, [what], owner=asked.signed(), reason=reason, expires=expires)
        if of_policy:
            written = replace(written, told=self._view.standings(self._view.base).reach(row.policy))
        return self._after_change(asked, row, written, following)

    @changed("/findings/waive")
    def waive_many(self, asked: Asked) -> Response:
        standings, rows = self._picked(asked)
        taken = [row.id for row in rows if row.state not in ("new", "still") or standings.waivers_of(row.id)]
        if taken:
            words = f"{taken[0]} is already waived or cannot be waived"
            raise UsageError(words, hint="reload the page")
        reason = _false_alarm(asked) if asked.form.get("kind") == "false-alarm" else asked.form.get("reason", "")
        expires = asked.form.get("expires", "")
        what = [{"finding": row.id, "verdicts": standings.verdicts_of(row.id)} for row in rows]
        written = waive(self._view.waivers, what, owner=asked.signed(), reason=reason, expires=expires)
        return self._listed(asked, replace(written, told=f"{counted(len(rows), 'finding')} waived."))

    @changed("/finding/{id:path}/unwaive")
    def unwaive(self, asked: Asked) -> Response:
        standings, row = self._found(asked)
        asked.signed()
        covering = standings.waivers_of(row.id)
        if not covering:
            raise UsageError("the waiver was already removed", hint="reload the page")
        return self._after_change(asked, row, unwaive(self._view.waivers, covering[0]))

    @changed("/finding/{id:path}/case")
    def case(self, asked: Asked) -> Response:
        """Save a finding as a test case of the pack."""
        standings, row = self._found(asked)
        root = self._view.writable_root()
        if self._view.is_redacted:
            raise UsageError("a redacted audit has no values to create a case from")
        return self._after_change(asked, row, self._keep(root, standings, row, asked))

    @changed("/finding/{id:path}/attest")
    def attest(self, asked: Asked) -> Response:
        """Save a reviewer's answer about an undecided call."""
        standings, row = self._found(asked)
        rows = [row, *(each for each in _picked(standings, asked) if each.id != row.id)]
        following = self._following(asked, row)
        return self._after_change(asked, row, self._attested(standings, rows, asked), following, rows)

    @changed("/findings/attest")
    def attest_many(self, asked: Asked) -> Response:
        standings, rows = self._picked(asked)
        written = self._attested(standings, rows, asked)
        told = f"{counted(len(rows), 'call')} settled. The next audit will count them."
        return self._listed(asked, replace(written, told=told))

    def _attested(self, standings: Standings, rows: Sequence[FindingRow], asked: Asked) -> Written:
        if any(row.verdict != "inconclusive" for row in rows):
            raise UsageError("only undecided calls can be settled")
        answer, reason, by = asked.form.get("answer", ""), asked.text("reason", 500), asked.signed()
        if answer not in ("fine", "wrong"):
            raise UsageError("answer yes or no")
        if not reason:
            raise UsageError("enter a reason")
        today = datetime.now(UTC).date().isoformat()
        given: list[Attestation] = []
        for row in rows:
            seen = seen_digest(standings.index, row)
            if not seen:
                raise UsageError("this audit does not record what an answer would settle", hint="audit the logs again")
            given.append(Attestation(row.id, answer, by, today, reason, row.because[:300], row.policy, seen))
        return replace(attest(self._view.attestations, given), told="The next audit will count it.")

    def _picked(self, asked: Asked) -> tuple[Standings, list[FindingRow]]:
        """Return the findings that a form selects.

        A form that selects all findings with one reason also contains their number. Raise UsageError if that number
        has changed since the form was shown.
        """
        wanted = Wanted.of(asked.query.items())
        standings = self._view.standings(wanted.base)
        rows = _picked(standings, asked)
        if every := place_in(asked.form.get("every", "")):
            rows = standings.index.findings(wanted, limit=BULK + 1)
            if len(rows) != every or not wanted.reason:
                raise UsageError("the list has changed since you loaded the page", hint="reload the page")
        if not rows:
            raise UsageError("select at least one finding")
        return standings, rows

    def _queue(self, asked: Asked, row: FindingRow) -> Wanted | None:
        """Return the filters of the list that contains the form, or None if the form is on a finding's own page."""
        address = asked.form.get("queue")
        if address is None or not asked.is_part or row.state not in ("new", "still", "open"):
            return None
        return replace(Wanted.of(parse_qsl(address.partition("?")[2])), state=row.state)

    def _following(self, asked: Asked, row: FindingRow) -> FindingRow | None:
        queue = self._queue(asked, row)
        return self._view.standings(queue.base).index.following(queue, row) if queue is not None else None

    def _keep(self, root: Path, standings: Standings, row: FindingRow, asked: Asked) -> Written:
        line = standings.index.line(row)
        want = asked.form.get("want", "")
        kind = "rule" if row.verdict == "broken" else "call"
        if want not in WANTS[kind]:
            hint = f"use one of {', '.join(WANTS[kind])}"
            raise UsageError(f"`{want}` is not a possible result of this case", hint=hint)
        whole = standings.index.whole(row.conversation)
        events: list[JsonRecord] = whole["events"] if whole is not None else []
        if row.step >= len(events):
            raise UsageError("the conversation of this finding is not available")
        note = asked.form.get("note") or f"{row.conversation} step {row.step}: {row.because}"
        if kind == "rule":
            return keep_rule_case(root, line["rule"], events, row.step, want, note)
        policy = judged_by(line, row.policy)
        if policy is None:
            raise UsageError("no policy judged this call")
        return keep_call_case(root, policy, events, row.step, want, note)

    def _found(self, asked: Asked) -> tuple[Standings, FindingRow]:
        standings = self._view.standings(Wanted.of(asked.query.items()).base)
        row = standings.index.finding(asked.path["id"])
        if row is None:
            raise Refused("this audit has no such finding", status=404)
        return standings, row

    def _after_change(
        self,
        asked: Asked,
        row: FindingRow,
        written: Written,
        following: FindingRow | None = None,
        rows: Sequence[FindingRow] = (),
    ) -> Response:
        """Show what was changed and the finding's new state.

        If the finding was in a list, show the next finding instead.
        """
        queue = self._queue(asked, row)
        standings = self._view.standings(queue.base if queue is not None else self._view.base)
        now = standings.index.finding(row.id) or row
        if not asked.is_part:
            return self._page("finding.html", asked, written=written, **self._detail(standings, now))
        decided = {"ids": [each.id for each in rows or (row,)], "state": SETTLED.get(now.state, "")}
        asked.headers["hx-trigger"] = json.dumps({"decided": decided})
        coming = standings.index.finding(following.id) if following is not None else None
        if queue is not None and coming is not None and coming.state != row.state:
            # The change applies to the whole policy, so the next finding is decided too.
            coming = standings.index.following(queue, row)
        if queue is None or coming is None:
            return self._page("triage.html", asked, written=written, **self._detail(standings, now, queue=queue))
        left = standings.index.states(replace(queue, reason=""))[coming.state]
        asked.headers |= {"hx-retarget": "#detail", "hx-push-url": _address(queue, coming)}
        shown = self._detail(standings, coming, queue=queue)
        shown |= {"settled": now, "left": left, "reason": asked.text("reason", 500)}
        return self._page("finding_body.html", asked, file=written.path.name, why=written.told, **shown)

    def _detail(self, standings: Standings, row: FindingRow | None, *, queue: Wanted | None = None) -> dict[str, Any]:
        """Return the template values for a finding. `queue` contains the filters of the list."""
        days = {"ahead": _default_expiry(), "today": date.today().isoformat()}
        if row is None:
            return {"row": None} | days
        answers = read_attestations(self._view.attestations) if row.state == "attested" else {}
        data = finding_data(self._view, standings.index, row)
        consent = consent_question(standings.index, row)
        if consent is not None:
            # The form already shows the question, the answer and the call.
            data["finding"].pop("exchange", None)
        is_left = row.state in ("new", "still", "open")
        wanted = replace(queue or Wanted(), state=row.state)
        following = standings.index.following(wanted, row) if is_left else None
        return {
            "consent": consent,
            "queue": queue,
            "skip": _address(wanted, following) if following is not None else "",
            "settled": None,
            "reason": "",
            "row": row,
            "data": data,
            "sentence": sentence_of(self._view, row.policy),
            "waived_by": standings.waivers_of(row.id),
            "attested": answers.get(seen_digest(standings.index, row)) if answers else None,
            **days,
            "wants": WANTS["rule" if row.verdict == "broken" else "call"],
            "want": _default_want(row, standings.index.line(row)),
            "can_keep": self._view.own_root is not None and not self._view.is_redacted,
        }


def _address(queue: Wanted, row: FindingRow) -> str:
    return queue.address(reason=row.reason, open=row.id)


def _false_alarm(asked: Asked) -> str:
    if not asked.text("reason"):
        raise UsageError("enter why it is a false alarm")
    return FALSE_ALARM + asked.form["reason"]


def _picked(standings: Standings, asked: Asked) -> list[FindingRow]:
    """Return the calls that a form selects, and all other calls that depend on the same answers from the customer."""
    form, ids = asked.form, list[str]()
    for name, value in form.items():
        kind, _, number = name.partition("-")
        if kind == "pick" or (kind == "with" and f"pick-{number.partition('-')[0]}" in form):
            ids.append(value)
    rows = [row for each in ids if (row := standings.index.finding(each)) is not None]
    if len(rows) < len(ids):
        raise UsageError("a selected call is not in this audit", hint="reload the page")
    return rows


def grouped(rows: Sequence[FindingRow]) -> list[list[FindingRow]]:
    """Group the rows of a list: undecided consents that depend on the same customer answer form one group."""
    groups: dict[Any, list[FindingRow]] = {}
    for row in rows:
        groups.setdefault(row.exchange_key if row.state == "open" else row.number, []).append(row)
    return list(groups.values())


def _default_expiry() -> str:
    return (date.today() + AHEAD).isoformat()


def _default_want(row: FindingRow, line: JsonRecord) -> str:
    if row.verdict == "broken":
        return "broken"
    policy = judged_by(line, row.policy)
    return str(policy["evidence"]) if policy is not None else ""
