"""`bylaw align pairs`: preference pairs for DPO and KTO, from the findings of an audit."""

from pathlib import Path
from typing import Annotated

import click

from bylaw.cli.align.sources import EarlierAudit, SomeLogs, SomePack, command_line, sources
from bylaw.cli.command import File, command
from bylaw.cli.logs import open_logs
from bylaw.errors import UsageError


@command("pairs")
def pairs_command(
    logs: SomeLogs = (),
    *,
    pack: SomePack = None,
    world: Annotated[File, click.Path(path_type=Path, exists=True), "The database at the start of the logs."] = None,
    audit: EarlierAudit = None,
    out: Annotated[Path, "--out DIR", "Folder for the rows."],
) -> int:
    """Pair flagged calls with missing look-ups, for DPO and KTO."""
    from bylaw.align.pairs import write_pairs

    if not logs and audit is None:
        raise UsageError("no logs given", hint="name logs, or the folder of an audit with --audit")
    typed = command_line("pairs", logs, {"--pack": pack, "--world": world, "--audit": audit})
    wanted = sources(logs, pack or (None if audit is not None else "clinic"), world, audit, None)
    with open_logs(list(wanted.logs), without=out) as opened:
        placed = wanted.checked(opened.placed(agent=wanted.agent))
        found = write_pairs(wanted.pack, out, placed, wanted.auditor, command=typed)
    left = sum(found.without.values())
    counts = ", ".join(f"{verdict} {count}" for verdict, count in sorted(found.without.items()))
    print(f"{found.pairs} pairs, {found.examples} rows with a label")
    if left:
        print(f"{left} flagged calls have no pair: no look-up would have helped ({counts})")
    print(f"wrote {out}")
    return 0
