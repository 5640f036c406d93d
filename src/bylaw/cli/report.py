"""`bylaw report`: one self-contained page from what an audit wrote."""

from pathlib import Path

import click

from bylaw.errors import UsageError


@click.command("report")
@click.argument("out", type=click.Path(path_type=Path), help="The folder an audit wrote.")
@click.option(
    "--to",
    "target",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Where to write it; by default OUT/report.html.",
)
@click.option(
    "--opening",
    metavar="ID",
    default="",
    show_default=False,
    help="The finding to open on; by default the most telling one.",
)
def report_command(out: Path, target: Path | None, opening: str) -> None:
    """Write report.html from an audit's folder."""
    from bylaw.audit.batch.lines_of_tables import lined
    from bylaw.audit.report import write_report

    if not (out / "summary.json").is_file():
        raise UsageError("no summary.json here", place=str(out), hint="give the folder an audit wrote")
    with lined(out) as folder:
        print(f"wrote {write_report(folder, target or out / 'report.html', opening=opening)}")
