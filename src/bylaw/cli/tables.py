"""Prints an audit's summary as tables that are 80 columns wide."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.text import Text

from bylaw.audit.counts import OPEN_REASONS
from bylaw.audit.output import has_tables
from bylaw.audit.row import SEVERITIES
from bylaw.audit.summary import notes
from bylaw.cli.console import counted, titled_table
from bylaw.text.visible import visible


def print_summary(summary: dict[str, Any], console: Console, out: Path, *, whole: bool = False) -> None:
    """Print the counts, each agent's rates, and the findings by tool, policy, look-up and rule."""
    for line in _headline(summary["counts"]):
        console.print(line, markup=False, style="bold")
    console.print()
    console.print(agents_table(summary, console.width))
    console.print(_tools(summary))
    if policies := _policies(summary, _severities(out), whole=whole):
        console.print(policies)
    if any(row[summary["criterion"]] for row in summary["by_lookup"].values()):
        console.print(_lookups(summary))
    if summary["by_rule"]:
        console.print(_rules(summary))
    if summary["counts"]["undecided"]:
        console.print(_undecided(summary))
    for line in _failures(summary, out):
        console.print(line, style="bold", markup=False)
    for line in notes(summary):
        console.print(line, style="dim", markup=False)
    for line in summary.get("unanswered", ()):
        console.print(visible(line), markup=False, soft_wrap=True)
    if (found := _finding(summary, out)) is not None:
        console.print(f"To see why, one call at a time: bylaw explain {out}{found}", markup=False, soft_wrap=True)
        console.print(f"To see everything in the browser: bylaw view {out}", markup=False, soft_wrap=True)
    if has_tables(out):
        console.print(f"To query the tables: bylaw sql {out} --list", markup=False, soft_wrap=True)
    console.print(f"Wrote {out}/summary.json{_written(out)}", markup=False)


def _headline(counts: dict[str, Any]) -> list[str]:
    told = [f"{_flagged(counts)} in {counted(counts['calls'], 'executed call')}"]
    told[0] += f" of {counted(counts['conversations'], 'conversation')}."
    if counts["broken_rules"]:
        told[0] += f" Rules were broken {counted(counts['broken_rules'], 'time')}."
    if counts["refused"]["calls"]:
        told.append(f"Refused by the tool, not counted above: {_flagged(counts['refused'])}.")
    return told


def _flagged(counts: dict[str, Any]) -> str:
    parts = [counted(counts["violations"], "violation"), counted(counts["near_misses"], "near-miss", "near-misses")]
    parts += [f"{counts[name]:,} {name}" for name in ("uninformed", "undecided") if counts[name]]
    return ", ".join(parts)


def _written(out: Path) -> str:
    lines = ", calls.jsonl, findings.jsonl, conversations.jsonl" if (out / "calls.jsonl").is_file() else ""
    return f"{lines}, tables/" if has_tables(out) else lines


def _finding(summary: dict[str, Any], out: Path) -> str | None:
    """Return the conversation and step of the first flagged call, which are the arguments for `bylaw explain`.

    Return None if no call is flagged. Return an empty string if the audit wrote no JSON lines to search.
    """
    criterion = summary["criterion"]
    verdicts = summary["verdicts"][criterion]
    worst = next((name for name in ("violation", "near_miss", "uninformed") if verdicts.get(name)), None)
    if worst is None:
        return None
    needle = f'"{criterion}":"{worst}"'.encode()
    if not (out / "calls.jsonl").is_file():
        return ""
    with (out / "calls.jsonl").open("rb") as lines:
        for line in lines:
            if needle in line and (call := json.loads(line))[criterion] == worst and call["executed"] is not False:
                return f" {shlex.quote(call['trajectory'])} {call['step']}"
    return ""


def agents_table(summary: dict[str, Any], width: int = 80) -> Group:
    """Return a table with each agent's rates. A name that is too long for its column is on a line of its own."""
    heads = ("all", "with\nwrites", "bad\noutcome", "violation", "rule\nbroken", "near-miss", "of those\nwriting")
    rows = [(visible(row["agent"]) or "(unnamed)", _rates(row, summary["criterion"])) for row in summary["agents"]]
    upper, lower = zip(*((head.rpartition("\n")[0], head.rpartition("\n")[2]) for head in heads), strict=True)
    numbers = [max(map(len, column)) for column in zip(upper, lower, *(cells for _, cells in rows), strict=True)]
    title = f"Per agent: conversations, and the percentage of them [95% interval]{_paper(summary)}"
    if max((len(name) for name, _ in rows), default=0) <= width - sum(numbers) - 2 * len(numbers) - 2:
        return titled_table(title, ["agent"], heads, [(name, *cells) for name, cells in rows])

    def line(cells: Sequence[str]) -> Text:
        return Text("  ".join(["", *(cell.rjust(room) for cell, room in zip(cells, numbers, strict=True))]))

    named = [part for name, cells in rows for part in (Text(f" {name}"), line(cells))]
    rule = Text(f" {'─' * (sum(numbers) + 2 * len(numbers) - 1)}")
    return Group(Text(title, style="bold"), Text(), line(upper), line(lower), rule, *named, Text())


def _rates(row: dict[str, Any], criterion: str) -> tuple[str, ...]:
    rates = row[criterion]
    return (
        f"{row['trajectories']:,}",
        f"{row['with_write_calls']:,}",
        _share(row["failure_rate"], interval=False),
        _share(rates["violation_rate"]),
        _share(row["rule_rate"], interval=False),
        _share(rates["near_miss_rate"]),
        _share(rates["near_miss_rate_of_writing"], interval=False),
    )


def _tools(summary: dict[str, Any]) -> Group:
    read = {name for name, row in summary["by_tool"].items() if row.get("effect") == "read"}
    tables = [_by_verdict(summary, [name for name in summary["by_tool"] if name not in read], "write calls")]
    if read:
        tables.append(_by_verdict(summary, sorted(read), "look-ups with a guard,"))
    return Group(*tables)


def _by_verdict(summary: dict[str, Any], tools: Sequence[str], what: str) -> Group:
    order = ("violation", "near_miss", "uninformed", "inconclusive", "compliant")

    def cells(tool: str) -> Sequence[str]:
        row = summary["by_tool"][tool]
        counts = [_count(row[summary["criterion"]][verdict]) for verdict in order]
        return tool, f"{row['executed']:,}", *([*"....", "no guard"] if tool in summary["unguarded_tools"] else counts)

    columns = ("calls", "viol.", "near", "uninf.", "inconcl.", "compl.")
    return titled_table(f"Executed {what} by verdict{_paper(summary)}", ["tool"], columns, map(cells, tools))


_MOST = 8


def _policies(summary: dict[str, Any], severities: Mapping[str, str], *, whole: bool) -> Group | None:
    """Return the policies with the most flagged calls. Violations count before near-misses."""
    wrong = ("violation", "near_miss")
    counts = {name: row[summary["criterion"]] for name, row in summary["by_policy"].items()}
    flagged = {name: row for name, row in counts.items() if any(row[verdict] for verdict in wrong)}
    if not flagged:
        return None
    order = sorted(flagged, key=lambda name: (*(-flagged[name][verdict] for verdict in wrong), name))
    rows = [
        (
            name,
            severities.get(name, ""),
            *(_count(flagged[name][verdict]) for verdict in wrong),
            f"{summary['by_policy'][name]['applied']:,}",
        )
        for name in (order if whole else order[:_MOST])
    ]
    is_cut = not whole and len(order) > _MOST
    more = f" (the first {_MOST} of {len(order)}; --all lists all)" if is_cut else ""
    return titled_table(f"Policies broken{more}", ["policy", "severity"], ["viol.", "near", "of calls"], rows)


def _severities(out: Path) -> dict[str, str]:
    stated: dict[str, Any] = json.loads((out / "policies.json").read_bytes())
    return {name: str(policy.get("severity", "")) for name, policy in stated.items()}


def _lookups(summary: dict[str, Any]) -> Group:
    lacked = {name: row[summary["criterion"]] for name, row in summary["by_lookup"].items()}
    rows = [(name, _count(count)) for name, count in sorted(lacked.items(), key=lambda item: -item[1]) if count]
    return titled_table("Look-ups missing from near-miss and uninformed calls", ["look-up"], ["calls"], rows)


def _rules(summary: dict[str, Any]) -> Group:
    order = sorted(
        summary["by_rule"].items(), key=lambda item: (SEVERITIES.index(item[1]["severity"]), -item[1]["broken"])
    )
    rows = [(row["severity"], name, f"{row['broken']:,}", f"{row['trajectories']:,}") for name, row in order]
    return titled_table("Rules broken (findings.jsonl)", ["severity", "rule"], ["times", "conversations"], rows)


def _undecided(summary: dict[str, Any]) -> Group:
    rules: dict[str, Any] = summary["open"]["rules"]
    rows = [
        ("" if place else name, OPEN_REASONS.get(reason, reason), f"{count:,}")
        for name in sorted(rules, key=lambda name: (-rules[name]["calls"], name))
        for place, (reason, count) in enumerate(
            sorted(rules[name]["reasons"].items(), key=lambda item: (-item[1], item[0]))
        )
    ]
    if without := summary["verdicts"][summary["criterion"]].get("inconclusive"):
        rows.append(("(guards)", "a guard reached no verdict", f"{without:,}"))
    title = f"Undecided: {counted(summary['counts']['undecided'], 'call')} to review"
    return titled_table(title, ["rule", "undecided because"], ["calls"], rows)


def _failures(summary: dict[str, Any], out: Path) -> list[str]:
    """Return the guards that failed. The calls that they check have no verdict."""
    failed: dict[str, dict[str, int]] = summary.get("failed_guards", {})
    if not failed:
        return []
    each = ((name, place, count) for name, found in failed.items() for place, count in found.items())
    places = [f"{name} at {place} ({counted(count, 'call')})" for name, place, count in each]
    more = f" and {len(places) - _MOST} more" if len(places) > _MOST else ""
    return [
        f"Guards that failed, leaving calls without a verdict: {', '.join(places[:_MOST])}{more}.",
        f"To see why: bylaw explain {shlex.quote(str(out))} --verdict inconclusive",
    ]


def _paper(summary: dict[str, Any]) -> str:
    return ", strict" if summary["criterion"] == "strict" else ""


def _share(rate: dict[str, Any], *, interval: bool = True) -> str:
    if rate["value"] is None:
        return "-"
    text = f"{100 * rate['value']:.1f}"
    return f"{text} [{100 * rate['low']:.0f}-{100 * rate['high']:.0f}]" if interval else text


def _count(number: int) -> str:
    return f"{number:,}" if number else "."
