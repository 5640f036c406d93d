"""Compares an audit with an earlier audit. Each finding is new, known, fixed, gone or waived."""

import json
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from bylaw.audit.row import FINDING_IDS, Finding, is_worse, rank
from bylaw.audit.store import Store
from bylaw.audit.waiver import Waiver, Waivers
from bylaw.errors import UsageError
from bylaw.pack import CRITERIA, Criterion

COMPARISON_SCHEMA = "bylaw.comparison/1"

MATCHED = ("new", "still", "fixed")
FindingStanding = Literal["new", "still", "waived"]


class Gate(Struct, frozen=True):
    """Selects the findings that make a run fail, by verdict and severity."""

    verdicts: frozenset[str] = frozenset({"violation", "near_miss", "rule"})
    severity: str = "low"

    @classmethod
    def named(cls, verdicts: Iterable[str], severity: str) -> "Gate":
        """Create a gate from command-line options. The verdict `near_miss` also selects violations."""
        every = frozenset(verdicts)
        return cls(every | {"violation"} if "near_miss" in every else every, severity)

    def stops(self, finding: Finding) -> bool:
        """Whether the finding makes the run fail. A finding about a refused call never does."""
        if finding.kind == "rule":
            named = self._names_limits if finding.is_limit else "rule" in self.verdicts
            return named and self._is_severe(finding.charges[0].severity)
        if finding.executed is False or finding.verdict not in self.verdicts:
            return False
        return any(each.verdict in self.verdicts and self._is_severe(each.severity) for each in finding.charges)

    def stops_limit(self, limit: dict[str, Any]) -> bool:
        """Whether an exceeded limit in the summary makes the run fail."""
        return self._names_limits and limit["over"] > 0 and self._is_severe(limit["severity"])

    @property
    def _names_limits(self) -> bool:
        """Whether exceeding a limit makes the run fail, as violations do. Calls that exceed a limit are violations."""
        return not self.verdicts.isdisjoint(("rule", "violation"))

    def _is_severe(self, severity: str) -> bool:
        return rank(severity) <= rank(self.severity)


class Comparison(Struct, frozen=True):
    """The differences between an audit and an earlier audit."""

    baseline: Path | None
    new: list[Finding]
    still: list[Finding]
    waived: list[tuple[Finding, tuple[Waiver, ...]]]
    fixed: list[Finding]
    """Earlier findings that no longer occur in audited conversations, each with the policies that no longer flag it."""
    gone: list[Finding]
    """Earlier findings whose conversations were not audited again."""
    refused: list[Finding] = []
    """Findings about refused calls. The other lists leave these findings out."""
    expired: tuple[Waiver, ...] = ()
    unused: tuple[Waiver, ...] = ()
    known: frozenset[str] = frozenset()
    """The ids of findings that were equally serious in the earlier audit, including waived findings."""
    by_policy: dict[str, dict[str, int]] = {}
    """For each policy, the number of `new`, `still` flagged and `fixed` calls. Waived findings are not counted."""

    def standings(self) -> "Standings":
        return Standings(self.baseline is not None, self.known, {f.id: waivers for f, waivers in self.waived})

    def record(self) -> dict[str, Any]:
        lists = {name: getattr(self, name) for name in ("new", "still", "fixed", "gone", "refused")}
        return {
            "schema": COMPARISON_SCHEMA,
            "baseline": self.baseline.name if self.baseline is not None else None,
            "counts": {name: len(found) for name, found in lists.items()} | {"waived": len(self.waived)},
            "by_policy": self.by_policy,
            **{name: [finding.record() for finding in found] for name, found in lists.items()},
            "waived": [f.record() | {"waivers": [w.record() for w in waivers]} for f, waivers in self.waived],
            "expired_waivers": [_named(waiver) for waiver in self.expired],
            "unused_waivers": [_named(waiver) for waiver in self.unused],
        }


class Standings(Struct, frozen=True):
    """The state of each finding in an audit. A finding that is neither in `waived` nor in `known` is new."""

    compared: bool = False
    known: Container[str] = frozenset[str]()
    waived: dict[str, tuple[Waiver, ...]] = {}

    def of(self, finding: str) -> FindingStanding:
        return "waived" if finding in self.waived else "still" if finding in self.known else "new"


class Baseline(Struct, frozen=True):
    """The findings of an earlier audit, keyed by criterion and id. The new audit may use another criterion."""

    folder: Path
    findings: dict[Criterion, dict[str, Finding]]


def read_baseline(folder: Path, *, redacted: str | None = None) -> Baseline:
    """Read the findings of an earlier audit. `redacted` identifies the new audit's redaction key."""
    store = Store(folder)
    check_baseline(store, redacted=redacted)
    findings: dict[Criterion, dict[str, Finding]] = {
        each: {found.id: found for found in store.findings(each)} for each in CRITERIA
    }
    return Baseline(folder, findings)


def check_baseline(store: Store, *, redacted: str | None = None) -> None:
    """Raise UsageError if the earlier audit used a different redaction key or another version of finding ids."""
    if store.summary["finding_ids"] != FINDING_IDS:
        raise UsageError(
            "finding ids differ: the audit was produced by an earlier version of Bylaw",
            place=str(store.path),
            hint="audit again",
        )
    if store.summary["redacted"] != redacted:
        hint = "run both audits with --redact and the same --redact-key, or run both without --redact"
        raise UsageError(
            "finding ids differ: the earlier audit was redacted with another key", place=str(store.path), hint=hint
        )


def compare_audits(
    out: Path,
    names: Container[str],
    *,
    baseline: Baseline | None = None,
    waivers: Waivers | None = None,
    findings: Iterable[Finding] | None = None,
) -> Comparison:
    """Compare the audit in `out` with an earlier audit.

    `names` are the ids of the audited conversations. Pass `findings` if they have already been read, to save time.
    """
    waivers = waivers or Waivers(today=date.today())
    store = Store(out)
    criterion = store.criterion
    before = dict(baseline.findings[criterion]) if baseline is not None else {}
    known: set[str] = set()
    new: list[Finding] = []
    still: list[Finding] = []
    refused: list[Finding] = []
    waived: list[tuple[Finding, tuple[Waiver, ...]]] = []
    fixed: list[Finding] = []
    matched: Counter[tuple[str, str]] = Counter()
    for finding in store.findings(criterion) if findings is None else findings:
        then = before.pop(finding.id, None)
        if is_known := then is not None and not is_graver(finding, then):
            known.add(finding.id)
        covering = waivers.waive(finding)
        if finding.executed is False:
            refused.append(finding)
        elif covering:
            waived.append((finding, covering))
        elif is_known:
            still.append(finding)
        else:
            new.append(finding)
        if then is None or then.executed is False or finding.executed is False:
            then = replace(finding, charges=())
        if not covering:
            matched.update(_matched(finding, then))
        if dropped := tuple(
            each for each in then.charges if each.policy not in {charge.policy for charge in finding.charges}
        ):
            fixed.append(replace(then, charges=dropped))
    left = [finding for finding in before.values() if finding.executed is not False]
    fixed += [finding for finding in left if finding.trajectory in names]
    matched.update((charge.policy, "fixed") for finding in fixed for charge in finding.charges)
    gone = [finding for finding in left if finding.trajectory not in names]
    folder = baseline.folder if baseline is not None else None
    by_policy = {name: {state: matched[name, state] for state in MATCHED} for name, _ in sorted(matched)}
    told = (refused, waivers.expired, waivers.unused, frozenset(known), by_policy)
    return Comparison(folder, new, still, waived, fixed, gone, *told)


def _matched(now: Finding, then: Finding) -> Iterator[tuple[str, str]]:
    """Yield the policies that flag an executed call, each as `new` or `still` flagged."""
    known = {charge.policy: charge.verdict for charge in then.charges}
    for charge in now.charges if now.executed is not False else ():
        yield charge.policy, "new" if is_worse(charge, known) else "still"


def is_graver(now: Finding, then: Finding) -> bool:
    """Whether a finding got worse: a refused call was now executed, another policy flags it, or a verdict got worse."""
    if then.executed is False and now.executed is not False:
        return True
    known = {charge.policy: charge.verdict for charge in then.charges}
    return any(is_worse(charge, known) for charge in now.charges)


def write_comparison(comparison: Comparison, out: Path) -> Path:
    path = out / "comparison.json"
    path.write_text(json.dumps(comparison.record(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def _named(waiver: Waiver) -> dict[str, str]:
    what = {"finding": waiver.finding} if waiver.finding else {"policy": waiver.policy}
    return what | waiver.record()
