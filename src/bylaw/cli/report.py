"""The command `bylaw report` writes an audit's report as one self-contained HTML page."""

from pathlib import Path
from typing import Annotated

from bylaw.cli.command import Audited, command


@command("report")
def report_command(
    out: Audited,
    *,
    target: Annotated[Path | None, "--to FILE", "Where to write the report (default: OUT/report.html)."] = None,
    opening: Annotated[str, "--opening ID", "The finding to show first."] = "",
) -> None:
    """Write the HTML report of an audit."""
    from bylaw.audit.report import write_report

    print(f"wrote {write_report(out, target, opening=opening)}")
