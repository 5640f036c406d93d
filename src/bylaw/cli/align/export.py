"""`bylaw align export`: the sets as another trainer loads them."""

from pathlib import Path
from typing import cast, get_args

import click

from bylaw.align.export import Trainer


@click.command("export")
@click.argument("data", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DATA")
@click.option("--for", "trainer", required=True, type=click.Choice(get_args(Trainer)), help="Who is to load them.")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Where to write the files.")
def export_command(data: Path, trainer: str, out: Path) -> int:
    """Write the sets of DATA as a trainer loads them, with the reward and the chat template."""
    from bylaw.align.export import export

    for file in export(data, cast(Trainer, trainer), out):
        print(f"wrote {file}")
    return 0
