"""`bylaw audit`: recorded conversations in, violations and near-misses out."""

import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer

from bylaw.audit.audited import write_audited
from bylaw.audit.baseline import compare, read_baseline, write_comparison
from bylaw.audit.finding import Finding, read_findings
from bylaw.audit.junit import write_junit
from bylaw.audit.redaction import Pseudonyms, redaction_key
from bylaw.audit.request import Request
from bylaw.audit.run import Report, audit
from bylaw.audit.sarif import write_sarif
from bylaw.audit.waiver import read_waivers
from bylaw.cli.comparison import print_comparison
from bylaw.cli.console import open_console
from bylaw.cli.logs import HELP, Logs, open_logs
from bylaw.cli.tables import print_summary


class FailOn(StrEnum):
    """Which findings make the exit status 1."""

    violation = "violation"
    near_miss = "near_miss"
    rule = "rule"


class Severity(StrEnum):
    """How severe a policy is."""

    high = "high"
    medium = "medium"
    low = "low"


class Without(StrEnum):
    """What stands in for a world where none is given."""

    hindsight = "hindsight"
    none = "none"


def audit_command(
    logs: list[Path] = typer.Argument(..., metavar="LOGS...", help=HELP),
    pack: str = typer.Option(
        ..., "--pack", metavar="PACK", help="A pack's folder, or the name of one that comes with Bylaw."
    ),
    world: Path | None = typer.Option(
        None,
        "--world",
        metavar="FILE",
        help="The database the conversations started from: SQLite or JSON, or what the pack reads.",
    ),
    without_world: Without = typer.Option(
        Without.hindsight,
        "--without-world",
        help="Without a database: rest on what the whole conversation shows, or on nothing.",
    ),
    out: Path = typer.Option(
        Path("out"), "--out", metavar="DIR", help="Folder for summary.json, calls.jsonl and the rest."
    ),
    document: Path | None = typer.Option(
        None, "--document", metavar="FILE", help="The policy document, where the pack only names it."
    ),
    tasks: Path | None = typer.Option(
        None,
        "--tasks",
        metavar="FILE",
        help="Tasks of tau2-bench: their gold actions, replayed on --world, give outcomes.",
    ),
    agent: str | None = typer.Option(None, "--agent", metavar="NAME", help="Count every conversation under this name."),
    jobs: int = typer.Option(
        1, "--jobs", min=1, metavar="N", help="Worker processes; the results are the same whatever N."
    ),
    report: bool = typer.Option(False, "--report", help="Also write report.html."),
    fail_on: list[FailOn] = typer.Option(
        [], "--fail-on", help="Exit with 1 where such a finding was made (near_miss: a violation too); repeatable."
    ),
    min_severity: Severity = typer.Option(
        Severity.low, "--min-severity", help="For --fail-on: only under policies at least this severe."
    ),
    baseline: Path | None = typer.Option(
        None, "--baseline", metavar="DIR", help="Folder of an earlier audit: only what is new counts for --fail-on."
    ),
    waivers: Path | None = typer.Option(
        None, "--waivers", metavar="FILE", help="Findings that somebody answers for, with a reason and an expiry."
    ),
    sarif: Path | None = typer.Option(None, "--sarif", metavar="FILE", help="Also write the findings as SARIF 2.1.0."),
    junit: Path | None = typer.Option(None, "--junit", metavar="FILE", help="Also write the calls as JUnit XML."),
    redact: bool = typer.Option(False, "--redact", help="Write no text of the logs, and pseudonyms for ids."),
    redact_key: str | None = typer.Option(
        None,
        "--redact-key",
        metavar="TEXT",
        envvar="BYLAW_REDACT_KEY",
        help="Pseudonyms that stay the same from run to run; else random.",
    ),
) -> None:
    """Audit recorded conversations under a policy pack."""
    key = redaction_key(redact_key) if redact else None
    mark = Pseudonyms(key).mark if key is not None else None
    before = read_baseline(baseline, redacted=mark) if baseline is not None else None
    waived = read_waivers(waivers) if waivers is not None else None
    with open_logs(logs, without=out) as opened:
        request = Request(opened.files, pack, world, without_world.value, document, tasks, agent, jobs, key)
        found = audit(request, out, progress=_progress())
        _say(found, opened)
        if key is not None:
            kept = (
                "of the given key" if redact_key is not None else "made for this run only; give --redact-key to compare"
            )
            print(f"Redacted: pseudonyms {kept}")
        elif not opened.kept:
            write_audited(request, out)
        comparison = None
        if before is not None or waived is not None:
            comparison = compare(out, found.names, baseline=before, waivers=waived)
            print_comparison(comparison, open_console())
            print(f"Wrote {write_comparison(comparison, out)}")
        standings = comparison.standings() if comparison is not None else None
        if sarif is not None:
            print(f"Wrote {write_sarif(out, sarif, files=opened.files, standings=standings)}")
    if junit is not None:
        print(f"Wrote {write_junit(out, junit, standings=standings)}")
    if report:
        from bylaw.audit.report import write_report

        print(f"Wrote {write_report(out)}")
    counted = comparison.new if comparison is not None else read_findings(out)
    raise typer.Exit(_status(found, counted, fail_on, min_severity))


def _progress() -> Any:
    if not sys.stderr.isatty():
        return None

    def show(number: int) -> None:
        if number % 100 == 99:
            sys.stderr.write(f"\r{number + 1:,} conversations")
            sys.stderr.flush()

    return show


def _say(report: Report, logs: Logs) -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r" + " " * 30 + "\r")
    for fault in report.skipped[:20]:
        print(f"bylaw: {fault.code} {logs.named(str(fault))}", file=sys.stderr)
    if len(report.skipped) > 20:
        print(f"bylaw: and {len(report.skipped) - 20} more, see summary.json", file=sys.stderr)
    print_summary(report.summary, open_console(), report.out)


def _status(report: Report, findings: Iterable[Finding], fail_on: list[FailOn], severity: Severity) -> int:
    verdicts = {word.value for word in fail_on}
    if "near_miss" in verdicts:
        verdicts.add("violation")
    if verdicts and any(finding.counts(verdicts, severity.value) for finding in findings):
        return 1
    return 3 if report.skipped else 0
