"""The `bylaw-lab` command: one subcommand per experiment."""

import click

from bylaw_lab.theorems.command import theorems


@click.group()
def main() -> None:
    """Measure Bylaw: benchmarks, simulators and attacks."""


main.add_command(theorems)
