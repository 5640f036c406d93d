"""`bylaw report`: one self-contained page from what an audit wrote."""

from pathlib import Path
from typing import Annotated

from bylaw.cli.command import Audited, command


@command("report")
def report_command(
    out: Audited,
    *,
    target: Annotated[Path | None, "--to FILE", "Where to write it; by default OUT/report.html."] = None,
    opening: Annotated[str, "--opening ID", "The finding to open on; by default the most telling one."] = "",
) -> None:
    """Write report.html from an audit's folder."""
    from bylaw.audit.report import write_report

    print(f"wrote {write_report(out, target, opening=opening)}")
