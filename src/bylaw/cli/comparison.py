"""An audit beside an earlier one, for a terminal: what is new first, then what became of the rest."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from bylaw.audit.baseline import Comparison
from bylaw.audit.finding import Finding
from bylaw.audit.waiver import Waiver
from bylaw.cli.findings import finding_lines, gravity
from bylaw.text.visible import clean

_SHOWN = 10
_STYLES = {"new": "red", "fixed": "green"}


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Counts, the findings that changed, and what is to be said of waivers."""
    counts = [f"{len(comparison.new):,} new", f"{len(comparison.waived):,} waived"]
    if comparison.baseline is not None:
        counts[1:1] = [f"{len(comparison.still):,} still there", f"{len(comparison.fixed):,} fixed"]
        counts.append(f"{len(comparison.gone):,} gone")
    if comparison.refused:
        counts.append(f"{len(comparison.refused):,} of refused calls")
    against = f" against {comparison.baseline}" if comparison.baseline is not None else ""
    console.print(Text(f"Findings{against}: {', '.join(counts)}", style="bold"))
    if comparison.baseline is not None:
        _list("new", comparison.new, console)
        _list("fixed", comparison.fixed, console)
    if comparison.is_former:
        console.print(
            Text(
                "The baseline was written by an earlier version, whose ids say nothing of a call's arguments: "
                "one of its findings may stand for another call. Audit it again.",
                style="yellow",
            )
        )
    _waived(comparison, console)
    for line in _of_waivers(comparison):
        console.print(Text(line, style="yellow"))


def _list(word: str, findings: Sequence[Finding], console: Console) -> None:
    for finding in sorted(findings, key=gravity)[:_SHOWN]:
        for line in finding_lines(finding, Text(f"  {word:<7}", style=_STYLES[word])):
            console.print(line)
    if len(findings) > _SHOWN:
        console.print(f"  {'':<7}and {len(findings) - _SHOWN:,} more, see comparison.json", markup=False)


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
        if now := comparison.renamed.get(waiver.finding):
            now_named = (
                f"a finding's id now says what was called with what. If you mean the call of today, write `{now}`"
            )
            yield f"{waiver.place}: waives nothing: {_what(waiver)} is an id of an earlier version; {now_named}"
            continue
        yield f"{waiver.place}: waives nothing: {_what(waiver)} was not found"


def _what(waiver: Waiver) -> str:
    return f"finding `{clean(waiver.finding, 60)}`" if waiver.finding else f"policy `{clean(waiver.policy, 60)}`"
