"""The overview: one sentence first, the gravest finding, then policies, agents, the trend, and what was not seen."""
# pyright: basic, reportMissingImports=false

from datetime import date
from typing import Any

from msgspec import Struct
from starlette.responses import Response

from bylaw.audit.finding import severity_rank
from bylaw.audit.report.overview import overview
from bylaw.audit.report.overview import policies as stated_policies
from bylaw.audit.report.text import cut
from bylaw.audit.store import JsonRecord
from bylaw.console.app import shown
from bylaw.console.conversations import finding_data, sentence_of
from bylaw.console.door import Asked
from bylaw.console.index import Index, Wanted
from bylaw.console.page import times
from bylaw.console.view import AuditPages, View, read_summary

TREND = 12
"""Audits that the trend shows at most, the latest ones."""
_KINDS = {
    "violation": ("violation", "violations"),
    "near_miss": ("near-miss", "near-misses"),
    "broken": ("broken rule", "broken rules"),
    "uninformed": ("uninformed call", "uninformed calls"),
}


class PolicyRow(Struct, frozen=True):
    id: str
    severity: str
    kind: str
    sentence: str
    states: dict[str, int]
    verdicts: dict[str, int]
    """New findings, by the verdict of this policy."""

    @property
    def rank(self) -> tuple[int, ...]:
        """Small comes first: new violations, then new near-misses, by severity and number."""
        wrong = self.verdicts.get("violation", 0) + self.verdicts.get("broken", 0)
        near, total = self.verdicts.get("near_miss", 0), sum(self.states.values())
        return (0 if wrong else 1 if near else 2, severity_rank(self.severity), -wrong, -near, -total)


class TrendPoint(Struct, frozen=True):
    name: str
    date: str
    conversations: int
    violation: float | None
    near_miss: float | None
    is_this: bool


class OverviewPages(AuditPages):
    section = "overview"

    @shown("/")
    def first(self, asked: Asked) -> Response:
        """The overview, against an earlier audit or by itself."""
        wanted = Wanted.of(asked.query.items())
        view = self._view
        base = wanted.base or view.base
        standings = view.standings(base)
        index = standings.index
        led = next(iter(index.findings(Wanted(base=wanted.base), limit=1)), None)
        return self._page(
            "overview.html",
            asked,
            wanted=Wanted(base=wanted.base),
            sentence=self._sentence(index, base),
            about=self._about(),
            states=index.states(Wanted()),
            verdicts=index.verdicts(Wanted()),
            first=led,
            led=finding_data(view, index, led) if led is not None else None,
            rows=self._policies(index),
            chart={"overview": overview(view.summary, view.criterion), "policies": stated_policies(view.policies)},
            trend=trend(view),
            unseen=unseen(view.summary, index),
            fault=standings.fault,
            base=base,
        )

    @shown("/compare")
    def compared(self, asked: Asked) -> Response:
        """The comparison with one earlier audit, or the choice of one."""
        view = self._view
        base = Wanted.of(asked.query.items()).base or view.base
        bases = [(name, str(read_summary(path).get("date", ""))) for name, path in view.bases.items()]
        latest = sorted(bases, key=lambda each: (each[1], each[0]), reverse=True)
        if not base:
            return self._page("compare.html", asked, section="compare", base=base, bases=latest, states={}, reasons=[])
        standings = view.standings(base)
        index = standings.index
        return self._page(
            "compare.html",
            asked,
            section="compare",
            base=base,
            bases=latest,
            states=index.states(Wanted()),
            reasons=index.reasons(Wanted()),
            wanted=Wanted(base=base),
            fixed=standings.fixed,
            gone=standings.gone,
        )

    def _sentence(self, index: Index, base: str) -> str:
        """What there is to know, in one sentence."""
        new = index.verdicts(Wanted())
        word = "new " if base else ""
        told = [
            times(new[kind], f"{word}{one}", f"{word}{many}") for kind, (one, many) in _KINDS.items() if new.get(kind)
        ]
        if not told:
            opened = index.states(Wanted())["open"]
            rest = f"; {times(opened, 'undecided call')}" if opened else ""
            return f"Nothing new{_since(self._view, base)}{rest}."
        policies = len(index.verdicts_by_policy())
        listed = ", ".join(told[:-1]) + (" and " if len(told) > 1 else "") + told[-1]
        return f"{listed}{_since(self._view, base)}, under {times(policies, 'policy', 'policies')}."

    def _about(self) -> str:
        summary = self._view.summary
        said = times(self._view.conversations, "conversation")
        if day := summary.get("date"):
            said += f", audited on {day}"
        files: list[str] = summary.get("files") or []
        if files:
            said += f" from {cut(files[0], 60)}" + (f" and {len(files) - 1} more" if len(files) > 1 else "")
        return said

    def _policies(self, index: Index) -> list[PolicyRow]:
        verdicts = index.verdicts_by_policy()
        found = [
            PolicyRow(
                name,
                str(stated.get("severity", "")) if (stated := self._view.policies.get(name) or {}) else "",
                str(stated.get("kind", "")),
                sentence_of(self._view, name, 160),
                states,
                verdicts.get(name, {}),
            )
            for name, states in index.by_policy().items()
        ]
        return sorted(found, key=lambda row: row.rank)


def _since(view: View, base: str) -> str:
    if not base:
        return ""
    day = str(read_summary(view.bases[base]).get("date", ""))
    try:
        then = date.fromisoformat(day)
    except ValueError:
        return f" since {base}"
    return f" since {then:%A}" if 0 < (date.today() - then).days < 7 else f" since {then.isoformat()}"


def trend(view: View) -> list[TrendPoint]:
    """The audits that lie beside this one, and this one, by their day."""
    found = [(name, read_summary(path), False) for name, path in view.bases.items()]
    found.append((view.out.resolve().name, view.summary, True))
    points = [_point(name, summary, is_this, view) for name, summary, is_this in found if summary]
    return sorted(points, key=lambda point: (point.date, point.is_this))[-TREND:]


def _point(name: str, summary: JsonRecord, is_this: bool, view: View) -> TrendPoint:
    verdicts: dict[str, int] = (summary.get("verdicts") or {}).get(view.criterion) or {}
    calls = sum(verdicts.values())
    agents: list[JsonRecord] = summary.get("agents") or []
    shares = [verdicts.get(kind, 0) / calls if calls else None for kind in ("violation", "near_miss")]
    conversations = sum(agent.get("trajectories", 0) for agent in agents)
    return TrendPoint(name, str(summary.get("date", "")), conversations, shares[0], shares[1], is_this)


def unseen(summary: JsonRecord, index: Index) -> list[tuple[str, str]]:
    """What the audit could not see, in words."""
    worlds = {
        "snapshot": "The database, replayed after each write.",
        "hindsight": "No database: later results in the same conversation.",
        "none": "No database, and later results were not used.",
    }
    found: list[tuple[str, str]] = [("Ground truth", worlds.get(str(summary.get("world")), "Not recorded."))]
    if opened := index.states(Wanted())["open"]:
        found.append(("Undecided", f"{times(opened, 'call')} to review, not counted as violations."))
    lists: list[tuple[str, str]] = [
        ("Tools without a guard", "unguarded_tools"),
        ("Tools unknown to the pack", "unknown_tools"),
        ("Policies whose sentences changed", "stale_policies"),
        ("Unsigned policies", "unreviewed_policies"),
    ]
    for title, key in lists:
        names: list[Any] = list(summary.get(key) or ())
        if names:
            more = f" and {len(names) - 8} more" if len(names) > 8 else ""
            found.append((title, ", ".join(cut(str(name), 60) for name in names[:8]) + more))
    if summary.get("citations") not in ("text", None):
        found.append(("Policy text", "The document was not given: policies are cited by heading and line."))
    if not summary.get("outcome_from"):
        found.append(("Outcomes", "The conversations have no recorded outcome."))
    if skipped := len(summary.get("skipped") or ()):
        found.append(("Unreadable records", f"{times(skipped, 'record')}, never counted as compliant."))
    return found
