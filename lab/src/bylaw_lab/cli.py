"""The `bylaw-lab` command: one subcommand per experiment."""

import click

from bylaw_lab.bench.command import bench_command
from bylaw_lab.theorems.command import theorems


@click.group()
def main() -> None:
    """Measure Bylaw: benchmarks, simulators and attacks."""


main.add_command(theorems)
main.add_command(bench_command)


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
