"""The findings of an audit as a list for a terminal, the most severe first."""

from collections.abc import Iterator
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from bylaw.audit.finding import Finding, severity_rank
from bylaw.audit.store import Store
from bylaw.engine.verdict import WORST_FIRST
from bylaw.text.visible import clean

_SHOWN = 30
_STYLES = {"high": "bold red", "medium": "yellow"}


class Wanted(NamedTuple):
    """Which findings are listed; where nothing is said, all of them."""

    policies: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    severities: tuple[str, ...] = ()

    def holds(self, finding: Finding) -> bool:
        """Whether a finding is one of these: one of its policies must meet all that is asked of a policy."""
        verdict = "rule" if finding.kind == "rule" else finding.verdict
        charged = not (self.policies or self.severities) or any(
            (not self.policies or charge.policy in self.policies)
            and (not self.severities or charge.severity in self.severities)
            and (not self.verdicts or finding.kind == "rule" or charge.verdict in self.verdicts)
            for charge in finding.charges
        )
        return (
            charged
            and (not self.tools or finding.name in self.tools)
            and (not self.agents or finding.agent in self.agents)
            and (not self.verdicts or verdict in self.verdicts)
        )


def print_findings(store: Store, console: Console, *, wanted: Wanted = Wanted(), whole: bool = False) -> None:  # noqa: B008
    """List the wanted findings of an audit, each with the id that explains it."""
    every = list(store.findings())
    unsettled = list(store.inconclusive())
    found = sorted(filter(wanted.holds, (*every, *unsettled) if wanted.verdicts else every), key=gravity)
    print_about(store, console)
    if not found:
        said = f"None of {len(every):,} findings is of that kind." if every else "Nothing was flagged."
        console.print(said, markup=False)
        _tell_unsettled(unsettled, wanted, console)
        return
    acts = _by_act(found)
    shown = acts if whole else acts[:_SHOWN]
    for finding, *others in shown:
        for line in finding_lines(finding):
            console.print(line)
        for other in others:
            console.print(Text(f"{'':7}{other.id} also {_kind(other)} {_policies(other)}"))
    if len(acts) > len(shown):
        left = sum(map(len, acts)) - sum(map(len, shown))
        rest = f"and {left:,} more: --all lists them; --policy, --tool, --agent, --verdict choose"
        console.print(rest, markup=False)
    named = "ID" if any(finding.id for finding in found) else "CONVERSATION STEP"
    console.print(f"to explain one: bylaw explain {store.path} {named}", markup=False, soft_wrap=True)
    _tell_unsettled(unsettled, wanted, console)


def _tell_unsettled(calls: list[Finding], wanted: Wanted, console: Console) -> None:
    """Calls without a verdict are no findings; a list of findings says that there are some."""
    if calls and not wanted.verdicts:
        one = len(calls) == 1
        said = f"{len(calls):,} {'call has' if one else 'calls have'} no verdict: --verdict inconclusive lists "
        console.print(said + ("it" if one else "them"), markup=False)


def _by_act(findings: list[Finding]) -> list[list[Finding]]:
    """What is held against the same call or message stands together, where its gravest finding would."""
    acts: dict[tuple[str, str, int], list[Finding]] = {}
    for finding in findings:
        acts.setdefault((finding.trajectory, finding.agent, finding.step), []).append(finding)
    return list(acts.values())


def _kind(finding: Finding) -> str:
    return "rule" if finding.kind == "rule" else finding.verdict.replace("_", "-")


def _policies(finding: Finding) -> str:
    """The policies that a finding rests on, the gravest first."""
    charges = sorted(finding.charges, key=lambda each: gravity_of(each.severity, each.verdict))
    names = [charge.policy for charge in charges if finding.kind == "rule" or charge.verdict == finding.verdict]
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + more


def print_about(store: Store, console: Console) -> None:
    """Say when the audit was made, of which files, and when their conversations took place."""
    summary = store.summary
    if "date" not in summary:
        return
    files: list[str] = summary["files"]
    more = f" and {len(files) - 3:,} other files" if len(files) > 3 else ""
    said = f"audited on {summary['date']}: {', '.join(clean(name, 60) for name in files[:3])}{more}"
    if period := summary["period"]:
        first, last = period["from"][:10], period["to"][:10]
        said += f", conversations of {first}" if first == last else f", conversations from {first} to {last}"
    console.print(Text(said, style="dim"))


def finding_lines(finding: Finding, head: Text | None = None) -> Iterator[Text]:
    """A finding in two lines: how severe and what it is, then which call of which conversation."""
    charge = min(finding.charges, key=lambda each: gravity_of(each.severity, each.verdict), default=None)
    severity = charge.severity if charge is not None else ""
    start = (head or Text()) + Text(f"{severity:<7}", style=_STYLES.get(severity, ""))
    yield start + Text(f"{finding.id} {_kind(finding)} {_policies(finding)}".strip())
    refused = ", refused" if finding.executed is False else ""
    place = f"{clean(finding.name, 60)} at step {finding.step} of {clean(finding.trajectory, 60)}{refused}"
    yield Text(f"{'':{len(head) + 7 if head else 7}}{place}", style="dim")
    if finding.verdict == "inconclusive":
        reasons = dict.fromkeys(charge.because for charge in finding.charges) or [finding.because]
        yield Text(f"{'':7}{clean('; '.join(reasons), 300)}", style="dim")


def gravity(finding: Finding) -> tuple[bool, int, int]:
    """Small comes first: what was done before what was refused, then severity, then verdict."""
    severity, verdict = min((gravity_of(each.severity, each.verdict) for each in finding.charges), default=(9, 9))
    return finding.executed is False, severity, verdict


def gravity_of(severity: str, verdict: str) -> tuple[int, int]:
    words: tuple[str, ...] = WORST_FIRST
    return severity_rank(severity), words.index(verdict) if verdict in words else len(words)
