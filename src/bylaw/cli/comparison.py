"""An audit beside an earlier one, for a terminal: what is new first, then what became of the rest."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from bylaw.audit.baseline import Comparison
from bylaw.audit.finding import SEVERITIES, Charge, Finding
from bylaw.audit.waiver import Waiver
from bylaw.cli.visible import clean
from bylaw.engine.verdict import WORST_FIRST

_SHOWN = 10
_STYLES = {"new": "red", "fixed": "green"}


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Counts, the findings that changed, and what is to be said of waivers."""
    counts = [f"{len(comparison.new):,} new", f"{len(comparison.waived):,} waived"]
    if comparison.baseline is not None:
        counts[1:1] = [f"{len(comparison.still):,} still there", f"{len(comparison.fixed):,} fixed"]
        counts.append(f"{len(comparison.gone):,} gone")
    against = f" against {comparison.baseline}" if comparison.baseline is not None else ""
    console.print(Text(f"Findings{against}: {', '.join(counts)}", style="bold"))
    if comparison.baseline is not None:
        _list("new", comparison.new, console)
        _list("fixed", comparison.fixed, console)
    _waived(comparison, console)
    for line in _of_waivers(comparison):
        console.print(Text(line, style="yellow"))


def _list(word: str, findings: Sequence[Finding], console: Console) -> None:
    for finding in sorted(findings, key=_gravity)[:_SHOWN]:
        charge = min(finding.charges, key=_charge_gravity, default=None)
        policy = f" {charge.policy} ({charge.severity})" if charge is not None else ""
        verdict = "rule" if finding.kind == "rule" else finding.verdict.replace("_", "-")
        console.print(Text(f"  {word:<7}", style=_STYLES[word]).append(f"{finding.id} {verdict}{policy}"))
        place = f"{clean(finding.name, 60)} at step {finding.step} of {clean(finding.trajectory, 60)}"
        console.print(Text(f"{'':9}{place}", style="dim"))
    if len(findings) > _SHOWN:
        console.print(f"  {'':<7}and {len(findings) - _SHOWN:,} more, see comparison.json", markup=False)


def _gravity(finding: Finding) -> tuple[int, int, int]:
    """Small is grave: what was done, the verdict, the severity."""
    verdict, severity = min(map(_charge_gravity, finding.charges), default=(len(WORST_FIRST), 0))
    return finding.executed is False, verdict, severity


def _charge_gravity(charge: Charge) -> tuple[int, int]:
    words: tuple[str, ...] = WORST_FIRST
    return words.index(charge.verdict), SEVERITIES.index(charge.severity)


def _waived(comparison: Comparison, console: Console) -> None:
    counts = Counter(waiver for _, waivers in comparison.waived for waiver in waivers)
    for waiver, count in counts.items():
        line = Text(f"  {'waived':<7}", style="magenta").append(f"{count:,} by {waiver.place}, {_what(waiver)}")
        console.print(line)
        why = f"{clean(waiver.owner, 60)} until {waiver.expires.isoformat()}: {clean(waiver.reason, 200)}"
        console.print(Text(f"{'':9}{why}", style="dim"))


def _of_waivers(comparison: Comparison) -> Iterator[str]:
    for waiver in comparison.expired:
        when = waiver.expires.isoformat()
        yield f"{waiver.place}: expired on {when} and waives nothing: {_what(waiver)} ({clean(waiver.owner, 60)})"
    for waiver in comparison.unused:
        yield f"{waiver.place}: waives nothing: {_what(waiver)} was not found"


def _what(waiver: Waiver) -> str:
    return f"finding `{clean(waiver.finding, 60)}`" if waiver.finding else f"policy `{clean(waiver.policy, 60)}`"
