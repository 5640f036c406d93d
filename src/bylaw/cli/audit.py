"""`bylaw audit`: recorded conversations in, violations and near-misses out."""

import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from bylaw.audit.request import Request
from bylaw.audit.run import Report, audit
from bylaw.cli.tables import print_summary
from bylaw.errors import UsageError


class FailOn(StrEnum):
    """Which findings make the exit status 1."""

    violation = "violation"
    near_miss = "near_miss"


class Without(StrEnum):
    """What stands in for a world where none is given."""

    hindsight = "hindsight"
    none = "none"


def audit_command(
    logs: list[Path] = typer.Argument(..., metavar="LOGS...", help="Files or folders of recorded conversations."),
    pack: str = typer.Option(
        ..., "--pack", metavar="PACK", help="A pack's folder, or the name of one that comes with Bylaw."
    ),
    world: Path | None = typer.Option(
        None, "--world", metavar="FILE", help="The database the conversations started from: SQLite or JSON."
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
        None, "--tasks", metavar="FILE", help="Benchmark tasks whose gold actions give the outcome."
    ),
    agent: str | None = typer.Option(None, "--agent", metavar="NAME", help="Count every conversation under this name."),
    jobs: int = typer.Option(
        1, "--jobs", min=1, metavar="N", help="Worker processes; the results are the same whatever N."
    ),
    report: bool = typer.Option(False, "--report", help="Also write report.html."),
    fail_on: FailOn | None = typer.Option(None, "--fail-on", help="Exit with 1 where such a finding was made."),
) -> None:
    """Audit recorded conversations under a policy pack."""
    request = Request(tuple(_files(logs, out)), pack, world, without_world.value, document, tasks, agent, jobs)
    found = audit(request, out, progress=_progress())
    _say(found)
    if report:
        from bylaw.audit.report import write_report

        print(f"Wrote {write_report(out)}")
    raise typer.Exit(_status(found, fail_on))


def _files(logs: list[Path], out: Path) -> Iterator[Path]:
    """The files themselves; of a folder those that may be logs, less what an audit wrote there."""
    for path in logs:
        if not path.exists():
            raise UsageError("no such file or folder", place=str(path))
        if not path.is_dir():
            yield path
            continue
        from bylaw.cli.scan import log_files

        found = [file for file in log_files(path) if out.resolve() not in file.resolve().parents]
        if not found:
            raise UsageError("no logs in this folder", place=str(path), hint="name the files themselves")
        yield from found


def _progress() -> Any:
    if not sys.stderr.isatty():
        return None

    def show(number: int) -> None:
        if number % 100 == 99:
            sys.stderr.write(f"\r{number + 1:,} conversations")
            sys.stderr.flush()

    return show


def _say(report: Report) -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r" + " " * 30 + "\r")
    for fault in report.skipped[:20]:
        print(f"bylaw: {fault.code} {fault}", file=sys.stderr)
    if len(report.skipped) > 20:
        print(f"bylaw: and {len(report.skipped) - 20} more, see summary.json", file=sys.stderr)
    print_summary(report.summary, Console(highlight=False, width=None if sys.stdout.isatty() else 80), report.out)


def _status(report: Report, fail_on: FailOn | None) -> int:
    if fail_on is FailOn.violation and report.violations:
        return 1
    if fail_on is FailOn.near_miss and (report.violations or report.near_misses):
        return 1
    return 3 if report.skipped else 0
