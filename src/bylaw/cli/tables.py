"""An audit's summary as tables for a terminal of 80 columns."""

from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_summary(summary: dict[str, Any], console: Console, out: Path) -> None:
    """Rates per agent, then where the findings lie."""
    console.print(agents_table(summary))
    console.print(_tools(summary))
    if summary["by_lookup"]:
        console.print(_lookups(summary))
    for line in _notes(summary):
        console.print(line, style="dim", markup=False)
    console.print(f"Wrote {out}/summary.json, calls.jsonl, conversations.jsonl", markup=False)


def agents_table(summary: dict[str, Any]) -> Table:
    """Rates per agent, under the strict criterion."""
    table = _table("Per agent: conversations, and shares of them in % [95 % interval], strict")
    table.add_column("agent", overflow="fold")
    for name in ("all", "writing", "failed", "violation", "near-miss", "of writing"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in summary["agents"]:
        strict = row["strict"]
        table.add_row(
            Text(row["agent"] or "(unnamed)"),
            f"{row['trajectories']:,}",
            f"{row['with_write_calls']:,}",
            _share(row["failure_rate"], interval=False),
            _share(strict["violation_rate"]),
            _share(strict["near_miss_rate"]),
            _share(strict["near_miss_rate_of_writing"], interval=False),
        )
    return table


def _tools(summary: dict[str, Any]) -> Table:
    table = _table("Executed write calls by verdict (strict)")
    table.add_column("tool", overflow="fold")
    for name in ("calls", "viol.", "near", "uninf.", "unclear", "compl."):
        table.add_column(name, justify="right", no_wrap=True)
    for tool, row in summary["by_tool"].items():
        verdicts = row["strict"]
        order = ("violation", "near_miss", "uninformed", "inconclusive", "compliant")
        table.add_row(Text(tool), f"{row['executed']:,}", *(_count(verdicts[verdict]) for verdict in order))
    return table


def _lookups(summary: dict[str, Any]) -> Table:
    table = _table("Look-ups that near-miss and uninformed calls lacked")
    table.add_column("look-up", overflow="fold")
    table.add_column("strict", justify="right")
    table.add_column("determined", justify="right")
    rows = sorted(summary["by_lookup"].items(), key=lambda item: -item[1]["strict"])
    for name, row in rows:
        table.add_row(Text(name), _count(row["strict"]), _count(row["determined"]))
    return table


def _notes(summary: dict[str, Any]) -> list[str]:
    notes: list[str] = []
    verdicts = summary["verdicts"]["strict"]
    if summary["world"] != "snapshot":
        uninformed, total = verdicts.get("uninformed", 0), sum(verdicts.values())
        notes.append(
            f"No database ({summary['world']}): {uninformed:,} of {total:,} verdicts stay uninformed;"
            " give --world to settle them."
        )
    if summary["citations"] != "text":
        notes.append(
            "The policy document is not at hand: citations are heading and line; give --document for the text."
        )
    if summary["stale_policies"]:
        notes.append(f"The document has changed under these policies: {', '.join(summary['stale_policies'])}")
    for change in summary["changed_policy"]:
        count = sum(change["trajectories"].values())
        notes.append(
            f"{count:,} conversations ran under a policy text that differs in: {', '.join(change['statements'])};"
            " they have rows of their own."
        )
    if summary["unknown_tools"]:
        notes.append(f"Tools the pack does not know: {', '.join(summary['unknown_tools'])}")
    if summary["skipped"]:
        notes.append(f"{len(summary['skipped']):,} records could not be read and were skipped.")
    return notes


def _table(title: str) -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )


def _share(rate: dict[str, Any], *, interval: bool = True) -> str:
    if rate["value"] is None:
        return "-"
    text = f"{100 * rate['value']:.1f}"
    return f"{text} [{100 * rate['low']:.0f}-{100 * rate['high']:.0f}]" if interval else text


def _count(number: int) -> str:
    return f"{number:,}" if number else "."
