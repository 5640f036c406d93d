"""`bylaw align`: train a model to recall the right policy. Each command has its own file."""

import click

from bylaw.cli.group import OneFileEach

COMMANDS = {
    "thoughts": "Write a thought for each recorded turn, from the guards or a model.",
    "data": "Build the data sets of the three stages, with a data card.",
    "pairs": "Pair flagged calls with missing look-ups, for DPO and KTO.",
    "export": "Export data sets for TRL, verl, ms-swift or verifiers.",
    "score": "Compute the rewards of turns: JSON lines on stdin.",
    "train": "Train one of the three stages.",
    "eval": "Evaluate an agent on practice tasks: pass@1, near-misses.",
}
"""Each has a module of its name."""


@click.command("align", cls=OneFileEach, package="bylaw.cli.align", groups={"Commands": COMMANDS})
def align_command() -> None:
    """Train a model to recall the right policy, and evaluate it."""
