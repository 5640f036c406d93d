"""`bylaw report`: one self-contained page from what an audit wrote."""

from pathlib import Path

import typer

from bylaw.errors import UsageError


def report_command(
    out: Path = typer.Argument(..., metavar="OUT", help="The folder an audit wrote."),
    target: Path | None = typer.Option(None, "--to", metavar="FILE", help="Where to write it; else OUT/report.html."),
    opening: str = typer.Option("", "--opening", metavar="ID", help="The finding to open on; else the most telling."),
) -> None:
    """Write report.html from an audit's folder."""
    from bylaw.audit.report import write_report

    if not (out / "summary.json").is_file():
        raise UsageError("no summary.json here", place=str(out), hint="give the folder an audit wrote")
    print(f"wrote {write_report(out, target, opening=opening)}")
