"""The `bylaw-lab` command: one subcommand per experiment."""

from typing import Any

import click

from bylaw.errors import BylawError
from bylaw.text.visible import visible
from bylaw_lab.bench.command import bench_command
from bylaw_lab.desks.command import desks_command
from bylaw_lab.theorems.command import theorems


class Lab(click.Group):
    """Reports errors that users can fix on one line."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BylawError as error:
            click.echo(visible(f"bylaw-lab: {error.code} {error}"), err=True)
            ctx.exit(2)


@click.group(cls=Lab)
def main() -> None:
    """Measure Bylaw: benchmarks, simulators and attacks."""


main.add_command(theorems)
main.add_command(bench_command)
main.add_command(desks_command)


@main.command("record-demo")
def record_demo() -> None:
    """Record the conversations and the database of `bylaw demo` again."""
    from bylaw_lab.clinic.story import record

    record()


@main.command("drafts")
def drafts() -> None:
    """Print how much of the drafts of `bylaw init` survives into finished packs."""
    import tempfile
    from pathlib import Path

    from bylaw_lab.drafts import report

    with tempfile.TemporaryDirectory() as folder:
        click.echo(report(Path(folder)))
