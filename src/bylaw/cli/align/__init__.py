"""`bylaw align`: from recorded conversations to a model that recalls the right policy. Each command is its own file."""

import click

from bylaw.cli.group import OneFileEach

COMMANDS = {
    "thoughts": "Write what to think before each turn, from the guards or a model.",
    "data": "Build the three stages' sets, with a data card.",
    "pairs": "Pair flagged calls with the look-ups they lacked, for DPO and KTO.",
    "export": "Write the sets as TRL, verl, ms-swift or verifiers load them, with the reward.",
    "score": "Score turns by the paper's rewards, as JSON lines on stdin.",
    "train": "Train one of the three stages.",
    "eval": "Play tasks with an agent: pass@1, words, near-misses.",
}
"""Each has a module of its name."""


@click.command("align", cls=OneFileEach, package="bylaw.cli.align", groups={"Commands": COMMANDS})
def align_command() -> None:
    """Teach a model to recall the right policy, and measure it."""
