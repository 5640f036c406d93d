"""The `bylaw-lab` command: one subcommand per experiment."""

import click


@click.group()
def main() -> None:
    """Measure Bylaw: benchmarks, simulators and attacks."""
