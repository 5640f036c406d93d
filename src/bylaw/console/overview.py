"""The overview page: a summary sentence, the gravest finding, policies, agents, the trend, and the audit's
limitations.
"""
# pyright: basic, reportMissingImports=false

from collections.abc import Callable
from datetime import date

from msgspec import Struct
from starlette.responses import Response

from bylaw.audit.report.finding import cut
from bylaw.audit.report.page import overview
from bylaw.audit.report.page import policies as stated_policies
from bylaw.audit.row import rank
from bylaw.audit.store import JsonRecord
from bylaw.audit.summary import limits
from bylaw.console.app import shown
from bylaw.console.door import Asked
from bylaw.console.findings import finding_data, sentence_of
from bylaw.console.index import Index, Wanted
from bylaw.console.view import AuditPages, View, conversations_of, read_summary
from bylaw.facts.evidence import rate
from bylaw.pack import Criterion
from bylaw.text.number import counted

TREND = 12
"""The maximum number of audits to show in the trend."""
RATES = 100
"""The maximum number of policies or agents to show in a comparison."""
LISTED = 500
"""The maximum number of findings from the earlier audit to show in a comparison."""
_NO_RATE = rate(0, 0)
_KINDS = {
    "violation": ("violation", "violations"),
    "near_miss": ("near-miss", "near-misses"),
    "broken": ("broken rule", "broken rules"),
    "uninformed": ("uninformed call", "uninformed calls"),
}


_COLUMNS = {
    "violation": "Violations",
    "broken": "Broken rules",
    "near_miss": "Near-misses",
    "uninformed": "Uninformed",
    "open": "Undecided",
    "still": "Known",
    "waived": "Waived",
    "false-alarm": "False alarms",
}
"""The columns in the table of policies: first the verdicts of new findings, then the states of all other findings."""


class PolicyRow(Struct, frozen=True):
    id: str
    severity: str
    sentence: str
    states: dict[str, int]
    verdicts: dict[str, int]
    """The number of new findings for each verdict of this policy."""

    @property
    def counts(self) -> dict[str, int]:
        """The number of new findings for each verdict, and of other findings for each state."""
        return {**dict.fromkeys(_COLUMNS, 0), **self.states, **self.verdicts}

    @property
    def rank(self) -> tuple[int, ...]:
        """The sort key.

        Policies with new violations come first, then those with new near-misses, each by severity and number.
        """
        wrong = self.verdicts.get("violation", 0) + self.verdicts.get("broken", 0)
        near, total = self.verdicts.get("near_miss", 0), sum(self.states.values())
        return (0 if wrong else 1 if near else 2, rank(self.severity), -wrong, -near, -total)


class TrendPoint(Struct, frozen=True):
    name: str
    date: str
    conversations: int
    violation: float | None
    near_miss: float | None
    is_this: bool


class RatePair(Struct, frozen=True):
    """The rates of a policy or agent in an earlier audit and in this audit.

    `facts.interval.rate` computes the rates.
    """

    name: str
    before: JsonRecord
    now: JsonRecord

    @property
    def change(self) -> str:
        """`bad` or `good` if the rates' intervals do not overlap, otherwise empty."""
        if self.before["value"] is None or self.now["value"] is None:
            return ""
        return (
            "bad" if self.now["low"] > self.before["high"] else "good" if self.now["high"] < self.before["low"] else ""
        )


class OverviewPages(AuditPages):
    section = "overview"

    @shown("/")
    def first(self, asked: Asked) -> Response:
        """Show the overview, with a comparison if one is requested."""
        wanted = Wanted.of(asked.query.items())
        view = self._view
        base = wanted.base or view.base
        standings = view.standings(base)
        index = standings.index
        led = index.first(Wanted(base=wanted.base))
        rows = self._policies(index)
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
            rows=rows,
            columns={
                name: label
                for name, label in _COLUMNS.items()
                if name in ("violation", "near_miss") or any(row.counts[name] for row in rows)
            },
            kinds=_KINDS,
            chart={"overview": overview(view.summary, view.criterion), "policies": stated_policies(view.policies)},
            trend=trend(view),
            limits=list(limits(view.summary)),
            fault=standings.fault,
            base=base,
        )

    @shown("/compare")
    def compared(self, asked: Asked) -> Response:
        """Compare the audit with an earlier audit, or let the visitor choose an earlier audit."""
        view = self._view
        base = Wanted.of(asked.query.items()).base or view.base
        bases = [(name, str(read_summary(path).get("date", ""))) for name, path in view.bases.items()]
        latest = sorted(bases, key=lambda each: (each[1], each[0]), reverse=True)
        if not base:
            return self._page("compare.html", asked, section="compare", base=base, bases=latest, states={}, reasons=[])
        standings = view.standings(base)
        index, earlier = standings.index, read_summary(view.bases[base])
        return self._page(
            "compare.html",
            asked,
            section="compare",
            base=base,
            bases=latest,
            points=[point for point in trend(view, most=len(bases) + 1) if point.is_this or point.name == base],
            policies=_pairs(_by_policy, earlier, view.summary, view.criterion),
            matched=sorted(standings.by_policy.items(), key=lambda each: (-each[1]["new"], -each[1]["fixed"], each[0])),
            listed={name: counts["new"] for name, counts in index.by_policy().items()},
            agents=_pairs(_by_agent, earlier, view.summary, view.criterion),
            states=index.states(Wanted()),
            reasons=index.reasons(Wanted()),
            wanted=Wanted(base=base),
            shown=LISTED,
            fixed=standings.fixed,
            gone=standings.gone,
        )

    def _sentence(self, index: Index, base: str) -> str:
        new = index.verdicts(Wanted())
        word = "new " if base else ""
        told = [
            counted(new[kind], f"{word}{one}", f"{word}{many}") for kind, (one, many) in _KINDS.items() if new.get(kind)
        ]
        if not told:
            opened = index.states(Wanted())["open"]
            rest = f"; {counted(opened, 'undecided call')}" if opened else ""
            return f"Nothing new{_since(self._view, base)}{rest}."
        policies = len(index.verdicts_by_policy())
        listed = ", ".join(told[:-1]) + (" and " if len(told) > 1 else "") + told[-1]
        return f"{listed}{_since(self._view, base)}, across {counted(policies, 'policy', 'policies')}."

    def _about(self) -> str:
        summary = self._view.summary
        said = counted(self._view.conversations, "conversation")
        if day := summary["date"]:
            said += f", audited on {day}"
        files: list[str] = summary["files"]
        if files:
            said += f" from {cut(files[0], 60)}" + (f" and {len(files) - 1} more" if len(files) > 1 else "")
        return said

    def _policies(self, index: Index) -> list[PolicyRow]:
        view, verdicts = self._view, index.verdicts_by_policy()
        found: list[PolicyRow] = []
        for name, states in index.by_policy().items():
            severity = str((view.policies.get(name) or {}).get("severity", ""))
            found.append(PolicyRow(name, severity, sentence_of(view, name, 160), states, verdicts.get(name, {})))
        return sorted(found, key=lambda row: row.rank)


def _since(view: View, base: str) -> str:
    if not base:
        return ""
    day = str(read_summary(view.bases[base]).get("date", ""))
    if not day or day == view.summary["date"]:
        return f" since {base}"
    then = date.fromisoformat(day)
    return f" since {then:%A}" if 0 < (date.today() - then).days < 7 else f" since {day}"


Rates = dict[str, JsonRecord]
"""The rates of one verdict, keyed by policy or agent."""


def _by_policy(summary: JsonRecord, criterion: Criterion, verdict: str) -> Rates:
    rows = summary["by_policy"].items()
    return {name: rate(row[criterion].get(verdict, 0), row["applied"]) for name, row in rows if row["applied"]}


def _by_agent(summary: JsonRecord, criterion: Criterion, verdict: str) -> Rates:
    return {row["agent"]: row[criterion][f"{verdict}_rate"] for row in summary["agents"]}


def _pairs(
    rates: Callable[[JsonRecord, Criterion, str], Rates], earlier: JsonRecord, now: JsonRecord, criterion: Criterion
) -> dict[str, list[RatePair]]:
    """Return the pairs of rates for each verdict, except pairs of two zeros.

    Changed rates come first, then the highest rates.
    """
    found: dict[str, list[RatePair]] = {}
    for verdict in ("violation", "near_miss"):
        old, new = rates(earlier, criterion, verdict), rates(now, criterion, verdict)
        pairs = [RatePair(name, old.get(name, _NO_RATE), new.get(name, _NO_RATE)) for name in {**new, **old}]
        pairs = [pair for pair in pairs if pair.before["count"] or pair.now["count"]]
        order = {"bad": 0, "good": 1, "": 2}
        pairs.sort(key=lambda pair: (order[pair.change], -(pair.now["value"] or 0), pair.name))
        found[verdict] = pairs[:RATES]
    return found


def trend(view: View, most: int = TREND) -> list[TrendPoint]:
    """Return this audit and the audits of its pack in neighbouring folders, ordered by date."""
    found = [(name, read_summary(path), False) for name, path in view.bases.items()]
    found.append((view.out.resolve().name, view.summary, True))
    points = [_point(name, summary, is_this, view.criterion) for name, summary, is_this in found if summary]
    return sorted(points, key=lambda point: (point.date, point.is_this))[-most:]


def _point(name: str, summary: JsonRecord, is_this: bool, criterion: str) -> TrendPoint:
    verdicts: dict[str, int] = summary["verdicts"][criterion]
    calls = sum(verdicts.values())
    violation, near_miss = (verdicts.get(kind, 0) / calls if calls else None for kind in ("violation", "near_miss"))
    return TrendPoint(name, summary["date"], conversations_of(summary), violation, near_miss, is_this)
