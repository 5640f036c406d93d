"""`bylaw align export`: data sets for other trainers."""

from pathlib import Path
from typing import Annotated, cast, get_args

import click

from bylaw.align.export import Trainer
from bylaw.cli.command import command


@command("export")
def export_command(
    data: Annotated[Path, "DATA", click.Path(path_type=Path, exists=True, file_okay=False)],
    *,
    trainer: Annotated[str, "--for", click.Choice(get_args(Trainer)), "The trainer."],
    out: Annotated[Path, "--out DIR", "Folder for the files."],
) -> int:
    """Export the data sets of DATA for a trainer, with the reward and the chat template."""
    from bylaw.align.export import export

    for file in export(data, cast(Trainer, trainer), out):
        print(f"wrote {file}")
    return 0
